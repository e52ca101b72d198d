def ioctl(request, fd=0):
    try:
        call(P['ioctl'], fd, request, ctypes.byref(ctypes.c_char(b'x')))
    except OSError as e:
        if e.errno == errno.EPERM:
            raise
        return name(e)
for n, r in (('TIOCSTI', 0x5412), ('TIOCLINUX', 0x541C), ('TIOCSETD', 0x5423)):
    tell(n, lambda: ioctl(r))
    tell(n + ' with high bits', lambda: ioctl((0xdeadbeef << 32) | r))
