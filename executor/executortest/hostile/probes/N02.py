import socket
def resolver():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(float(P['wait']))
    s.sendto(b'\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06canary\x07invalid\x00\x00\x01\x00\x01', ('127.0.0.1', int(P['udp4'])))
    return s.recv(100)
tell('question', resolver)
tell('servers', lambda: [l for l in open('/etc/resolv.conf') if l.startswith('nameserver')][0])
def daemon():
    s = socket.socket(socket.AF_UNIX)
    s.connect('/var/run/nscd/socket')
tell('name service', daemon)
