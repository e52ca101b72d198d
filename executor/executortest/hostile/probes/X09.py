def prctl(*args):
    if libc.prctl(*[ctypes.c_ulong(a) for a in args]) < 0:
        raise OSError(ctypes.get_errno(), '')
child('dumpable', lambda: prctl(4, 1, 0, 0, 0))
child('kept capabilities', lambda: prctl(8, 1, 0, 0, 0))
child('any tracer', lambda: prctl(0x59616d61, 2 ** 64 - 1, 0, 0, 0))
child('memory map', lambda: prctl(35, 14, 0, 0, 0))
child('ambient', lambda: prctl(47, 2, 10, 0, 0))
