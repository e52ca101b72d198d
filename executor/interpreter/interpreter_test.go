package interpreter_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/execfile"
)

// distribution is a Python that is no shim. Every test host has it: see ./check.
func distribution(t *testing.T) string {
	t.Helper()
	const path = "/usr/bin/python3"
	if _, err := os.Stat(path); err != nil {
		missing(t, path)
	}
	return path
}

// missing skips a test on a host that lacks what it needs, and fails it where
// everything must be there.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("TRACON_REQUIRE") == "all" {
		t.Fatalf("%s is missing, and TRACON_REQUIRE=all", what)
	}
	t.Skipf("%s is missing", what)
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := execfile.Write(path, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return path
}

func sum(t *testing.T, path string) bundle.Digest {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Sum(b)
}

func TestProbeRealInterpreters(t *testing.T) {
	for _, tc := range []struct{ ext, name string }{
		{"py", "/usr/bin/python3"}, {"js", "/usr/bin/node"}, {"mjs", "/usr/bin/node"}, {"cjs", "/usr/bin/node"}, {"sh", "/bin/sh"}, {"sh", "/bin/bash"}, {"bash", "/bin/bash"}, {"pl", "/usr/bin/perl"},
	} {
		t.Run(tc.ext+" "+filepath.Base(tc.name), func(t *testing.T) {
			if _, err := os.Stat(tc.name); err != nil {
				missing(t, tc.name)
			}
			f, err := interpreter.Probe(t.Context(), tc.ext, tc.name)
			if err != nil {
				t.Fatal(err)
			}
			if f.Path != tc.name || f.Through != "" {
				t.Errorf("got path %q through %q, want %q itself", f.Path, f.Through, tc.name)
			}
			if want := sum(t, tc.name); f.Digest != want {
				t.Errorf("got digest %v, want that of the file, %v", f.Digest, want)
			}
			if f.Version == "" && filepath.Base(tc.name) != "sh" {
				t.Error("it has no version")
			}
		})
	}
}

// Case 35: a wrapper on the search path is seen through, or it is named.
func TestCase35Wrappers(t *testing.T) {
	python := distribution(t)
	for _, tc := range []struct {
		name, ext, text string
		want            string // of the error; empty: it is seen through
	}{
		{"wrapper", "py", "#!/bin/sh\nexec " + python + " \"$@\"\n", ""},
		{"wrapper of a wrapper", "py", "#!/bin/sh\nexec env A=b " + python + " \"$@\"\n", ""},
		{"stub that exits 9", "py", "#!/bin/sh\necho 'Python was not found' >&2\nexit 9\n", "exit status 9"},
		{"stub that says nothing", "py", "#!/bin/sh\nexit 0\n", "does not answer"},
		{"stub that lies", "py", "#!/bin/sh\nprintf 'tracon-interpreter\\tpython3\\t3.9.1\\n'\n", "no absolute path"},
		{"stub that says it is itself", "py", "#!/bin/sh\nprintf 'tracon-interpreter\\t%s\\t3.9.1\\n' \"$0\"\n", "cannot be seen through"},
		{"stub that never ends its answer", "py", "#!/bin/sh\nwhile :; do echo y; done\n", "does not stop writing"},
		{"wrapper of a shell", "sh", "#!/bin/sh\nexec /bin/sh \"$@\"\n", "cannot be seen through"},
		{"old Python", "py", "#!/bin/sh\nprintf 'tracon-interpreter\\t/x\\t2.7.18\\n'\n", "Python 2.7.18"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "python3"), tc.text)
			if tc.ext == "sh" {
				path = write(t, filepath.Join(t.TempDir(), "sh"), tc.text)
			}
			f, err := interpreter.Probe(t.Context(), tc.ext, path)
			if strings.HasPrefix(tc.name, "wrapper") && tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if f.Path != python || f.Through != path || f.Digest != sum(t, python) {
					t.Errorf("got %+v, want %s through %s", f, python, path)
				}
				return
			}
			if !errors.Is(err, interpreter.ErrNotAvailable) || !errors.Is(err, executor.ErrUnavailable) {
				t.Fatalf("got error %v, want one that wraps ErrNotAvailable and executor.ErrUnavailable", err)
			}
			for _, want := range []string{"interpreter not available", path, tc.want, "install"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not name %q", err, want)
				}
			}
		})
	}
}

