import socket
tell('database', lambda: read(P['database']))
tell('signing key', lambda: read(P['key']))
def door():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(float(P['wait']))
    s.connect(P['socket'])
    return s.recv(100)
tell('socket', door)
tell('opened', lambda: os.close(os.open(P['database'], os.O_RDONLY)))
