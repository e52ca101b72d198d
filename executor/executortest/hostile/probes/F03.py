host = {'home', 'root', 'var', 'boot', 'srv', 'mnt', 'media', 'opt', 'sys', 'run', 'lost+found'}
seen = sorted(d for d in host if os.path.isdir('/' + d))
say('root', 'ok' if len(seen) > 2 else 'no', ' '.join(seen))
tell('var', lambda: ' '.join(os.listdir('/var'))[:100])
tell('sys', lambda: ' '.join(os.listdir('/sys'))[:100])
tell('folders of programs for writing', lambda: [d for d in ('/usr', '/bin', '/lib', '/etc') if os.access(d, os.W_OK)][0])
kinds = {l.rsplit(' - ', 1)[1].split()[0] for l in open('/proc/self/mountinfo')}
seen = sorted(kinds & {'sysfs', 'cgroup', 'cgroup2', 'securityfs', 'debugfs', 'devpts', 'mqueue', 'bpf'})
say('file systems of the kernel', 'ok' if seen else 'no', ' '.join(seen))
