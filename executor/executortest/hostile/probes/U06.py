path = os.path.realpath('/usr/bin/env').encode()
if P['side'] == 'first':
    say('laid', 'ok')
    end = time.monotonic() + 100
    while time.monotonic() < end:
        os.close(os.open(path, os.O_RDONLY))
        time.sleep(0.02)
    sys.exit(0)
def watch():
    fd = libc.inotify_init1(0o4000)
    if fd < 0 or libc.inotify_add_watch(fd, ctypes.c_char_p(path), 0x20) < 0:
        raise OSError(ctypes.get_errno(), '')
    end = time.monotonic() + float(P['wait'])
    while time.monotonic() < end:
        try:
            return len(os.read(fd, 4096))
        except BlockingIOError:
            time.sleep(0.02)
    raise OSError(errno.ENOENT, '')
tell('watch', watch)
