# Hurtful: it takes memory, processes, space or time, and is not linked into a command.
n, r, w = 0, *os.pipe()
try:
    while n < 300:
        if os.fork() == 0:
            os.close(w)
            os.read(r, 1)
            os._exit(0)
        n += 1
except OSError:
    pass
say('processes', 'ok' if n > 100 else 'no', n)
os.close(w)