// Case 35: what is missing is named with the path that was tried.
func TestCase35Missing(t *testing.T) {
	_, err := interpreter.Probe(t.Context(), "py", "/nowhere/python3")
	if !errors.Is(err, interpreter.ErrNotAvailable) || !strings.Contains(err.Error(), "/nowhere/python3") ||
		strings.Contains(err.Error(), "no such file or directory") {
		t.Errorf("got %v", err)
	}
	empty := t.TempDir()
	t.Setenv("PATH", empty)
	_, err = interpreter.Find(t.Context(), "py")
	if !errors.Is(err, interpreter.ErrNotAvailable) || !strings.Contains(err.Error(), empty) || !strings.Contains(err.Error(), "apt-get install python3") {
		t.Errorf("got %v", err)
	}
	if _, err = interpreter.Find(t.Context(), "cobol"); !errors.Is(err, interpreter.ErrNotAvailable) {
		t.Errorf("got %v", err)
	}
}

// Case 35: a real executable later on PATH is preferred to a shim before it; a
// shim alone is seen through; a broken one does not hide a good one.
func TestFindPrefersTheRealOne(t *testing.T) {
	python := distribution(t)
	shims := t.TempDir()
	marker := filepath.Join(t.TempDir(), "ran")
	write(t, filepath.Join(shims, "python3"), "#!/bin/sh\ntouch "+marker+"\nexec "+python+" \"$@\"\n")

	t.Setenv("PATH", "relative:"+shims+":"+filepath.Dir(python))
	f, err := interpreter.Find(t.Context(), "py")
	if err != nil {
		t.Fatal(err)
	}
	if f.Path != python || f.Through != "" {
		t.Errorf("got %q through %q, want %q", f.Path, f.Through, python)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the shim was run, though a real one stands behind it")
	}

	t.Setenv("PATH", shims)
	if f, err = interpreter.Find(t.Context(), "py"); err != nil || f.Path != python || f.Through == "" {
		t.Errorf("got %+v, %v; want %s through the shim", f, err, python)
	}

	broken := t.TempDir()
	write(t, filepath.Join(broken, "python3"), "#!/bin/sh\nexit 9\n")
	write(t, filepath.Join(broken, "python"), "#!/bin/sh\nexit 8\n")
	t.Setenv("PATH", broken)
	_, err = interpreter.Find(t.Context(), "py")
	var na *interpreter.NotAvailableError
	if !errors.As(err, &na) || len(na.Tried) != 2 || !strings.Contains(err.Error(), "status 9") || !strings.Contains(err.Error(), "status 8") {
		t.Errorf("got %v, want an error that names both", err)
	}
}

// Case 35: one that the executor cannot start is passed over for one behind it that leads
// to the same file, and where no other is there the error says why.
func TestFindForPassesOver(t *testing.T) {
	python := distribution(t)
	venv := t.TempDir()
	linked := filepath.Join(venv, "python3")
	if err := os.Symlink(python, linked); err != nil {
		t.Fatal(err)
	}
	hidden := errors.New("no box shows it")
	shown := func(f interpreter.Found) error {
		if filepath.Dir(f.Path) == venv {
			return hidden
		}
		return nil
	}
	t.Setenv("PATH", venv+":"+filepath.Dir(python))
	if f, err := interpreter.FindFor(t.Context(), "py", shown); err != nil || f.Path != python {
		t.Errorf("got %+v, %v; want %s", f, err, python)
	}
	if f, err := interpreter.Find(t.Context(), "py"); err != nil || f.Path != linked {
		t.Errorf("got %+v, %v; want the first", f, err)
	}
	t.Setenv("PATH", venv)
	if _, err := interpreter.FindFor(t.Context(), "py", shown); !errors.Is(err, interpreter.ErrNotAvailable) || !errors.Is(err, hidden) || !strings.Contains(err.Error(), linked) {
		t.Errorf("got %v", err)
	}
}

