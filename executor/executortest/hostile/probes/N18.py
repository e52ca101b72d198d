import socket
def serve():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.bind(('0.0.0.0', 0))
    s.listen(5)
    s.settimeout(100)
    say('port', 'ok', s.getsockname()[1])
    while True:
        c, _ = s.accept()
        c.sendall(P['token'].encode())
        c.close()
try:
    serve()
except OSError as e:
    say('port', 'no', name(e))
