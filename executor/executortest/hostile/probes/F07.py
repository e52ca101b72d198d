def node(kind, dev):
    p = os.environ['TMPDIR'] + '/node'
    os.mknod(p, kind | 0o600, dev)
    os.unlink(p)
tell('character device', lambda: node(stat.S_IFCHR, os.makedev(1, 3)))
tell('block device', lambda: node(stat.S_IFBLK, os.makedev(7, 0)))
for d in ('fuse', 'kmsg', 'loop-control', 'mem', 'kvm', 'net/tun', 'ptmx', 'console', 'btrfs-control', 'hwrng', 'vsock', 'uinput'):
    tell('/dev/' + d, lambda: os.close(os.open('/dev/' + d, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)))
