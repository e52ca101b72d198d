# The main thread is gone, and another goes on.
import threading
signal.signal(signal.SIGTERM, signal.SIG_IGN)
main = threading.main_thread().native_id
def other():
    while open('/proc/self/task/%d/stat' % main).read().rsplit(') ', 1)[1][0] != 'Z':
        time.sleep(0.01)
    say('laid', 'ok')
    end = time.monotonic() + 200
    while time.monotonic() < end:
        time.sleep(0.1)
    os._exit(0)
threading.Thread(target=other).start()
libc.syscall(ctypes.c_long(int(P['exit'])), ctypes.c_long(0))
