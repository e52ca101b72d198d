say('laid', 'ok')
if os.fork() == 0:
    os.setsid()
    time.sleep(200)
    os._exit(0)
