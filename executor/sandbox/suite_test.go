//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
)

// interpreters finds what the suite's dialects need. It fails where one is
// missing: a dialect that is left out proves nothing.
func interpreters(t testing.TB) map[string]gate.Interpreter {
	t.Helper()
	found := map[string]gate.Interpreter{}
	for _, ext := range []string{"sh", "py", "js"} {
		f, err := interpreter.Find(t.Context(), ext)
		if err != nil {
			t.Fatal(err)
		}
		found[ext] = f.Interpreter()
	}
	return found
}

// script returns the order of a script that is alone in its skill.
func script(ext, text string) executortest.Order {
	return executortest.Order{
		Files:  []bundle.File{{Path: "SKILL.md", Data: []byte("# A skill\n")}, {Path: "main." + ext, Data: []byte(text)}},
		Script: "main." + ext, Mode: gate.Argv, Policy: gate.Policy{Timeout: 2 * time.Minute},
	}
}

func admit(t testing.TB, w *executortest.World, o executortest.Order) executor.Request {
	t.Helper()
	req, err := w.Admit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// open returns an executor in a runtime folder of its own.
func open(t testing.TB, c sandbox.Config) (*sandbox.Executor, string) {
	t.Helper()
	if c.Runtime == "" {
		c.Runtime = filepath.Join(t.TempDir(), "run")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	e, err := sandbox.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if left := append(list(c.Runtime), leftovers(c.Runtime)...); len(left) > 0 {
			t.Errorf("case 40: after Close there is still %q", left)
		}
	})
	return e, c.Runtime
}

func list(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, filepath.Join(dir, e.Name()))
	}
	return names
}

// leftovers returns the folders of runs below the runtime folder, the cgroups of
// runs, and children of this process.
func leftovers(runtime string) []string {
	var left []string
	for _, path := range list(runtime) {
		if name := filepath.Base(path); !strings.HasSuffix(name, ".lock") {
			left = append(left, list(path)...)
			for _, dir := range cgroups(name) {
				runs, _ := filepath.Glob(filepath.Join(dir, "tenant-*/*"))
				for _, run := range runs {
					if info, err := os.Stat(run); err == nil && info.IsDir() {
						left = append(left, run)
					}
				}
			}
		}
	}
	return append(left, children()...)
}

// left returns what the runs of an executor have left, when it has let go of the
// boxes that were made ahead: what is of a run must not be among them.
func left(e *sandbox.Executor, runtime string) []string {
	sandbox.LetGo(e)
	return leftovers(runtime)
}

// cgroups returns the cgroups of the instance, in whatever hierarchy.
func cgroups(instance string) []string {
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		name, ok := strings.CutPrefix(filepath.Base(path), "tracon-")
		switch {
		case !strings.HasPrefix(name, "instance-") || !ok:
			return nil
		case name == instance:
			found = append(found, path)
		}
		return filepath.SkipDir // nothing of an instance lies below an instance
	})
	return found
}

// children returns the children of this process, zombies too.
func children() []string {
	var left []string
	for _, path := range list("/proc") {
		stat, _ := os.ReadFile(path + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			line, _ := os.ReadFile(path + "/cmdline")
			left = append(left, fmt.Sprintf("process %s (%s) %q", path, f[0], line))
		}
	}
	return left
}

// stands reports whether the wall stands here.
func stands(t testing.TB, e *sandbox.Executor, wall string) bool {
	t.Helper()
	p, err := e.Posture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range p.Walls {
		if w.Name == wall {
			return w.Stands
		}
	}
	t.Fatalf("the posture has no wall %q", wall)
	return false
}

func TestConformance(t *testing.T) {
	e, runtime := open(t, sandbox.Config{})
	executortest.Run(t, executortest.Setup{
		New:          func(executortest.T) executor.Executor { return e },
		Interpreters: interpreters(t),
		Leftovers:    func() []string { return left(e, runtime) },
		Lacks:        executortest.Lacks{Memory: !stands(t, e, "memory")},
	})
}
