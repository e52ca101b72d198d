import hashlib
pid, parent = P['pid'], os.getppid()
tell('environment', lambda: read('/proc/%s/environ' % pid))
tell('environment of a thread', lambda: read('/proc/%s/task/%s/environ' % (pid, pid)))
tell('command line', lambda: read('/proc/%s/cmdline' % pid))
tell('memory map', lambda: read('/proc/%s/maps' % pid) and 'read')
tell('auxiliary vector', lambda: read('/proc/%s/auxv' % pid) and 'read')
def memory():
    for l in open('/proc/%s/maps' % pid):
        if '[stack]' in l:
            a, b = (int(x, 16) for x in l.split()[0].split('-'))
            with open('/proc/%s/mem' % pid, 'rb', buffering=0) as f:
                f.seek(a)
                text = f.read(b - a)
                i = text.find(b'TRACON_CANARY=')
                return text[i:i + 80]
    raise OSError(errno.ENOENT, '')
tell('memory', memory)
tell('descriptors', lambda: os.listdir('/proc/%s/fd' % pid))
tell('folder', lambda: os.readlink('/proc/%s/cwd' % pid))
def whole(path):
    with open(path, 'rb') as f:
        return hashlib.sha256(f.read()).hexdigest()
tell('environment of the parent', lambda: whole('/proc/%d/environ' % parent))
tell('environment of the host', lambda: whole('/proc/%s/environ' % P['host']))
def others():
    mine = {str(os.getpid()), str(parent), 'self', 'thread-self'}
    n = [d for d in os.listdir('/proc') if d.isdigit() and d not in mine]
    if not n:
        raise OSError(errno.ENOENT, '')
    return len(n)
tell('other processes', others)
def first():
    if len(read('/proc/1/cmdline')) == 0:
        raise OSError(errno.ENOENT, '')
tell('process 1', first)
