# Hurtful: it takes memory, processes, space or time, and is not linked into a command.
# What the kernel counts for each user, the first run uses up.
def instance():
    f = libc.inotify_init1(0)
    if f < 0:
        raise OSError(ctypes.get_errno(), '')
    return f
if P['side'] == 'first':
    import resource
    try:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        pass
    try:
        for i in range(2000):
            instance()
    except OSError:
        pass
    say('laid', 'ok')
    time.sleep(100)
    sys.exit(0)
try:
    instance()
    say('watches', 'no', 'there was one left')
except OSError as e:
    say('watches', 'no' if e.errno == errno.ENOSYS else 'ok', name(e)) # none were there to be used up
