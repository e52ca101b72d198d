tell('tree', lambda: os.listdir('/sys/fs/cgroup')[0])
paths = [l.rstrip('\n').split(':', 2)[2] for l in open('/proc/self/cgroup')]
say('place', 'ok' if any(p != '/' for p in paths) else 'no', ' '.join(paths))
def move():
    for d in ('/sys/fs/cgroup', '/sys/fs/cgroup/unified', '/sys/fs/cgroup/pids'):
        try:
            return os.close(os.open(d + '/cgroup.procs', os.O_WRONLY))
        except OSError as e:
            x = e
    raise x
tell('moving', move)
def mounts():
    try:
        call(P['unshare'], 0x10000000 | 0x20000 | 0x2000000)
    except OSError:
        pass
    os.mkdir(TMP + '/cg')
    if libc.mount(ctypes.c_char_p(b'cgroup2'), ctypes.c_char_p((TMP + '/cg').encode()), ctypes.c_char_p(b'cgroup2'), ctypes.c_ulong(0), None) != 0:
        raise OSError(ctypes.get_errno(), '')
child('mounting', mounts)
