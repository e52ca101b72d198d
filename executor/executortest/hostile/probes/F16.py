home = os.environ['HOME']
n = 0
for d in ('outputs', TMP, home, '.'):
    for f in (b'new\nline', b'\xff\xfe', b'-rf', b'x' * 255, b'$(touch x)', b'..x', b'\x1b[2J'):
        with open(d.encode() + b'/' + f, 'w') as g:
            g.write('x')
        n += 1
    os.makedirs(d + '/closed/inside')
    write(d + '/closed/inside/file', 'x')
    os.chmod(d + '/closed/inside', 0)
    os.chmod(d + '/closed', 0)
say('laid', 'ok', n)
