# Hurtful: it takes memory, processes, space or time, and is not linked into a command.
import threading
stop, n = threading.Event(), 0
threading.stack_size(65536)
try:
    while n < 300:
        threading.Thread(target=stop.wait, daemon=True).start()
        n += 1
except (RuntimeError, OSError, MemoryError):
    pass
say('threads', 'ok' if n > 100 else 'no', n)
stop.set()
