# Rules on files belong to files and folders, whatever name leads to them.
tell('root by a descriptor', lambda: len(os.listdir('/proc/self/fd/%d' % os.open('/', os.O_PATH))) and None)
tell('root by its name in /proc', lambda: len(os.listdir('/proc/self/root')) and None)
def above():
    os.chdir('/usr')
    return len(os.listdir('..')) and None
child('root from below', above)
import shutil
true = os.path.realpath('/bin/true')
def program():
    if not os.path.exists(TMP + '/program'):
        shutil.copyfile(true, TMP + '/program')
        os.chmod(TMP + '/program', 0o700)
    return os.open(TMP + '/program', os.O_RDONLY)
def started():
    path = '/proc/self/fd/%d' % program()
    pid = os.fork()
    if pid == 0:
        try:
            os.execv(path, ['true', P['run']])
        except OSError as e:
            os._exit(e.errno)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0:
        raise OSError(status, '')
tell('program by a descriptor', started)
def mapped():
    import mmap
    mmap.mmap(program(), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
tell('program in memory', mapped)
def moved():
    program()
    os.rename(TMP + '/program', TMP + '/moved')
    os.link(TMP + '/moved', 'linked')
tell('program under another name', moved)
