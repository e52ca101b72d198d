if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        quiet()
        os.environ.clear()
        os.chdir('/')
        time.sleep(200)
        os._exit(0)
    os._exit(0)
os.wait()
say('laid', 'ok')
