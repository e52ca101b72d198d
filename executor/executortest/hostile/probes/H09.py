import hashlib
def of(path):
    with open(path, 'rb', buffering=0) as f:
        return hashlib.sha256(f.read(65536)).hexdigest()
tell('program of the host', lambda: of('/proc/%s/exe' % P['host']))
tell('program of the parent', lambda: of('/proc/%d/exe' % os.getppid()))
def writes(path):
    os.close(os.open(path, os.O_WRONLY))
tell('program of process 1', lambda: of('/proc/1/exe'))
tell('writing the parent', lambda: writes('/proc/%d/exe' % os.getppid()))
tell('writing process 1', lambda: writes('/proc/1/exe'))
tell('writing itself', lambda: writes('/proc/self/exe'))
