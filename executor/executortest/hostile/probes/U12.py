import socket
say('host name', 'ok', socket.gethostname())
tell('machine', lambda: read('/etc/machine-id'))
tell('boot', lambda: read('/proc/sys/kernel/random/boot_id'))
tell('file', lambda: read('/etc/hostname'))
say('cgroup', 'ok', ' '.join(l.rstrip('\n').split(':', 2)[2] for l in open('/proc/self/cgroup')))
