tell('by path', lambda: os.truncate(P['open'], 0))
tell('by opening', lambda: os.close(os.open(P['open'], os.O_WRONLY | os.O_TRUNC)))
def punch():
    fd = os.open(P['open'], os.O_RDWR)
    if libc.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(4)) != 0:
        raise OSError(ctypes.get_errno(), '')
tell('hole', punch)
tell('mode', lambda: os.chmod(P['open'], 0o777))
tell('times', lambda: os.utime(P['open'], (1, 1)))
