//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/hostcase"
)

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
		if left := append(hostcase.List(c.Runtime), leftovers(c.Runtime)...); len(left) > 0 {
			t.Errorf("case 40: after Close there is still %q", left)
		}
	})
	return e, c.Runtime
}

// leftovers returns the folders of runs below the runtime folder, the cgroups of
// runs, and children of this process.
func leftovers(runtime string) []string {
	left := append(hostcase.Runs(runtime), hostcase.Below(hostcase.Cgroups(hostcase.Instances(runtime)...), "tenant-*/*")...)
	return append(left, hostcase.Children()...)
}

// left returns what the runs of an executor have left, when it has let go of the
// boxes that were made ahead: what is of a run must not be among them.
func left(e *sandbox.Executor, runtime string) []string {
	sandbox.LetGo(e)
	return leftovers(runtime)
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
		Interpreters: hostcase.Interpreters(t),
		Leftovers:    func() []string { return left(e, runtime) },
		Lacks:        executortest.Lacks{Memory: !stands(t, e, "memory")},
	})
}
