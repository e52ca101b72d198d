where = {'home': os.environ['HOME'], 'temporary folder': TMP, 'shared memory': '/dev/shm', 'tmp': '/tmp', 'skill': '.', 'outputs': 'outputs'}
mark = 'tracon-' + P['pair']
if P['side'] == 'first':
    for d in where.values():
        try:
            write(d + '/' + mark, P['token'])
        except OSError:
            pass
    with open(__file__, 'a') as f:
        f.write('# ' + P['token'])
    if os.fork() == 0:
        os.setsid()
        quiet()
        time.sleep(200)
        os._exit(0)
    say('laid', 'ok')
    sys.exit(0)
for n, d in where.items():
    tell(n, lambda: read(d + '/' + mark))
tell('script', lambda: read(__file__, 1 << 20)[-80:])
for d in where.values():
    try:
        os.unlink(d + '/' + mark)
    except OSError:
        pass
