//go:build linux

package hostile_test

import (
	"path/filepath"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/bare"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/gate"
)

func interpreters(t testing.TB) map[string]gate.Interpreter {
	t.Helper()
	found := map[string]gate.Interpreter{}
	for _, ext := range []string{"py", "sh"} {
		f, err := interpreter.Find(t.Context(), ext)
		if err != nil {
			t.Fatal(err)
		}
		found[ext] = f.Interpreter()
	}
	return found
}

func open(t testing.TB) *process.Executor {
	t.Helper()
	e, err := process.New(process.Config{Runtime: filepath.Join(t.TempDir(), "run")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// A plain process has few of the walls. Those it holds; for all others it is the
// control, on which each attempt must get through.
func TestProcess(t *testing.T) {
	e := open(t)
	p, err := e.Posture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := bare.Executor{Dir: t.TempDir()}
	hostile.Run(t, hostile.Setup{
		New: func(executortest.T) executor.Executor { return e }, Interpreters: interpreters(t), Lacks: hostile.Lacking(p),
		Control: func(_ executortest.T, w hostile.Wall) executor.Executor {
			switch w {
			case hostile.Environment, hostile.Descriptors, hostile.Cleanup, hostile.Collection, hostile.Tasks, hostile.Memory:
				return b // a process has these walls, or has them where the host's cgroups allow it
			}
			return e
		},
	})
}
