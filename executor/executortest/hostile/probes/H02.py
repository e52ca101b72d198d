# A process swaps a folder and a link to one of the host's, as fast as it can,
# until it is stopped.
os.makedirs('outputs/d')
write('outputs/d/' + os.path.basename(P['file']), 'mine')
os.symlink(P['folder'], 'outputs/e')
r, w = os.pipe()
if os.fork() == 0:
    quiet()
    a, b = ctypes.c_char_p(b'outputs/d'), ctypes.c_char_p(b'outputs/e')
    nr, cwd, flags = int(P['renameat2']), ctypes.c_long(-100), ctypes.c_long(2)
    f, n, end = libc.syscall, 0, time.monotonic() + 200
    while time.monotonic() < end:
        for i in range(100):
            if f(ctypes.c_long(nr), cwd, a, cwd, b, flags) != 0:
                os._exit(1)
        if n == 0:
            os.write(w, b'x')
        n += 1
    os._exit(0)
os.close(w)
say('laid', 'ok' if os.read(r, 1) == b'x' else 'no')
time.sleep(int.from_bytes(os.urandom(1), 'big') / 40000)
