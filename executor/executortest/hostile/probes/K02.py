import mmap, platform
def run(code):
    m = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    m.write(code)
    f = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
    r = f()
    if r < 0 and r > -4096:
        raise OSError(-r, '')
    return r
if platform.machine() == 'x86_64':
    # mov eax, 20 (getpid of the 32-bit table); int 0x80; ret
    child('32-bit gate', lambda: run(b'\xb8\x14\x00\x00\x00\xcd\x80\xc3'))
    child('second table', lambda: call(0x40000000 | 39))
else:
    say('32-bit gate', 'no', 'not of this machine')
    say('second table', 'no', 'not of this machine')
