# Where it may, the probe first makes a namespace of its own, so that no mount of
# the host changes.
def mount(kind, at, flags=0):
    os.mkdir(at)
    try:
        call(P['unshare'], 0x10000000 | 0x20000)  # user, mounts
    except OSError:
        pass
    if libc.mount(ctypes.c_char_p(kind), ctypes.c_char_p(at.encode()), ctypes.c_char_p(kind), ctypes.c_ulong(flags), None) != 0:
        raise OSError(ctypes.get_errno(), '')
child('tmpfs', lambda: mount(b'tmpfs', TMP + '/a'))
child('bind', lambda: mount(b'/', TMP + '/b', 4096 | 16384))
def new():
    try:
        call(P['unshare'], 0x10000000 | 0x20000)
    except OSError:
        pass
    call(P['fsopen'], ctypes.c_char_p(b'tmpfs'), 0)
child('new interface', new)
def tree():
    try:
        call(P['unshare'], 0x10000000 | 0x20000)
    except OSError:
        pass
    call(P['open_tree'], -100, ctypes.c_char_p(b'/'), 0x8001)
child('tree', tree)
