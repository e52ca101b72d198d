# Hurtful: it takes memory, processes, space or time, and is not linked into a command.
# Processes that nobody has waited for count. Those without a parent do not stay:
# one after the other, more of them end than there may be processes.
for i in range(200):
    pid = os.fork()
    if pid == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.waitpid(pid, 0)
say('orphans', 'fact')
n = 0
try:
    while n < 300:
        if os.posix_spawn('/bin/true', ['true', P['run']], {}) > 0:
            n += 1
except OSError:
    pass
say('zombies', 'ok' if n > 100 else 'no', n)
