package executortest

func python() Dialect {
	return Dialect{Name: "python", Extension: "py", Programs: map[Program]Script{
		Words:    {Text: "import os, sys\nfor w in sys.argv[1:]:\n    sys.stdout.buffer.write(os.fsencode(w) + b'\\0')\n"},
		Exit:     {Text: "import sys\nsys.exit(int((sys.argv + ['7'])[1]))\n"},
		Both:     {Text: "import sys\nprint('out')\nprint('warning', file=sys.stderr)\n"},
		Echo:     {Text: "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read())\n"},
		Progress: {Text: "import time\nprint('progress')\ntime.sleep(300)\n"},
		Deaf: {Text: `import signal, time
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(s, signal.SIG_IGN)
print('deaf')
time.sleep(300)
`},
		Child: {Text: "import subprocess\nsubprocess.Popen(['sleep', '300'])\nprint('hi')\n"},
		Orphan: {Text: `import os
r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(w, b'x')
        os.execvp('sleep', ['sleep', '300'])
    os._exit(0)
os.read(r, 1)
print('hi')
`},
		Storm: {Text: `import os, time
for i in range(30):
    if os.fork() == 0:
        while True:
            if os.fork() == 0:
                os._exit(0)
            os.wait()
print('storm')
time.sleep(300)
`},
		Flood:    {Text: "import os\nwhile True:\n    os.write(1, b'y' * 4096 + b'\\n')\n"},
		Much:     {Text: "import sys\nsys.stdout.write('a' * int(sys.argv[1]))\n"},
		Drip:     {Text: "import time\nwhile True:\n    print('.', end='')\n    time.sleep(0.1)\n"},
		Bytes:    {Text: `import os` + "\n" + `os.write(1, b'\xff\xfe\x00 \x1b[31mred\x1b[0m \xf0\x9f\x92\xa9\n--- stdout ---\nexit code 0\n\xe2\x82')`},
		Kill:     {Text: "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"},
		Crash:    {Text: "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"},
		Hunger:   {Text: "x = []\nwhile True:\n    x.append(bytearray(b'a' * (1 << 20)))\n"},
		Arrow:    {Text: "print('→')\n"},
		Direct:   {Text: "import subprocess\nprint(subprocess.run(['./tools/hello'], check=True, capture_output=True, text=True).stdout, end='')\n", Files: hello},
		Siblings: {Text: "import os, sys\nimport beside\nsys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))\nfrom lib.deep import deep\nprint(beside.name, deep.name)\n", Files: map[string]string{"scripts/beside.py": "name = 'beside'\n", "lib/__init__.py": "", "lib/deep/__init__.py": "", "lib/deep/deep.py": "name = 'deep'\n"}},
		Asset:    {Text: "print(open('assets/data.txt').read(), end='')\n", Files: asset},
		Outputs: {Text: `import os
os.mkdir('outputs/a')
open('outputs/a/b.csv', 'w').write('1,2\n')
open('outputs/ü.txt', 'w').write('x')
os.symlink('/etc/passwd', 'outputs/link')
os.symlink('/etc', 'outputs/folder-link')
os.mkfifo('outputs/fifo')
open('outputs/sparse', 'w').truncate(1 << 40)
open('outputs/../beside', 'w').write('x')
open('outputs/one', 'w').write('x')
os.link('outputs/one', 'outputs/two')
`},
		Many: {Text: "for i in range(5):\n    open(f'outputs/{i}', 'w').write('0123456789')\n"},
		Traces: {Text: `import os
mark = 'trace-' + 'of-a-run'
new = [os.environ['HOME'] + '/state', os.environ['TMPDIR'] + '/state', 'report.txt']
old = [__file__, 'inputs/data.txt']
for f in new + old:
    if os.path.exists(f) and mark in open(f).read():
        print('found:', f)
for f in new:
    open(f, 'w').write(mark)
for f in old:
    open(f, 'a').write('# ' + mark + '\n')
print('done')
`},
		Environment: {Text: "import os\nfor n in os.environ:\n    print(n + '=' + os.environ[n])\n"},
		Inputs:      {Text: "print(open('inputs/data.txt').read(), end='')\nopen('inputs/data.txt', 'a').write('more')\n"},
		Edits: {Text: `import os
open('inputs/folder/edited.txt', 'w').write('new')
open('inputs/folder/new.txt', 'w').write('n')
os.remove('inputs/gone.txt')
os.mkdir('outputs/inputs')
open('inputs/both.txt', 'w').write('input')
open('outputs/inputs/both.txt', 'w').write('output')
`},
		Missing: {Text: "def main():\n    import missing_package.part\n\nmain()\n"},
		Caught:  {Text: "import sys, traceback\ntry:\n    import missing_package\nexcept ImportError:\n    traceback.print_exc()\n"},
		Module: {
			Text:  "import sys\nfrom . import beside\nfrom .deep.er import name\nimport lib\nprint(beside.name, name, lib.name, *sys.argv[1:])\n",
			Files: map[string]string{"scripts/beside.py": "name = 'beside'\n", "scripts/deep/er.py": "name = 'deep'\n", "lib/__init__.py": "name = 'lib'\n"},
		},
		Relative: {Text: "from . import beside\n", Files: map[string]string{"scripts/beside.py": "name = 'beside'\n"}},
		Locked: {Text: `import os
for d in ('.', 'outputs', 'inputs', os.environ['HOME'], os.environ['TMPDIR']):
    os.makedirs(d + '/locked/inside')
    open(d + '/locked/inside/file', 'w').write('x')
    for p in ('/locked/inside/file', '/locked/inside', '/locked'):
        os.chmod(d + p, 0)
os.chdir(os.environ['TMPDIR'])
for i in range(300):
    os.mkdir('a' * 100)
    os.chdir('a' * 100)
`},
	}}
}
