# Hurtful: it takes memory, processes, space or time, and is not linked into a command.
# A number and a pattern on which the interpreter works for ever, and hears nothing
# meanwhile.
import re
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.alarm(200)
if os.fork() == 0:
    signal.alarm(200)
    quiet()
    10 ** 10 ** 8
    os._exit(0)
say('laid', 'ok')
re.match('(a+)+$', 'a' * 64 + 'b')
