# Hurtful: it takes memory, processes, space or time, and is not linked into a command.
begin = time.monotonic()
for i in range(4):
    if os.fork() == 0:
        while time.monotonic() < begin + 2:
            pass
        os._exit(0)
for i in range(4):
    os.wait()
t = os.times()
used = (t.children_user + t.children_system) / (time.monotonic() - begin)
say('processors', 'ok' if used > 1.25 else 'no', '%.2f' % used)
