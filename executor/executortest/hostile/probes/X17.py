for s in range(1, 65):
    try:
        signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
say('laid', 'ok')
end = time.monotonic() + 200
while time.monotonic() < end:
    time.sleep(0.1)
