# Each attempt is a system call with arguments that mean nothing: a kernel that
# looks at them says so. Not to be there, to be forbidden and to be killed are the
# answers of a wall.
for k in sorted(P):
    if not k.startswith('call_'):
        continue
    words = P[k].split(':')
    nr, args = int(words[0]), [int(a) for a in words[1].split(',') if a]
    def try_it():
        try:
            return call(nr, *args)
        except OSError as e:
            if e.errno in (errno.ENOSYS, errno.EPERM):
                raise
            return name(e)
    child(k[5:], try_it)
