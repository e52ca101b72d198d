if P['side'] == 'first':
    say('laid', 'ok')
    time.sleep(100)
    sys.exit(0)
def seen():
    for d in os.listdir('/proc'):
        if d.isdigit() and int(d) not in (os.getpid(), os.getppid()): # whoever started it is of its own run
            try:
                if ('pair=' + P['pair']).encode() in read('/proc/%s/cmdline' % d):
                    return d
            except OSError:
                pass
    raise OSError(errno.ENOENT, '')
tell('process', seen)
for f in ('loadavg', 'meminfo', 'stat', 'uptime', 'interrupts', 'diskstats', 'net/dev', 'sys/kernel/random/boot_id'):
    tell(f, lambda: read('/proc/' + f, 100))
