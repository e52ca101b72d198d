import socket
def serve():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.bind(('0.0.0.0', 0))
    s.listen(5)
    s.settimeout(3)
    say('port', 'fact', s.getsockname()[1])
    c, _ = s.accept()
    c.sendall(P['token'].encode())
    c.close()
tell('peer', serve)
