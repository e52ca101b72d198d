home = os.environ['HOME']
for d in ('outputs', TMP, home, '.'):
    os.makedirs(d + '/links')
    for i in range(20):
        os.symlink(P['folder'], d + '/links/folder%d' % i)
        os.symlink(P['open'], d + '/links/file%d' % i)
say('laid', 'ok')
# Until it is stopped, one process swaps a folder and a link.
if os.fork() == 0:
    quiet()
    os.mkdir('outputs/d')
    write('outputs/d/inside', 'x')
    os.symlink(P['folder'], 'outputs/e')
    end = time.monotonic() + 200
    while time.monotonic() < end:
        os.rename('outputs/d', 'outputs/t')
        os.rename('outputs/e', 'outputs/d')
        os.rename('outputs/t', 'outputs/e')
    os._exit(0)
time.sleep(0.05)
