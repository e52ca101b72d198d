# Whoever asks for it makes the host write all that it has not written, and a file
# that may only be read empties the cache of its disk. A file that is none shows who
# answers.
def asked(call, *args):
    if getattr(libc, call)(-1, *args) == 0:
        raise OSError(errno.ENOSYS, '')
    if ctypes.get_errno() != errno.EBADF:
        raise OSError(ctypes.get_errno(), '')
tell('file systems', lambda: asked('syncfs'))
tell('a file', lambda: asked('fsync'))
tell('what is in a file', lambda: asked('fdatasync'))
tell('a part of a file', lambda: asked('sync_file_range', ctypes.c_int64(0), ctypes.c_int64(0), 2))
