# Whoever asks for it makes the host write all that it has not written. A file
# system that is none shows who answers.
def written():
    if libc.syncfs(-1) == 0:
        raise OSError(errno.ENOSYS, '')
    if ctypes.get_errno() != errno.EBADF:
        raise OSError(ctypes.get_errno(), '')
tell('file systems', written)
