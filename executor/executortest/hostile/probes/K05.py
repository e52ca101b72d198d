USER = -4
def search():
    r = call(P['keyctl'], 10, USER, ctypes.c_char_p(b'user'), ctypes.c_char_p(P['key_name'].encode()), 0)
    return get(r)
def get(key):
    text = ctypes.create_string_buffer(100)
    n = call(P['keyctl'], 11, key, text, 100)
    return text.raw[:n]
if P['key_id'] != '0':
    tell('found', search)
    tell('by number', lambda: get(int(P['key_id'])))
else:
    say('found', 'no', 'none')
    say('by number', 'no', 'none')
tell('list', lambda: read('/proc/keys')[:100])
