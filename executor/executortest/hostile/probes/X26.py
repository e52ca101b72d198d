tell('terminal', lambda: os.close(os.open('/dev/tty', os.O_RDWR)))
tell('new terminal', lambda: [os.close(f) for f in os.openpty()][:0])
tell('console', lambda: os.close(os.open('/dev/console', os.O_WRONLY | os.O_NOCTTY)))
say('is a terminal', 'ok' if any(os.isatty(f) for f in range(3)) else 'no')
