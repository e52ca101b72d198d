# Hurtful: it takes memory, processes, space or time, and is not linked into a command.
piece = b'x' * (1 << 20)
def fill(folder):
    n = 0
    with open(folder + '/big-' + P['token'], 'wb', buffering=0) as f:
        while n < 192:
            n += f.write(piece) / len(piece)
    return '%d MiB' % n
for f in ('outputs', TMP, '/dev/shm', '.'):
    tell({TMP: 'temporary folder', '.': 'skill', '/dev/shm': 'shared memory'}.get(f, f), lambda: fill(f))
    try:
        os.unlink(f + '/big-' + P['token'])
    except OSError:
        pass
def many():
    os.mkdir(TMP + '/many')
    for i in range(20000):
        os.close(os.open(TMP + '/many/%d' % i, os.O_CREAT | os.O_WRONLY))
tell('many files', many)
