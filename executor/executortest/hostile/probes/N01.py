import socket
def tcp(family, host, port):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(float(P['wait']))
    s.connect((host, int(port)))
    return s.recv(100)
def udp(family, host, port):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(float(P['wait']))
    s.connect((host, int(port)))
    s.send(P['token'].encode())
    return s.recv(100)
tell('TCP', lambda: tcp(socket.AF_INET, '127.0.0.1', P['tcp4']))
tell('UDP', lambda: udp(socket.AF_INET, '127.0.0.1', P['udp4']))
tell('any address', lambda: tcp(socket.AF_INET, '0.0.0.0', P['tcp4']))
if P['tcp6'] != '0':
    tell('TCP over IPv6', lambda: tcp(socket.AF_INET6, '::1', P['tcp6']))
    tell('IPv4 in IPv6', lambda: tcp(socket.AF_INET6, '::ffff:127.0.0.1', P['tcp4']))
else:
    say('TCP over IPv6', 'no', 'none')
    say('IPv4 in IPv6', 'no', 'none')
# No packet is sent: connecting a datagram socket only looks for a way.
def way(family, host):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.connect((host, 9))
tell('a way to the internet', lambda: way(socket.AF_INET, '192.0.2.1'))
tell('a way to the metadata service', lambda: way(socket.AF_INET, '169.254.169.254'))
tell('a way over IPv6', lambda: way(socket.AF_INET6, '2001:db8::1'))
