# Hurtful: it takes memory, processes, space or time, and is not linked into a command.
import mmap
kind, MiB = P['kind'], 1 << 20
held = []
def heap():
    held.append(bytearray(b'x' * MiB))
def shared():
    m = mmap.mmap(-1, MiB)
    m.write(b'x' * MiB)
    held.append(m)
def file():
    f = open('outputs/held%d' % len(held), 'wb', buffering=0)
    f.write(b'x' * MiB)
    held.append(f.name)
def pipes():
    r, w = os.pipe()
    import fcntl
    try:
        fcntl.fcntl(w, 1031, MiB)
    except OSError:
        pass
    os.set_blocking(w, False)
    n = 0
    try:
        while True:
            n += os.write(w, b'x' * 65536)
    except BlockingIOError:
        pass
    held.append((r, w, n))
# A child says when it has its memory, and keeps it until its parent lets go.
keep, let_go = os.pipe()
def children():
    r, w = os.pipe()
    if os.fork() == 0:
        os.close(let_go)
        x = bytearray(b'x' * (32 * MiB))
        os.write(w, b'x')
        quiet()
        os.read(keep, 1)
        os._exit(0)
    os.close(w)
    held.append(os.read(r, 1))
most = {'children': 7, 'pipes': 100}.get(kind, 200)
try:
    while len(held) < most:
        globals()[kind]()
except (MemoryError, OSError) as e:
    say(kind, 'no', '%s at %d' % (type(e).__name__, len(held)))
else:
    if kind == 'children':
        dead = 0
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            dead += 1
            if dead == most:
                break
        say(kind, 'ok' if dead == 0 and held == [b'x'] * most else 'no', dead)
        os.close(let_go)
    elif kind == 'pipes':
        total = sum(n for _, _, n in held) >> 20
        say(kind, 'ok' if total > 80 else 'no', '%d MiB' % total)
    else:
        say(kind, 'ok', len(held))
