import shutil, subprocess
true = os.path.realpath('/bin/true')
def run(where, *before):
    shutil.copyfile(true, where)
    os.chmod(where, 0o700)
    subprocess.run([*before, where], check=True, capture_output=True)
tell('outputs', lambda: run('outputs/true'))
tell('temporary folder', lambda: run(TMP + '/true'))
tell('home', lambda: run(os.environ['HOME'] + '/true'))
tell('shared memory', lambda: run('/dev/shm/true-' + P['token']))
def loader():
    import glob
    return sorted(glob.glob('/lib64/ld-linux*.so*') + glob.glob('/lib/ld-linux*.so*'))[0]
tell('through the loader', lambda: run('outputs/loaded', loader()))
def memory():
    fd = call(P['memfd_create'], ctypes.c_char_p(b'x'), 0)
    os.write(fd, read(true, 1 << 24))
    subprocess.run(['/proc/self/fd/%d' % fd], check=True, pass_fds=[fd])
tell('memory', memory)
try:
    os.unlink('/dev/shm/true-' + P['token'])
except OSError:
    pass
