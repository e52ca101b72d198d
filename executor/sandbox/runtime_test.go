//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/internal/hostcase"
	"github.com/tracon-go/tracon/internal/rootfs"
)

// machine is a folder that is made once for all tests, with a runtime made of
// this machine's programs.
var machine struct {
	once   sync.Once
	dir    string
	digest bundle.Digest
	err    error
}

// runtimeFolder returns the store of runtimes with one that has sh and Python, and its digest.
func runtimeFolder(t testing.TB) (*image.Store, bundle.Digest) {
	t.Helper()
	m := &machine
	m.once.Do(func() {
		if m.dir, m.err = os.MkdirTemp("", "tracon-runtime-"); m.err != nil {
			return
		}
		root := filepath.Join(m.dir, "root")
		if m.err = os.Mkdir(root, 0o755); m.err != nil {
			return
		}
		if m.err = rootfs.Make(root, append(rootfs.Scripts, rootfs.Python...)...); m.err != nil {
			return
		}
		for name, text := range map[string]string{
			"etc/of-the-runtime": "its own", "etc/folder/file": "its own", "etc/shadow": "secret", "etc/passwd": "other", "tmp/hidden": "hidden", "srv/data": "data",
		} {
			if m.err = errors.Join(os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(root, name), []byte(text), 0o600)); m.err != nil {
				return
			}
		}
		if m.err = errors.Join(os.MkdirAll(filepath.Join(root, "opt"), 0o755), os.Symlink("/usr/bin/python3", filepath.Join(root, "opt/py")),
			os.Symlink("../../../../usr/bin/env", filepath.Join(root, "opt/out")), os.Symlink("/etc/of-the-runtime", filepath.Join(root, "etc/link"))); m.err != nil {
			return
		}
		var made *image.Import
		if made, m.err = image.New(filepath.Join(m.dir, "images")).ImportFolder(t.Context(), root, image.Limits{}); m.err != nil {
			return
		}
		m.digest = made.Digest
		m.err = made.Image.Close()
	})
	if m.err != nil {
		t.Fatal(m.err)
	}
	return image.New(filepath.Join(m.dir, "images")), m.digest
}

// removeMachine is called when all tests are over.
func removeMachine() error {
	if machine.dir == "" {
		return nil
	}
	_, err := image.New(filepath.Join(machine.dir, "images")).Prune(func(bundle.Digest) bool { return false })
	return errors.Join(err, os.RemoveAll(machine.dir))
}

// inRuntime finds the interpreters in the runtime.
func inRuntime(t testing.TB, s *image.Store, d bundle.Digest, exts ...string) map[string]gate.Interpreter {
	t.Helper()
	i, err := s.Image(d)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	list := map[string]gate.Interpreter{}
	for _, ext := range exts {
		f, err := interpreter.Inside(ext, "machine", i, "")
		if err != nil {
			t.Fatal(err)
		}
		list[ext] = f.Interpreter()
	}
	return list
}

// R1, B2: the whole suite holds for interpreters that lie in a runtime.
func TestConformanceInRuntime(t *testing.T) {
	s, d := runtimeFolder(t)
	e, runtime := open(t, sandbox.Config{Images: s})
	ext := "py"
	if os.Getenv(asNobodyEnv) != "" {
		ext = "sh" // what differs by language does not differ by user
	}
	executortest.Run(t, executortest.Setup{
		New:          func(executortest.T) executor.Executor { return e },
		Interpreters: inRuntime(t, s, d, ext),
		Leftovers:    func() []string { return left(e, runtime) },
		Lacks:        executortest.Lacks{Memory: !stands(t, e, "memory")},
	})
}

func (r told) String() string { return fmt.Sprintf("%q, %v, %q", r.res.Stdout, r.err, r.res.Stderr) }

// A told is what came of a script.
type told struct {
	res executor.Result
	err error
}

func tell(t *testing.T, e executor.Executor, w *executortest.World, ext, text string) told {
	t.Helper()
	res, err := e.Execute(t.Context(), admit(t, w, script(ext, text)))
	return told{res, err}
}

// B2: a runtime stands in place of the host's programs. Nothing of the host is
// seen in it, which a script with the host's own interpreter does see; nothing of
// it can be changed; a box's own folders and files stay its own.
func TestRuntimeHidesTheHost(t *testing.T) {
	const canary = "/usr/bin/setpriv"
	s, d := runtimeFolder(t)
	e, _ := open(t, sandbox.Config{Images: s})
	inside, outside := executortest.NewWorld(inRuntime(t, s, d, "sh", "py")), executortest.NewWorld(hostcase.Interpreters(t))
	for _, tc := range []struct{ name, text, here, host string }{
		{"a program of the host", "[ -e " + canary + " ] && echo there || echo no\n", "no\n", "there\n"},
		{"a folder of the runtime", "cat /srv/data 2>/dev/null || echo no\n", "data", "no\n"},
		{"its own /etc", "cat /etc/of-the-runtime /etc/folder/file /etc/link 2>/dev/null || echo no\n", "its ownits ownits own", "no\n"},
		{"the box's /etc", "[ -e /etc/shadow ] && echo there; grep -c other /etc/passwd; grep -c skill /etc/passwd\n", "0\n1\n", "0\n1\n"},
		{"the box's /tmp", "[ -e /tmp/hidden ] && echo there || echo no\n", "no\n", "no\n"},
		{"writing", "for f in /usr/x /srv/x /srv/data /etc/x /etc/folder/x /x; do (echo x >$f) 2>/dev/null && echo $f; done; echo end\n", "end\n", "end\n"},
		{"a link out of it", "/opt/out -i A=1 2>/dev/null || echo no\n", "A=1\n", "no\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tell(t, e, inside, "sh", tc.text); got.err != nil || string(got.res.Stdout) != tc.here {
				t.Errorf("in the runtime: %v; want %q", got, tc.here)
			}
			if got := tell(t, e, outside, "sh", tc.text); got.err != nil || string(got.res.Stdout) != tc.host {
				t.Errorf("with the host's programs: %v; want %q", got, tc.host)
			}
		})
	}
	a, b := tell(t, e, inside, "sh", "true\n"), tell(t, e, inside, "sh", "exit 1\n")
	c := tell(t, e, outside, "sh", "true\n")
	if a.res.PostureDigest.IsZero() || a.res.PostureDigest != b.res.PostureDigest || a.res.PostureDigest == c.res.PostureDigest {
		t.Errorf("the postures are %s and %s in the runtime, %s without", a.res.PostureDigest, b.res.PostureDigest, c.res.PostureDigest)
	}
}

