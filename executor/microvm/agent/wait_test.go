//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
)

// An outcome is what a script printed and how it ended.
type outcome struct {
	stdout, stderr string
	code           int
}

// run runs the command with standard input that is at its end.
func run(t *testing.T, cmd *exec.Cmd, meanwhile func()) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = []string{"PATH=" + interpreter.SearchPath, "LANG=C.UTF-8", "TZ=UTC"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// waited has an interpreter wait for the script first, and tells whether it took that.
func waited(t *testing.T, command, wait []string, dir string, script ...string) (o outcome, took bool) {
	t.Helper()
	wordsRead, wordsWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	saidRead, saidWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	argv := slices.Concat(command, wait)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.ExtraFiles = "/", []*os.File{ordersFD - 3: nil, tellFD - 3: nil, wordsFD - 3: wordsRead, saidFD - 3: saidWrite}
	o = run(t, cmd, func() {
		wordsRead.Close()
		saidWrite.Close()
		p := process{words: wordsWrite, said: saidRead}
		if !p.hears('w') {
			t.Error("it does not wait")
		}
		took = p.hand(dir, script)
	})
	if more, err := io.ReadAll(saidRead); err != nil || len(more) > 0 {
		t.Errorf("it said more: %q, %v", more, err)
	}
	saidRead.Close()
	return o, took
}

// B5: a script cannot tell, but by where it looks on purpose, whether its interpreter was
// started for it or waited for it: it has the same words, names, modules, paths, files and
// variables, and fails in the same words. What an interpreter reads otherwise than from a
// file of text it does not take.
func TestWaits(t *testing.T) {
	const everything = `"""What it is."""
import sys, os
print(sorted((k, repr(v)) for k, v in globals().items() if k not in ("__loader__",)), __loader__.name, __loader__.path)
print(sys.argv, sys.orig_argv, sys.path, sys.flags, sorted(sys.modules), sorted(sys.path_importer_cache), sys.warnoptions)
print(os.getcwd(), dict(os.environ), [os.readlink(f"/proc/self/fd/{n}").split(":")[0] for n in os.listdir("/proc/self/fd") if int(n) < 3], len(os.listdir("/proc/self/fd")))
print(sys.stdin, sys.stdout.line_buffering, sys.excepthook, sys.gettrace(), sys.stdin.read(), __import__("__main__").__dict__ is globals())
import beside, pickle, threading
class Local: pass
pickle.loads(pickle.dumps(Local()))
threading.Thread(target=lambda: print(beside.name, threading.main_thread().name)).start()
`
	const everythingJS = `const fs = require('fs'), path = require('path');
console.log(process.argv, process.execArgv, process.argv0, __filename, require.main === module, module.id, module.children, module.paths, Object.keys(require.cache));
console.log(Object.getOwnPropertyNames(globalThis).sort().join(), Object.keys(process).sort().join(), process._preload_modules, process.env, process.cwd());
console.log(fs.readdirSync('/proc/self/fd').length, fs.readFileSync(0, 'utf8'), require('./beside.cjs'), new Error('here').stack);
const began = Date.now();
setTimeout(() => {
  console.log(Date.now() - began >= 99);
  const { Worker } = require('worker_threads');
  const seen = 'console.log("a worker", process.argv.slice(2), process.execArgv, process._preload_modules, Object.keys(require.cache), require.main);';
  new Worker(seen + 'new (require("worker_threads").Worker)(process.env.seen, { eval: true });', { eval: true, argv: ['x'], env: { seen } }).on('exit', () => {
    require('child_process').fork(path.join(__dirname, 'module.mjs'), ['forked']).on('exit', () => { throw new Error('at last'); });
  });
}, 100);
`
	files := map[string]string{
		"beside.py":          "name = __name__\n",
		"everything.py":      everything,
		"raises.py":          "import beside\ndef f():\n    raise ValueError('é')\ntry:\n    f()\nexcept ValueError as e:\n    raise RuntimeError('x') from e\n",
		"hook.py":            "import sys\nsys.excepthook = lambda *a: print('mine', a[0], a[2].tb_lineno)\n1/0\n",
		"last.py":            "import atexit, sys\natexit.register(lambda: print(sys.last_type, sys.last_traceback.tb_lineno))\n1/0\n",
		"exits.py":           "import sys\nprint('out')\nsys.exit('a reason')\n",
		"stops.py":           "class Stop(BaseException): pass\nraise Stop('x')\n",
		"interrupted.py":     "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(1000): pass\n",
		"code.py":            "import os, atexit\natexit.register(print, 'at the end')\nraise SystemExit(7)\n",
		"syntax.py":          "x = 1\ny = = 2\n",
		"indent.py":          "if 1:\nx = 1\n",
		"warns.py":           "import warnings\nx = '\\d'\nwarnings.warn('careful')\ndef f(): warnings.warn('deeper', stacklevel=2)\nf()\n",
		"shadows.py":         "exec = globals = SystemExit = Exception = type = None\n1/0\n",
		"names.py":           "wait = 1\nprint(wait)\nprint([n for n in globals()])\n",
		"returns.py":         "print('a')\r\nprint('''b\r\nc''')\r\n",
		"cookie.py":          "# -*- coding: utf-8 -*-\nprint('é')\n",
		"mark.py":            "\ufeffprint('marked')\n",
		"empty.py":           "",
		"killed.py":          "import os, signal\nprint('before', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n",
		"latin.py":           "# -*- coding: latin-1 -*-\nprint('\xe9')\n",
		"zero.py":            "print('a\x00b')\n",
		"everything.js":      everythingJS,
		"beside.cjs":         "module.exports = new Error('beside').stack;\n",
		"module.mjs":         "import fs from 'fs';\nconsole.log(import.meta.url, process.argv, process.execArgv, typeof require, fs.readFileSync(0, 'utf8'));\nawait new Promise((r) => setTimeout(r, 1));\nconsole.log((await import('./beside.cjs')).default);\n",
		"never.mjs":          "await new Promise(() => {});\n",
		"syntax.js":          "const x = ;\n",
		"exits.js":           "process.exitCode = 3; process.on('exit', (c) => console.log('at the end', c));\n",
		"rejects.js":         "Promise.reject(new Error('nobody looks'));\n",
		"typed/module.js":    "console.log(import.meta.url, typeof require);\n",
		"typed/package.json": `{"type": "module"}`,
	}
	dir := t.TempDir()
	waitFiles := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, "scripts", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	refused := []string{"latin.py", "zero.py"}
	words := []string{"é", "a b", "", "--help", strings.Repeat("long ", 20_000)}
	for ext, kind := range map[string]string{"py": frame.Python, "js": frame.Node} {
		found, err := interpreter.Find(t.Context(), ext)
		if err != nil {
			t.Fatal(err)
		}
		var wait []string
		for _, w := range kinds[kind].more {
			if name, ours := strings.CutPrefix(w, "/etc/"); ours {
				w = filepath.Join(waitFiles, filepath.Base(name))
				for _, f := range etc {
					if f[0] == name {
						if err := os.WriteFile(w, []byte(f[1]), 0o644); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			wait = append(wait, w)
		}
		for name := range files {
			if !strings.HasSuffix(name, ext) && !(ext == "js" && strings.HasSuffix(name, ".mjs")) || name == "beside.py" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				script := append([]string{filepath.Join(dir, "scripts", name)}, words...)
				command := interpreter.Command(ext, found.Path)
				got, took := waited(t, command, wait, dir, script...)
				if want := !slices.Contains(refused, name); took != want {
					t.Fatalf("it took the script: %t, want %t", took, want)
				}
				if !took {
					if got.stdout != "" || got.stderr != "" {
						t.Errorf("it took no script and said %q, %q", got.stdout, got.stderr)
					}
					return
				}
				cmd := exec.Command(command[0], slices.Concat(command[1:], script)...)
				cmd.Dir = dir
				if want := run(t, cmd, func() {}); got != want {
					t.Errorf("it waited:\n%+v\nit was started:\n%+v", got, want)
				}
			})
		}
	}
}