// A probe that hangs ends, and leaves no process behind.
func TestProbeIsStopped(t *testing.T) {
	sleep := "sleep 4711." + strconv.Itoa(os.Getpid()) // that of no other test
	path := write(t, filepath.Join(t.TempDir(), "python3"), "#!/bin/sh\n"+sleep+" &\nwait\n")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := interpreter.Probe(ctx, "py", path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want the cause of the context", err)
	}
	if runtime.GOOS == "linux" {
		// It was told to end, and takes its time on a machine that does other things too.
		for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			out, err := exec.Command("pgrep", "-f", sleep+"$").Output()
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
				break // there is none
			}
			if err != nil || time.Now().After(until) {
				t.Fatalf("a process is left: %s, %v", out, err)
			}
		}
	}
}

func TestCommand(t *testing.T) {
	for _, tc := range []struct {
		name, ext, path string
		want            []string
	}{
		{"python", "py", "/usr/bin/python3.12", []string{"/usr/bin/python3.12", "-E", "-s", "-B", "-u"}},
		{"node", "js", "/usr/bin/node", []string{"/usr/bin/node", "--no-addons", "--disable-proto=throw"}},
		{"bash for sh", "sh", "/bin/bash", []string{"/bin/bash", "--noprofile", "--norc", "-p"}},
		{"sh", "sh", "/bin/sh", []string{"/bin/sh"}},
		{"perl", "pl", "/usr/bin/perl", []string{"/usr/bin/perl"}},
		{"ruby", "rb", "/usr/bin/ruby3.1", []string{"/usr/bin/ruby3.1", "--disable=rubyopt"}},
		{"a name that says nothing", "py", "/opt/x/interp", []string{"/opt/x/interp", "-E", "-s", "-B", "-u"}},
		{"an extension that says nothing", "lua", "/usr/bin/lua5.4", []string{"/usr/bin/lua5.4"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := interpreter.Command(tc.ext, tc.path); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// The file that is started is the one that was probed: changed bytes, a replaced
// file and a missing digest are refused, a touched one is hashed again.
func TestOpenerHoldsTheDigest(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "lua"), "one")
	f, err := interpreter.Probe(t.Context(), "lua", path)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	var o interpreter.Opener
	open := func(in gate.Interpreter) error {
		file, err := o.Open(in)
		if err == nil {
			file.Close()
		}
		return err
	}
	for _, step := range []struct {
		name string
		do   func() error
		want error
	}{
		{"as probed", func() error { return nil }, nil},
		{"touched", func() error { return os.Chtimes(path, old, old) }, nil},
		{"changed in place, same size and time", func() error {
			return errors.Join(os.WriteFile(path, []byte("two"), 0o755), os.Chtimes(path, old, old))
		}, interpreter.ErrChanged},
		{"as before", func() error { return os.WriteFile(path, []byte("one"), 0o755) }, nil},
		{"replaced", func() error {
			return errors.Join(os.WriteFile(path+"2", []byte("two"), 0o755), os.Rename(path+"2", path))
		}, interpreter.ErrChanged},
		{"gone", func() error { return os.Remove(path) }, interpreter.ErrNotAvailable},
		{"a folder", func() error { return os.Mkdir(path, 0o755) }, executor.ErrUnavailable},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		err := open(f.Interpreter())
		if !errors.Is(err, step.want) {
			t.Errorf("%s: got error %v, want %v", step.name, err, step.want)
		}
		if err != nil && (!errors.Is(err, executor.ErrUnavailable) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: error %v does not wrap executor.ErrUnavailable, or does not name the file", step.name, err)
		}
	}
	for _, in := range []gate.Interpreter{{}, {Name: "python-3.12"}, {Path: "lua", Digest: f.Digest}, {Path: path}} {
		if err := open(in); !errors.Is(err, executor.ErrUnavailable) {
			t.Errorf("%+v: got error %v, want one that wraps executor.ErrUnavailable", in, err)
		}
	}
}
