say('laid', 'ok')
if os.fork() == 0:
    os.setsid()
    quiet()
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
try:
    os.kill(os.getppid(), signal.SIGSTOP) if os.getppid() != int(P['host']) and os.getppid() > 0 else None
except OSError:
    pass
os.kill(os.getpid(), signal.SIGSTOP)
