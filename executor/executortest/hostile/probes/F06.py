def append(path):
    with open(path, 'a') as f:
        f.write('x')
tell('file', lambda: append(P['open']))
tell('new file', lambda: write(P['writable'] + '/new', 'x'))
tell('removal', lambda: os.rename(P['open'], P['open'] + '-moved'))
for d in ('/', '/usr', '/usr/bin', '/usr/lib', '/etc', '/bin', '/lib', '/dev'):
    def make():
        p = d.rstrip('/') + '/.tracon-canary-' + P['token']
        os.close(os.open(p, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.unlink(p)
    tell(d, make)
