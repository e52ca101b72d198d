# Hurtful: it takes memory, processes, space or time, and is not linked into a command.
end = time.monotonic() + 200
for i in range(40):
    if os.fork() == 0:
        quiet()
        if i % 2:
            os.setsid()
        while time.monotonic() < end:
            try:
                if os.fork() == 0:
                    os._exit(0)
                os.wait()
            except OSError:
                time.sleep(0.01)
        os._exit(0)
say('laid', 'ok')
time.sleep(200)
