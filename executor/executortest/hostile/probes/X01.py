d = os.open('/proc/self/fd', os.O_RDONLY)
others = []
for f in os.listdir(d):
    f = int(f)
    if f not in (0, 1, 2, d):
        try:
            s = os.fstat(f)
        except OSError:
            continue
        others.append((f, s.st_mode))
say('others', 'ok' if others else 'no', others)
for f, mode in others:
    if stat.S_ISDIR(mode):
        tell('folder', lambda: os.read(os.open(os.path.basename(P['file']), os.O_RDONLY, dir_fd=f), 200))
    elif stat.S_ISREG(mode):
        tell('memory', lambda: os.pread(f, 200, 0))
    elif stat.S_ISSOCK(mode):
        tell('connection', lambda: os.write(f, b'hello from the script'))
for n, f in (('folder', stat.S_ISDIR), ('memory', stat.S_ISREG), ('connection', stat.S_ISSOCK)):
    if not [m for _, m in others if f(m)]:
        say(n, 'no', 'none')
