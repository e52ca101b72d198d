names = [b'..x', b'CON', b'nul.txt', b'COM1', b'dot.', b'blank ', b'a:stream', b'back\\slash', b'new\nline', b'\x1b[31mred', b'\xff\xfe',
         b'bidi\xe2\x80\xae', b'x' * 255, b'-rf', b'quote"\'', b'fine.txt']
for n in names:
    with open(b'outputs/' + n, 'w') as f:
        f.write('x')
deep = 'outputs'
for i in range(30):
    deep += '/d'
    os.mkdir(deep)
write(deep + '/deep', 'x')
say('laid', 'ok', len(names))
