def lock():
    import mmap
    m = mmap.mmap(-1, 4 << 20)
    a = ctypes.addressof(ctypes.c_char.from_buffer(m))
    if libc.mlock(ctypes.c_void_p(a), ctypes.c_size_t(4 << 20)) != 0:
        raise OSError(ctypes.get_errno(), '')
child('locked memory', lock)
def raises():
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 19, 1 << 19))
child('raising a limit', raises)
