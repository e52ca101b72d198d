import subprocess
known = {'PATH', 'HOME', 'TMPDIR', 'LANG', 'TZ', 'LC_CTYPE'}
say('variables', 'ok' if set(os.environ) - known else 'no', len(set(os.environ) - known))
tell('canary', lambda: os.environ['TRACON_CANARY'])
say('at the start', 'ok' if b'TRACON_CANARY' in read('/proc/self/environ', 1 << 20) else 'no')
def child_sees():
    out = subprocess.run(['env'], capture_output=True, text=True).stdout
    return [l for l in out.splitlines() if l.startswith('TRACON_CANARY=')][0]
tell('in a child', child_sees)
