import socket
def connect(address):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(float(P['wait']))
    s.connect(address)
    return s.recv(100)
tell('path', lambda: connect(P['socket']))
tell('abstract', lambda: connect('\0' + P['abstract']))
for p in ('/run/docker.sock', '/var/run/docker.sock', '/run/containerd/containerd.sock', '/run/systemd/private', '/run/dbus/system_bus_socket',
          '/run/podman/podman.sock', '/run/user/%d/bus' % os.getuid(), '/tmp/.X11-unix/X0'):
    def door():
        s = socket.socket(socket.AF_UNIX)
        s.connect(p)
    tell(p, door)
