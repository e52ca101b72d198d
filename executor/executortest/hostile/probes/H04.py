import socket
os.mkfifo('outputs/fifo')
s = socket.socket(socket.AF_UNIX)
s.bind('outputs/socket')
try:
    os.mknod('outputs/device', stat.S_IFCHR | 0o600, os.makedev(1, 5))
except OSError:
    pass
os.mkdir('outputs/folder.csv')
write('outputs/fine', 'fine')
say('laid', 'ok')
