# Hurtful: it takes memory, processes, space or time, and is not linked into a command.
# What the kernel keeps beside a file's content: attributes, and who watches it.
place = '/dev/shm/tracon-' + P['token']
def attributes():
    total = 0
    os.mkdir(place)
    while total < 70 << 20:
        path = '%s/%d' % (place, total)
        write(path, '')
        for i in range(16):
            os.setxattr(path, 'user.%d' % i, b'x' * 60000)
            total += 60000
    return '%d MiB' % (total >> 20)
tell('attributes', attributes)
import shutil
shutil.rmtree(place, ignore_errors=True)
def watches():
    fd, n = libc.inotify_init1(0), 0
    for folder, _, files in os.walk('/usr'):
        for f in files:
            path = os.path.join(folder, f).encode('utf-8', 'surrogateescape')
            if libc.inotify_add_watch(fd, ctypes.c_char_p(path), 0x400) >= 0:
                n += 1
            elif ctypes.get_errno() == errno.ENOSPC:
                raise OSError(errno.ENOSPC, '')
            if n > 6000:
                return n
    raise OSError(errno.ENOENT, '')
tell('watches', watches)
