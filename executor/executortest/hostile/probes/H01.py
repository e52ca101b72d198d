os.symlink(P['file'], 'outputs/file')
os.symlink(P['folder'], 'outputs/folder')
os.makedirs('outputs/a/b')
os.symlink(P['key'], 'outputs/a/b/key')
os.symlink('../../../../../../../../../..' + P['file'], 'outputs/a/up')
os.symlink('/proc/%s/environ' % P['pid'], 'outputs/environ')
try:
    os.symlink(P['file'], 'inputs/file')
except OSError:
    pass
write('outputs/fine', 'fine')
say('laid', 'ok')
