# Hurtful: it takes memory, processes, space or time, and is not linked into a command.
import resource
try:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
except (OSError, ValueError):
    pass
def many(limit, make):
    held = []
    try:
        while len(held) < limit:
            held.append(make())
    except OSError:
        pass
    n = len(held)
    for f in held:
        os.close(f)
    return n
def storm(attempt, make):
    n = many(1100, make)
    say(attempt, 'ok' if n > 1000 else 'no', n)
storm('files', lambda: os.open('/dev/null', os.O_RDONLY))
def event():
    f = libc.eventfd(0, 0)
    if f < 0:
        raise OSError(ctypes.get_errno(), '')
    return f
storm('events', event)
