//go:build linux

package hostile_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/bare"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
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

func is(e executor.Executor) func(executortest.T) executor.Executor {
	return func(executortest.T) executor.Executor { return e }
}

// A plain process holds what it promises, and the rest is named as not promised.
// The controls are run with the sandbox's own test.
func TestProcess(t *testing.T) {
	e := open(t)
	p, err := e.Posture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[hostile.Outcome]int{}
	hostile.Run(t, hostile.Setup{
		New: is(e), Interpreters: interpreters(t), Lacks: hostile.Lacking(p), Races: 2 * time.Second,
		Report: func(r hostile.Row) {
			outcomes[r.Outcome]++
			if promised := !slices.Contains(hostile.Lacking(p), r.Wall); promised != (r.Outcome != hostile.NotPromised) {
				t.Errorf("%s: outcome %q, and promised is %v", r.ID, r.Outcome, promised)
			}
		},
	})
	least := 20
	if slices.Contains(hostile.Lacking(p), hostile.Cleanup) {
		least = 12 // without a cgroup a process promises less
	}
	if outcomes[hostile.Safe] < least || outcomes[hostile.NotPromised] < 40 {
		t.Errorf("got %v", outcomes)
	}
}

// A recorder is a test that fails for nobody, and can be read.
type recorder struct {
	t  *testing.T
	mu *sync.Mutex
	to map[string][]string // errors by the name of the case
	as string
}

func record(t *testing.T) recorder {
	return recorder{t, &sync.Mutex{}, map[string][]string{}, ""}
}

func (r recorder) Helper()                         {}
func (r recorder) Context() context.Context        { return r.t.Context() }
func (r recorder) Cleanup(f func())                { r.t.Cleanup(f) }
func (r recorder) Logf(format string, args ...any) {}
func (r recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to[r.as] = append(r.to[r.as], fmt.Sprintf(format, args...))
}

func (r recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r recorder) Run(name string, f func(recorder)) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.as = name
		f(r)
	}()
	<-done
	return true
}

// apart runs f where Fatalf may end it.
func (r recorder) apart(f func(recorder)) { r.Run("", f) }

// quick are cases of many walls that take no time.
var quick = []string{"F01", "F06", "F14", "F24", "H01", "X01", "X03", "X04", "X10", "X15", "N01", "N03", "K01", "K08", "U01", "U09", "R01", "R13"}

