pid = int(P['pid'])
def seize(p):
    call(P['ptrace'], 0x4206, p, 0, 0)
r, w = os.pipe()
mine = os.fork()
if mine == 0:
    os.close(w)
    os.read(r, 1)
    os._exit(0)
tell('child', lambda: seize(mine))
child('process of the host', lambda: seize(pid))
class iovec(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
text = ctypes.create_string_buffer(b'what lies here')
into = ctypes.create_string_buffer(16)
def peek(p):
    a, b = iovec(ctypes.addressof(into), 8), iovec(ctypes.addressof(text), 8)
    call(P['process_vm_readv'], p, ctypes.byref(a), 1, ctypes.byref(b), 1, 0)
tell('memory of a child', lambda: peek(mine))
def compare():
    call(P['kcmp'], os.getpid(), mine, 0, 0, 0)
tell('comparing', compare)
os.close(w)
