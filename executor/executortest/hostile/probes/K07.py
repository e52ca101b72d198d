kinds = {'mount': 0x20000, 'cgroup': 0x2000000, 'uts': 0x4000000, 'ipc': 0x8000000, 'user': 0x10000000, 'pid': 0x20000000, 'net': 0x40000000}
def clone(flags):
    r = call(P['clone'], flags | signal.SIGCHLD, 0, 0, 0, 0)
    if r == 0:
        os._exit(0)
    os.waitpid(r, 0)
for n, f in kinds.items():
    child(n, lambda: clone(f | kinds['user']))
def high():
    r = call(P['clone'], (1 << 40) | kinds['user'] | signal.SIGCHLD, 0, 0, 0, 0)
    if r == 0:
        os._exit(0)
    os.waitpid(r, 0)
child('high bits', high)
import threading, subprocess
t = threading.Thread(target=lambda: None)
t.start()
t.join()
subprocess.run(['true'], check=True)
say('threads', 'fact')