// An executor that promises everything and has no wall is found out by each case:
// the zero Setup is the strictest, and a secret that got through is an error.
func TestEachCaseNoticesThatNothingStands(t *testing.T) {
	r := record(t)
	rows := map[string]hostile.Row{}
	r.apart(func(r recorder) {
		hostile.Run(r, hostile.Setup{
			New: is(bare.Executor{Dir: t.TempDir()}), Interpreters: interpreters(t), Only: quick,
			Report: func(row hostile.Row) { rows[row.ID+" "+row.Language] = row },
		})
	})
	if len(rows) < len(quick) {
		t.Fatalf("got %d rows, and errors %q", len(rows), r.to)
	}
	for name, row := range rows {
		if row.Outcome != hostile.Unsafe || len(row.Through) == 0 || !strings.Contains(strings.Join(r.to[name], "\n"), "got through") {
			t.Errorf("%s: outcome %q, through %q, errors %q", name, row.Outcome, row.Through, r.to[name])
		}
		for _, text := range r.to[name] {
			if strings.Contains(text, "did not do its work") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

// A control on which an attempt comes to nothing proves nothing, and is an error.
func TestAControlThatDoesNotWorkIsAnError(t *testing.T) {
	e := open(t)
	r := record(t)
	var rows []hostile.Row
	r.apart(func(r recorder) {
		hostile.Run(r, hostile.Setup{
			New: is(e), Interpreters: interpreters(t), Only: []string{"X04"},
			Control: func(executortest.T, hostile.Wall) executor.Executor { return e }, // which has that wall
			Report:  func(row hostile.Row) { rows = append(rows, row) },
		})
	})
	if len(rows) != 2 {
		t.Fatalf("got rows %v, errors %q", rows, r.to)
	}
	for _, row := range rows {
		if row.Outcome != hostile.Safe || row.Control != hostile.Broken || !strings.Contains(strings.Join(r.to["X04 "+row.Language], "\n"), "proves nothing") {
			t.Errorf("got %+v, errors %q", row, r.to)
		}
	}
}

// What would hurt a host without the wall is left out where that is asked for.
func TestHarmless(t *testing.T) {
	hurts := map[string]bool{}
	for _, c := range hostile.Cases() {
		hurts[c.ID] = c.Hurts
	}
	var ran []string
	hostile.RunHarmless(t, hostile.Setup{
		New: is(open(t)), Interpreters: interpreters(t), Lacks: hostile.Walls(),
		Report: func(row hostile.Row) { ran = append(ran, row.ID) },
	})
	for _, c := range hostile.HarmlessCases() {
		if hurts[c.ID] || c.Hurts {
			t.Errorf("%s is said to be harmless", c.ID)
		}
	}
	r := record(t)
	r.apart(func(r recorder) {
		hostile.RunHarmless(r, hostile.Setup{New: is(open(t)), Interpreters: interpreters(t), Lacks: hostile.Walls(), Only: []string{"R01"}})
	})
	if len(r.to[""]) != 1 || !strings.Contains(r.to[""][0], "no case") {
		t.Errorf("asking for a case that hurts: got %q", r.to)
	}
	if len(ran) < 50 || slices.ContainsFunc(ran, func(id string) bool { return hurts[id] }) || !hurts["R01"] || !hurts["F14"] || hurts["F01"] {
		t.Errorf("got %q", ran)
	}
}

// A knocked-out wall that its case does not notice is an error.
func TestKnockOutNeedsRed(t *testing.T) {
	r := record(t)
	r.apart(func(r recorder) {
		hostile.KnockOut(r, hostile.Setup{New: is(open(t)), Interpreters: interpreters(t), Only: []string{"X04"}})
	})
	if !strings.Contains(strings.Join(r.to["X04 py"], "\n"), "does not notice") {
		t.Errorf("got %q", r.to)
	}
}

func TestSetupIsChecked(t *testing.T) {
	e := open(t)
	for _, tc := range []struct {
		name  string
		setup hostile.Setup
		red   bool
	}{
		{"no executor", hostile.Setup{Interpreters: interpreters(t)}, false},
		{"no interpreter", hostile.Setup{New: is(e)}, false},
		{"an unknown case", hostile.Setup{New: is(e), Interpreters: interpreters(t), Only: []string{"F99"}}, false},
		{"a knock-out of nothing", hostile.Setup{New: is(e), Interpreters: interpreters(t)}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := record(t)
			r.apart(func(r recorder) {
				if tc.red {
					hostile.KnockOut(r, tc.setup)
				} else {
					hostile.Run(r, tc.setup)
				}
			})
			if len(r.to[""]) != 1 {
				t.Errorf("got errors %q, want one", r.to)
			}
		})
	}
}

func TestLacking(t *testing.T) {
	down := func(names ...string) (walls []executor.Wall) {
		for _, n := range names {
			walls = append(walls, executor.Wall{Name: n})
		}
		return walls
	}
	for _, tc := range []struct {
		name string
		of   executor.Posture
		want []hostile.Wall
	}{
		{"nothing is known", executor.Posture{}, slices.DeleteFunc(hostile.Walls(), func(w hostile.Wall) bool {
			return slices.Contains([]hostile.Wall{hostile.Environment, hostile.Descriptors, hostile.Cleanup, hostile.Collection}, w)
		})},
		{"a sandbox", executor.Posture{Tier: grant.Sandbox}, []hostile.Wall{hostile.SharedFiles}},
		{"a sandbox without memory", executor.Posture{Tier: grant.Sandbox, Walls: down("memory", "core files")}, []hostile.Wall{hostile.SharedFiles, hostile.Memory}},
		{"a kernel", executor.Posture{Tier: grant.Kernel}, nil},
		{"a process that cannot stop what it left", executor.Posture{Tier: grant.Process, Walls: append(down("cleanup"), executor.Wall{Name: "memory", Stands: true})}, slices.DeleteFunc(hostile.Walls(), func(w hostile.Wall) bool {
			return slices.Contains([]hostile.Wall{hostile.Environment, hostile.Descriptors, hostile.Collection, hostile.Memory}, w)
		})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, hostile.Lacking(tc.of)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