// An interpreter is found, opened and started inside the runtime, through its
// links, and only as the file that was probed in the image that was probed.
func TestInterpreterInRuntime(t *testing.T) {
	s, d := runtimeFolder(t)
	i, err := s.Image(d)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	linked, err := interpreter.Inside("py", "machine", i, "/opt/py")
	if err != nil {
		t.Fatal(err)
	}
	e, _ := open(t, sandbox.Config{Images: s})
	got := tell(t, e, executortest.NewWorld(map[string]gate.Interpreter{"py": linked.Interpreter()}), "py", "import sys, json; print(sys.executable)\n")
	if got.err != nil || string(got.res.Stdout) != "/opt/py\n" {
		t.Errorf("through a link: %v", got)
	}
	for _, path := range []string{"/nowhere", "/etc/of-the-runtime", "/usr", "usr/bin/python3", "/usr/../usr/bin/python3", "/etc/link"} {
		if f, err := interpreter.Inside("py", "machine", i, path); !errors.Is(err, interpreter.ErrNotAvailable) {
			t.Errorf("%s: found %+v, %v; want ErrNotAvailable", path, f, err)
		}
	}
	if f, err := interpreter.Inside("js", "machine", i, ""); !errors.Is(err, interpreter.ErrNotAvailable) {
		t.Errorf("an interpreter that is not there: %+v, %v", f, err)
	}
	other := linked.Interpreter()
	other.Digest = bundle.Sum([]byte("other"))
	gone := linked.Interpreter()
	gone.Image = bundle.Sum([]byte("gone"))
	for _, tc := range []struct {
		name   string
		in     gate.Interpreter
		images *image.Store
		want   error
	}{
		{"another file", other, s, interpreter.ErrChanged},
		{"an image that is not there", gone, s, image.ErrNotFound},
		{"no images", linked.Interpreter(), nil, executor.ErrUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, _ := open(t, sandbox.Config{Images: tc.images})
			got := tell(t, e, executortest.NewWorld(map[string]gate.Interpreter{"py": tc.in}), "py", "print(1)\n")
			if !errors.Is(got.err, tc.want) || !errors.Is(got.err, executor.ErrUnavailable) {
				t.Errorf("%v; want %v", got, tc.want)
			}
		})
	}
}

// A runtime is held from its first run on: nobody removes it under a script.
func TestRuntimeIsHeld(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	if err := errors.Join(os.Mkdir(root, 0o755), rootfs.Make(root, "/bin/sh")); err != nil {
		t.Fatal(err)
	}
	s := image.New(filepath.Join(dir, "images"))
	made, err := s.ImportFolder(t.Context(), root, image.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	w := executortest.NewWorld(inRuntime(t, s, made.Digest, "sh"))
	made.Image.Close()
	e, _ := open(t, sandbox.Config{Images: s})
	if got := tell(t, e, w, "sh", "echo hi\n"); got.err != nil || string(got.res.Stdout) != "hi\n" {
		t.Errorf("got %v", got)
	}
	if err := s.Remove(made.Digest); !errors.Is(err, image.ErrInUse) {
		t.Errorf("removed while it is held: %v, want ErrInUse", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(made.Digest); err != nil {
		t.Errorf("when it is not held any more: %v", err)
	}
}

// B2: the scripts of the hostile suite that are after the host's files and
// processes get nothing of them there either. That each works where nobody stands in its way is shown with the host's programs.
func TestHostileInRuntime(t *testing.T) {
	s, d := runtimeFolder(t)
	e, runtime := open(t, sandbox.Config{Images: s})
	hostile.RunHarmless(t, hostile.Setup{
		New: func(executortest.T) executor.Executor { return e }, Interpreters: inRuntime(t, s, d, "sh", "py"),
		Only: []string{"F01", "F03", "F04", "F06", "F07", "F09", "F11", "F12", "H09", "X03", "X04", "X07"},
		Leftovers: func() []string {
			return slices.DeleteFunc(left(e, runtime), func(s string) bool { return strings.Contains(s, "canary-") }) // the host's own
		},
	})
}

// All of it holds for an ordinary user.
func TestRuntimeAsAnotherUser(t *testing.T) {
	asNobody(t, false, "^(TestConformanceInRuntime|TestRuntimeHidesTheHost|TestInterpreterInRuntime|TestRuntimeIsHeld|TestHostileInRuntime)$")
}
