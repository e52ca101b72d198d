package executortest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

// A T reports how one case went. A *testing.T is one.
type T interface {
	Helper()
	Context() context.Context // done when the case is over, or is to be given up
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any) // ends the case; it must not return
	Cleanup(func())
}

// A Tester is a [T] that can run cases below itself, each with one of its own
// kind, and some of them at once: Run is called from several goroutines. A *testing.T is one, and so is any type P with a method Run(string,
// func(P)) bool.
type Tester[P any] interface {
	T
	Run(name string, f func(P)) bool
}

// A Setup says what to run the suite against. New and Interpreters are required.
type Setup struct {
	// New returns the executor. It is called once; what it opens is closed by a
	// Cleanup of t.
	New func(t T) executor.Executor

	// Interpreters is the allow-list: the executor's interpreter for each extension,
	// by path or by name. A dialect whose extension is missing is left out.
	Interpreters map[string]gate.Interpreter

	// Dialects are the languages of the scripts. Nil means [Dialects].
	Dialects []Dialect

	// Leftovers returns what runs have left on the host: processes, folders,
	// cgroups. It is called when no run is under way and must return none. Nil: it
	// is not looked for.
	Leftovers func() []string

	// Start is how long a script may take to begin on an executor that must first boot
	// something for it. Zero: it begins at once, as far as the host is not busy.
	Start time.Duration

	// Lacks says what the executor does not claim to do. The zero Lacks is an
	// executor that does everything.
	Lacks Lacks
}

// Lacks names abilities that an executor has not. Each true field leaves cases
// out, which is logged.
type Lacks struct {
	Escapees bool // a process that leaves its session may outlive the run
	Memory   bool // memory is not limited to Request.Memory
	Signals  bool // a script that a signal killed is told apart from no other
	Files    bool // the script is alone: no siblings, inputs or outputs
	Live     bool // there is no output while the script runs
	Notes    bool // Result.Notes stays empty
	Pipes    bool // a named pipe that the script makes is known to its own kernel alone, and no note tells of it
}

// Run runs every case in every dialect.
func Run[P Tester[P]](t P, s Setup) {
	t.Helper()
	runAll(adapt(t), s)
}

// tester hides which kind of [Tester] is at work.
type tester struct {
	T
	run func(name string, f func(tester))
}

func adapt[P Tester[P]](t P) tester {
	return tester{t, func(name string, f func(tester)) { t.Run(name, func(t P) { f(adapt(t)) }) }}
}

func runAll(t tester, s Setup) {
	t.Helper()
	if s.New == nil || len(s.Interpreters) == 0 {
		t.Fatalf("executortest: Setup without New or without Interpreters")
	}
	if s.Dialects == nil {
		s.Dialects = Dialects()
	}
	ex := s.New(t)
	w := NewWorld(s.Interpreters)
	t.run("zero request", func(t tester) {
		_, err := ex.Execute(t.Context(), executor.Request{})
		if err != executor.ErrInvalidRequest {
			t.Errorf("R18: a Request that came through no gate is refused with ErrInvalidRequest: got error %v", err)
		}
	})
	ran := false
	for _, d := range s.Dialects {
		if _, ok := s.Interpreters[d.Extension]; !ok {
			t.Logf("left out: dialect %s, no interpreter for %q", d.Name, d.Extension)
			continue
		}
		ran = true
		t.run(d.Name, func(t tester) {
			dt := dialectTrial{t, s, w, ex, d}
			for _, c := range cases {
				if dt.run(c) {
					dt.nothingLeft(c.name)
				}
			}
			var all sync.WaitGroup
			for _, c := range waitingCases {
				all.Go(func() { dt.run(c) })
			}
			all.Wait()
			dt.nothingLeft("the cases that wait")
		})
	}
	if !ran {
		t.Errorf("executortest: no dialect has an interpreter; the suite proved nothing")
	}
}

// A dialectTrial is all cases in one dialect.
type dialectTrial struct {
	tester
	setup    Setup
	world    *World
	executor executor.Executor
	dialect  Dialect
}

// run runs the case, unless it is to be left out.
func (d dialectTrial) run(c testCase) (ran bool) {
	if c.lacks != nil && c.lacks(d.setup.Lacks) {
		d.Logf("left out: %s: the executor lacks it", c.name)
		return false
	}
	if _, ok := d.dialect.Programs[c.program]; !ok && c.program != "" {
		d.Logf("left out: %s: dialect %s has no program %q", c.name, d.dialect.Name, c.program)
		return false
	}
	d.tester.run(c.name, func(t tester) {
		k := &trial{dialectTrial: d, one: c}
		k.tester = t
		c.check(k)
	})
	return true
}

func (d dialectTrial) nothingLeft(after string) {
	if d.setup.Leftovers == nil {
		return
	}
	if left := d.setup.Leftovers(); len(left) > 0 {
		d.Errorf("B3: when a run has ended, nothing of it is left: found %q after %s", left, after)
	}
}

// A trial is one case in one dialect.
type trial struct {
	dialectTrial
	one testCase
}

// A testCase is one rule. Its check runs the program, and perhaps others too.
type testCase struct {
	name    string
	rule    string // what a failure prints first
	program Program
	lacks   func(Lacks) bool
	check   func(*trial)
}

func (k *trial) bad(format string, args ...any) {
	k.Helper()
	k.Errorf("%s: %s", k.one.rule, fmt.Sprintf(format, args...))
}
