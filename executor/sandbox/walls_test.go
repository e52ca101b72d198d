//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/hostcase"
)

const syscallOf = "import ctypes, os, errno, sys\nlibc = ctypes.CDLL(None, use_errno=True)\ndef call(*a):\n  r = libc.syscall(*a)\n  return r if r >= 0 else errno.errorcode[ctypes.get_errno()]\n"

// B2: what a script tries in a box comes to nothing, with a control beside it
// where one can be.
func TestWalls(t *testing.T) {
	e, _ := open(t, sandbox.Config{})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	canary := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(canary, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, ext, text string
		ending          executor.Ending
		want            string
		memory          bool // needs a cgroup
		change          func(*executortest.Order)
	}{
		{"fork bomb", "py", "import os, time\nn = 0\ntry:\n  while True:\n    if os.fork() == 0: time.sleep(60)\n    n += 1\nexcept BlockingIOError: print(n)\n", executor.Exited(0), "19\n", false,
			func(o *executortest.Order) { o.Policy.Processes = 20 }},
		{"threads", "py", "import threading, time\nn = 0\ntry:\n  while True:\n    threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); n += 1\nexcept RuntimeError: print(n < 20)\nimport os; os._exit(0)\n", executor.Exited(0), "", false,
			func(o *executortest.Order) { o.Policy.Processes = 20 }},
		{"memory in files", "py", "n = 0\ntry:\n  with open('/tmp/big', 'wb') as f:\n    while True: n += f.write(b'x' * 2**20)\nexcept OSError as e: print(e.strerror, n > 2**20)\n", executor.Exited(0), "No space left on device True\n", false, nil},
		{"memory in shm", "py", "n = 0\ntry:\n  with open('/dev/shm/big', 'wb') as f:\n    while True: n += f.write(b'x' * 2**20)\nexcept OSError as e: print(e.strerror)\n", executor.Exited(0), "No space left on device\n", false, nil},
		{"many files", "py", "n = 0\ntry:\n  while True:\n    open('/tmp/%d' % n, 'w').close(); n += 1\nexcept OSError as e: print(e.strerror, n < 4200)\n", executor.Exited(0), "No space left on device True\n", false, nil},
		{"memory", "py", "x = []\nwhile True: x.append(bytearray(2**20))\n", executor.OutOfMemory(), "", true, nil},
		{"descriptors", "py", "import os\nn = 0\ntry:\n  while True: os.dup(0); n += 1\nexcept OSError as e: print(e.strerror, n)\n", executor.Exited(0), "Too many open files 253\n", false, nil},
		{"watches of files", "py", "import ctypes, errno\nn, libc = 0, ctypes.CDLL(None, use_errno=True)\nwhile libc.inotify_init1(0) >= 0: n += 1\nprint(errno.errorcode[ctypes.get_errno()], n)\n", executor.Exited(0), "EMFILE 16\n", false, nil},
		{"inherited descriptors", "py", "import os\nprint(sorted(n for n in os.listdir('/proc/self/fd') if os.path.lexists('/proc/self/fd/' + n)))\n", executor.Exited(0), "['0', '1', '2']\n", false, nil},
		{"core files", "py", "import resource\nprint(resource.getrlimit(resource.RLIMIT_CORE))\n", executor.Exited(0), "(1, 1)\n", false, nil},
		{"a canary of the host", "py", "import os\nprint(os.path.exists(" + fmt.Sprintf("%q", canary) + "), os.path.exists('/usr/bin/python3'))\n", executor.Exited(0), "False True\n", false, nil},
		{"mount", "py", syscallOf + "call(165 if os.uname().machine == 'x86_64' else 40, 0, 0, 0, 0, 0)\nprint('alive')\n", executor.PolicyViolation(), "", false, nil},
		{"bpf", "py", syscallOf + "call(321 if os.uname().machine == 'x86_64' else 280, 0, 0, 0)\nprint('alive')\n", executor.PolicyViolation(), "", false, nil},
		{"a child that mounts", "sh", "python3 -c 'import ctypes, os; ctypes.CDLL(None).mount(0, 0, 0, 0, 0)'; echo $?\n", executor.Exited(0), "159\n", false, nil},
		{"capabilities", "sh", "grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid)' /proc/self/status | tr -s '\\t ' ' ' | cut -d' ' -f2 | sort -u | paste -sd' '\n", executor.Exited(0), "0000000000000000 1 1000 2\n", false, nil},
		{"set-user-id programs", "sh", "/usr/bin/su -c true </dev/null >/dev/null 2>&1 && echo root; find /usr/bin -perm -4000 -user 0 2>/dev/null | wc -l\n", executor.Exited(0), "0\n", false, nil},
		{"becoming root", "py", "import os\nfor f in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.chroot('/tmp'), lambda: os.chown('/tmp/home', 0, 0), lambda: os.mknod('/tmp/d', 0o60600, os.makedev(8, 0))):\n  try: f(); print('done')\n  except OSError as e: pass\nprint(os.getuid(), os.getgroups() in ([], [65534], [1000]))\n", executor.Exited(0), "1000 True\n", false, nil},
		{"links are not followed", "sh", "ln -s /usr/bin/id l; cat l >/dev/null 2>&1 && echo followed; readlink l; ln -s / /outputs/root; ls /outputs/root/ 2>/dev/null; true\n", executor.Exited(0), "/usr/bin/id\n", false, nil},
		{"programs in /tmp", "sh", "printf '#!/bin/sh\\necho ran\\n' >/tmp/x; chmod 755 /tmp/x; /tmp/x 2>/dev/null; cp /tmp/x x; chmod 755 x; ./x\n", executor.Exited(0), "ran\n", false, nil},
		{"session and group", "py", "import os\nprint(os.getsid(0) == os.getpid() == os.getpgid(0), os.getppid())\n", executor.Exited(0), "True 1\n", false, nil},
		{"signals to the first process", "sh", "kill -9 1; kill -STOP 1; kill -TERM 1; sleep 0.1; echo still here\n", executor.Exited(0), "still here\n", false, nil},
		{"hidden first process", "py", "import os\nprint(sorted(p for p in os.listdir('/proc') if p.isdigit()) == [str(os.getpid())])\nfor p in ('/proc/1/mem', '/proc/1/environ', '/proc/1/root', '/proc/sys', '/proc/kcore', '/proc/keys', '/sys', '/proc/self/../1/maps'):\n  if os.path.lexists(p): print(p)\n", executor.Exited(0), "True\n", false, nil},
		{"standard input", "py", "import os\ntry: os.write(0, b'x')\nexcept OSError as e: print(e.strerror)\nprint(open('/dev/stdin').read())\n", executor.Exited(0), "Operation not permitted\n{\"a\":1}\n", false,
			func(o *executortest.Order) { o.Mode, o.Arguments = gate.Stdin, map[string]int{"a": 1} }},
		{"names that the skill has", "sh", "cat inputs/x outputs; ls /inputs; echo y >/outputs/z\n", executor.Exited(0), "12given\n", false, func(o *executortest.Order) {
			o.Files = append(o.Files, bundle.File{Path: "inputs/x", Data: []byte("1")}, bundle.File{Path: "outputs", Data: []byte("2")})
			o.Inputs = []bundle.File{{Path: "given", Data: nil}}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.memory && !stands(t, e, "memory") {
				t.Log("not promised: no cgroup holds memory here")
				return
			}
			o := script(tc.ext, tc.text)
			if tc.change != nil {
				tc.change(&o)
			}
			res, err := e.Execute(t.Context(), admit(t, w, o))
			if err != nil {
				t.Fatal(err)
			}
			if res.Ending != tc.ending || string(res.Stdout) != tc.want && tc.want != "" || strings.Contains(string(res.Stdout), "alive") {
				t.Errorf("got %v, output %q, want %v, %q; standard error: %s; notes: %q", res.Ending, res.Stdout, tc.ending, tc.want, res.Stderr, res.Notes)
			}
		})
	}
}

