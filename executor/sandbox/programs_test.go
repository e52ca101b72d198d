//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// Programs that people use work in a box, unchanged.
func TestProgramsWork(t *testing.T) {
	e, _ := open(t, sandbox.Config{})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	for _, tc := range []struct{ name, ext, text, want string }{
		{"python threads", "py", "import threading\nr=[]\nts=[threading.Thread(target=lambda i=i: r.append(i)) for i in range(8)]\n[t.start() for t in ts]; [t.join() for t in ts]\nprint(sorted(r))\n", "[0, 1, 2, 3, 4, 5, 6, 7]\n"},
		{"python asyncio subprocess", "py", "import asyncio\nasync def main():\n  p = await asyncio.create_subprocess_exec('sh', '-c', 'echo hi; exit 3', stdout=asyncio.subprocess.PIPE)\n  out, _ = await p.communicate()\n  print(out, p.returncode)\nasyncio.run(main())\n", "b'hi\\n' 3\n"},
		{"python multiprocessing", "py", "import multiprocessing as m\ndef f(x): return x*x\nif __name__ == '__main__':\n  with m.Pool(3) as p: print(p.map(f, range(5)))\n  q = m.Queue(); p = m.Process(target=q.put, args=(7,)); p.start(); print(q.get()); p.join()\n  with m.Manager() as g:\n    d = g.dict(); d['a'] = 1; print(dict(d))\n", "[0, 1, 4, 9, 16]\n7\n{'a': 1}\n"},
		{"python multiprocessing spawn", "py", "import multiprocessing as m\ndef f(x): return x+1\nif __name__ == '__main__':\n  m.set_start_method('spawn')\n  with m.Pool(2) as p: print(p.map(f, [1,2]))\n", "[2, 3]\n"},
		{"python sqlite3", "py", "import sqlite3, tempfile, os\nd = tempfile.mkdtemp()\nc = sqlite3.connect(os.path.join(d, 'x.db')); c.execute('pragma journal_mode=wal'); c.execute('create table t(a)'); c.executemany('insert into t values(?)', [(i,) for i in range(9)]); c.commit()\nprint(c.execute('select sum(a) from t').fetchone())\n", "(36,)\n"},
		{"python files", "py", "import os, shutil, tempfile, zipfile, pathlib\nwith tempfile.NamedTemporaryFile('w', delete=False) as f: f.write('x')\nshutil.copy(f.name, '/outputs/a'); shutil.move('/outputs/a', '/tmp/b')\nos.makedirs('p/q'); os.makedirs('r'); pathlib.Path('p/q/f').write_text('1'); os.rename('p/q/f', 'r/g'); shutil.copytree('r', 's')\nwith zipfile.ZipFile('/outputs/z.zip', 'w') as z: z.write('s/g')\nprint(os.listdir('s'), os.getcwd(), os.path.expanduser('~'), sorted(os.listdir('.')))\n", "['g'] /skill /tmp/home ['SKILL.md', 'inputs', 'main.py', 'outputs', 'p', 'r', 's']\n"},
		{"python ssl, ctypes, curses", "py", "import ssl, ctypes, hashlib, json, decimal, lzma, bz2, socket, uuid, getpass, pwd, locale, zoneinfo, platform\nprint(ctypes.CDLL(None).getpid() > 0, getpass.getuser(), socket.gethostname(), zoneinfo.ZoneInfo('Europe/Berlin').key, len(uuid.uuid4().hex))\n", "True skill sandbox Europe/Berlin 32\n"},
		{"python unix sockets", "py", "import socket, threading\ns = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); s.listen()\nthreading.Thread(target=lambda: s.accept()[0].sendall(b'hello')).start()\nc = socket.socket(socket.AF_UNIX); c.connect('/tmp/s'); print(c.recv(9))\n", "b'hello'\n"},
		{"node workers", "js", "const {Worker} = require('worker_threads'); const w = new Worker(\"require('worker_threads').parentPort.postMessage(6*7)\", {eval: true}); w.on('message', m => console.log(m))\n", "42\n"},
		{"node child_process", "js", "const {execSync, fork, spawn} = require('child_process'); console.log(execSync('echo hi | tr a-z A-Z').toString().trim()); if (process.argv[2] !== 'x') { const f = fork(__filename, ['x']); f.on('exit', c => console.log('exit', c)) }\n", "HI\nHI\nexit 0\n"},
		{"node fs.promises", "js", "const fs = require('fs').promises; (async () => { await fs.mkdir('/tmp/a/b', {recursive: true}); await fs.writeFile('/tmp/a/b/c', 'x'); await fs.copyFile('/tmp/a/b/c', 'outputs/d'); await fs.rename('/tmp/a/b/c', '/tmp/a/e'); await fs.cp('/tmp/a', '/tmp/f', {recursive: true}); console.log(await fs.readdir('/tmp/f'), (await fs.stat('outputs/d')).size, process.cwd()) })()\n", "[ 'b', 'e' ] 1 /skill\n"},
		{"node crypto, zlib, fetch", "js", "const c = require('crypto'), z = require('zlib'); console.log(c.createHash('sha256').update('a').digest('hex').slice(0, 8), z.gunzipSync(z.gzipSync('hi')).toString(), c.generateKeyPairSync('ed25519').publicKey.asymmetricKeyType); fetch('http://127.0.0.1:1').catch(e => console.log('refused'))\n", "ca978112 hi ed25519\nrefused\n"},
		{"bash pipelines", "sh", "mkdir d; for i in 3 1 2; do echo $i >d/$i; done\ntar czf outputs/d.tgz d; tar tzf outputs/d.tgz | sort | tail -1\ncat <(echo a) <(echo b) | awk '{s=s $1} END {print s}'\nsort -n d/* | paste -sd, | sed 's/,/-/g'\nfind . -name '1' | xargs -n1 basename\necho x | tee /tmp/y >/dev/null; cat /tmp/y; echo err >/dev/stderr; echo out >/dev/stdout; (echo a; echo b) | gzip | gunzip | wc -l; seq 1 3 | xargs -P3 -n1 true; id -un; hostname\n", "d/3\nab\n1-2-3\n1\nx\nout\n2\nskill\nsandbox\n"},
		{"git", "sh", "git --version >/dev/null && git init -q r && cd r && git config user.email a@b.c && git config user.name n && echo x >f && git add f && git commit -qm one && git log --oneline | wc -l\n", "1\n"},
		{"perl", "sh", "perl -e 'use POSIX; use File::Temp; my $f = File::Temp->new; print $f \"x\"; print \"ok\\n\"; my $p = open(my $h, \"-|\", \"echo hi\"); print <$h>'\n", "ok\nhi\n"},
		{"no root, no others", "sh", "ls / 2>/dev/null; cat /etc/shadow 2>/dev/null; ls /home /root 2>/dev/null; set -- /proc/[0-9]*; echo $#; touch /usr/x 2>/dev/null || echo closed\n", "1\nclosed\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, err := e.Execute(t.Context(), admit(t, w, script(tc.ext, tc.text)))
			if err != nil {
				t.Fatal(err)
			}
			if res.Ending != executor.Exited(0) || string(res.Stdout) != tc.want {
				t.Errorf("got %v, output %q, want %q; standard error: %s%s", res.Ending, res.Stdout, tc.want, res.Stderr, strings.Join(res.Notes, "\n"))
			}
		})
	}
}
