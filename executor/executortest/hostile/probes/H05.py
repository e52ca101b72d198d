with open('outputs/sparse', 'wb') as f:
    f.truncate(1 << 40)
for i in range(3):
    with open('outputs/part%d' % i, 'wb') as f:
        f.truncate(3 << 20)
# A process lets a file grow until it is stopped.
if os.fork() == 0:
    quiet()
    fd = os.open('outputs/growing', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    end = time.monotonic() + 200
    while time.monotonic() < end:
        try:
            os.write(fd, b'x' * 4096)
        except OSError:
            break
        if os.fstat(fd).st_size > 2 << 20:
            os.ftruncate(fd, 0)
    os._exit(0)
time.sleep(0.1)
say('laid', 'ok')
