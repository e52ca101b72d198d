import fcntl
name_of = os.path.realpath('/usr/bin/env')
if P['side'] == 'first':
    f = open(name_of, 'rb')
    fcntl.flock(f, fcntl.LOCK_EX)
    say('laid', 'ok')
    time.sleep(100)
    sys.exit(0)
def lock():
    f = open(name_of, 'rb')
    try:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 'taken by another'
    raise OSError(errno.ENOENT, '')
tell('lock', lock)
