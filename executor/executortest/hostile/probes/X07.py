s = dict(l.rstrip('\n').split(':\t', 1) for l in open('/proc/self/status') if ':\t' in l)
def wall(name, breached, detail):
    say(name, 'ok' if breached else 'no', detail)
for c in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'):
    wall(c, int(s[c], 16) != 0, s[c])
wall('new privileges', s['NoNewPrivs'] == '0', s['NoNewPrivs'])
wall('no filter', s['Seccomp'] == '0', s['Seccomp'])
wall('groups', s['Groups'].strip() not in ('', '65534'), s['Groups'])
m = open('/proc/self/uid_map').read().split()
# Besides its own, a container needs one for its first steps: neither may own anything.
wall('identities of the host', any(n != '1' for n in m[2::3]) or len(m) > 3 and any(int(n) < 60578 for n in m[1::3]), ' '.join(m))
wall('root', os.geteuid() == 0, os.geteuid())
