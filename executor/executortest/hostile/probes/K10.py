# A filter that lets everything through does not undo the one before it.
class program(ctypes.Structure):
    _fields_ = [('len', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
code = (ctypes.c_uint64 * 1)(0x7fff000000000006)  # return ALLOW
def loosen(flags):
    libc.prctl(38, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    p = program(1, ctypes.addressof(code))
    return call(P['seccomp'], 1, flags, ctypes.byref(p))
def looser():
    loosen(0)
    try:
        call(P['memfd_create'], ctypes.c_char_p(b'x'), 0)
    except OSError as e:
        if e.errno in (errno.ENOSYS, errno.EPERM):
            raise
def on_all_threads():
    loosen(1)
    try:
        call(P['unshare'], 0x7fffffff)
    except OSError as e:
        if e.errno in (errno.ENOSYS, errno.EPERM):
            raise
child('looser', looser)
child('looser on all threads', on_all_threads)