// The network of a run is none. A script that asks for it is told so, and so is
// whoever reads the notes; asking without end wears nobody out.
func TestRefusedSocketsAreNoted(t *testing.T) {
	e, _ := open(t, sandbox.Config{})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	const ask = "import socket\nn = 0\nfor i in range(%d):\n  try: socket.socket(socket.%s)\n  except OSError: n += 1\nprint(n)\n"
	for _, tc := range []struct {
		name, text, want string
		noted            bool
	}{
		{"none", "print(0)\n", "0\n", false},
		{"unix", fmt.Sprintf(ask, 3, "AF_UNIX"), "0\n", false},
		{"vsock", fmt.Sprintf(ask, 3, "AF_VSOCK"), "3\n", false},
		{"netlink", fmt.Sprintf(ask, 3, "AF_NETLINK"), "3\n", true},
		{"internet", fmt.Sprintf(ask, 1, "AF_INET"), "1\n", true},
		{"internet 6", fmt.Sprintf(ask, 1, "AF_INET6"), "1\n", true},
		{"without end", fmt.Sprintf(ask, 20000, "AF_INET"), "20000\n", true},
		{"looking a name up", "import urllib.request\ntry: urllib.request.urlopen('http://example.com/')\nexcept OSError as e: print('no')\n", "no\n", true},
		{"killed while asking", "import socket, threading, os, signal, time\ndef f():\n  while True:\n    try: socket.socket(socket.AF_INET)\n    except OSError: pass\nfor i in range(8): threading.Thread(target=f, daemon=True).start()\nprint(1, flush=True)\nos._exit(0)\n", "1\n", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, err := e.Execute(t.Context(), admit(t, w, script("py", tc.text)))
			if err != nil || string(res.Stdout) != tc.want || res.Ending != executor.Exited(0) {
				t.Errorf("got %v, %q, %v: %s", res.Ending, res.Stdout, err, res.Stderr)
			}
			if got := strings.Contains(strings.Join(res.Notes, "\n"), "asked for the network"); got != tc.noted && tc.name != "killed while asking" {
				t.Errorf("noted: %v, want %v: %q", got, tc.noted, res.Notes)
			}
		})
	}
}

