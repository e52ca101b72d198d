handle = (ctypes.c_ubyte * 256)()
ctypes.memmove(handle, (128).to_bytes(4, 'little'), 4)
mount = ctypes.c_int()
def name_it():
    call(P['name_to_handle_at'], -100, ctypes.c_char_p(P['file'].encode()), handle, ctypes.byref(mount), 0)
tell('name', name_it)
def open_it():
    fd = os.open(P['folder'] if os.path.exists(P['folder']) else '/', os.O_RDONLY)
    f = call(P['open_by_handle_at'], fd, handle, os.O_RDONLY)
    return os.read(f, 100)
child('open', open_it)
