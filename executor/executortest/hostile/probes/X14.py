NEW = 0x10000000
child('unshare', lambda: call(P['unshare'], NEW))
def clone(flags):
    r = call(P['clone'], flags | signal.SIGCHLD, 0, 0, 0, 0)
    if r == 0:
        os._exit(0)
    os.waitpid(r, 0)
child('clone', lambda: clone(NEW))
def clone3():
    args = (ctypes.c_uint64 * 11)()
    args[0], args[4] = NEW, signal.SIGCHLD
    r = call(P['clone3'], args, 88)
    if r == 0:
        os._exit(0)
    os.waitpid(r, 0)
child('clone3', clone3)
def enter(kind):
    fd = os.open('/proc/%s/ns/%s' % (P['pid'], kind), os.O_RDONLY)
    call(P['setns'], fd, 0)
child('entering the network of the host', lambda: enter('net'))
child('entering the mounts of the host', lambda: enter('mnt'))
# Threads and processes are no namespaces.
import threading
t = threading.Thread(target=lambda: None)
t.start()
t.join()
say('threads', 'fact')