// An interpreter that lies where no script can see it is named with what to do,
// and runs where its folder is shown.
func TestInterpreterElsewhere(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "tracon-") // not below /tmp: a box has its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sh")
	if err := copyFile("/bin/sh", path); err != nil {
		t.Fatal(err)
	}
	f, err := interpreter.Probe(t.Context(), "sh", path)
	if err != nil {
		t.Fatal(err)
	}
	w := executortest.NewWorld(map[string]gate.Interpreter{"sh": f.Interpreter()})
	e, _ := open(t, sandbox.Config{})
	_, err = e.Execute(t.Context(), admit(t, w, script("sh", "echo hi\n")))
	var step *sandbox.StepError
	if !errors.Is(err, executor.ErrUnavailable) || !errors.As(err, &step) || step.Step != "opening the interpreter" || step.Remedy == "" {
		t.Errorf("got error %v", err)
	}
	e, _ = open(t, sandbox.Config{Folders: []string{dir}})
	res, err := e.Execute(t.Context(), admit(t, w, script("sh", "echo hi; touch "+dir+"/x 2>/dev/null || echo closed\n")))
	if err != nil || string(res.Stdout) != "hi\nclosed\n" {
		t.Errorf("got %q, %v, %s", res.Stdout, err, res.Stderr)
	}
}

// A folder that cannot be shown, or would hide what a box has, is refused.
func TestFoldersAreChecked(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/usr", link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"relative", "/", "/nowhere/at/all", link, "/proc", "/dev", "/tmp", "/usr/../usr"} {
		e, err := sandbox.New(sandbox.Config{Runtime: filepath.Join(t.TempDir(), "run"), Folders: []string{dir}})
		if err == nil {
			t.Errorf("%s: no error", dir)
			e.Close()
		}
	}
	// What lies below a folder that is always shown is shown already.
	e, _ := open(t, sandbox.Config{Folders: []string{"/usr/share"}})
	if p, err := e.Posture(t.Context()); err != nil || len(p.Walls) == 0 {
		t.Error(err)
	}
}

// A policy with too little memory for the files is told so before anything starts.
func TestTooLittleMemory(t *testing.T) {
	e, _ := open(t, sandbox.Config{})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	o := script("sh", "true\n")
	o.Files = append(o.Files, bundle.File{Path: "big", Data: slices.Repeat([]byte("x"), 7<<20)})
	o.Policy.Memory = 8 << 20
	if _, err := e.Execute(t.Context(), admit(t, w, o)); !errors.Is(err, executor.ErrUnavailable) || !strings.Contains(err.Error(), "limit of memory") {
		t.Errorf("got error %v", err)
	}
}
