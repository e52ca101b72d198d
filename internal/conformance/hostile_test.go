//go:build linux

package conformance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest/bare"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/grant"
)

func open(t *testing.T) (*process.Executor, executor.Posture) {
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
	p, err := e.Posture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return e, p
}

// box is what an executor says that claims to be a sandbox.
var box = executor.Posture{Executor: "box", Tier: grant.Sandbox}

// B2: what an operator is told of a case is what came of it: a wall that is only
// said to stand is found out, and so is a case that proves nothing here.
func TestOutcomes(t *testing.T) {
	e, honest := open(t)
	nothing := bare.Executor{Dir: t.TempDir()}
	for _, tc := range []struct {
		name    string
		hostile Hostile
		want    map[string]Outcome // by id and language
	}{
		{"what a process promises", Hostile{Executor: e, Posture: honest, Cases: []string{"F01", "X04"}},
			map[string]Outcome{"F01 py": NotPromised, "F01 sh": NotPromised, "X04 py": Held, "X04 sh": Held}},
		{"a sandbox that is none", Hostile{Executor: nothing, Posture: box, Cases: []string{"X04", "F06"}, Walls: []string{"files"}},
			map[string]Outcome{"F06 py": GotThrough, "F06 sh": GotThrough}},
		{"controls", Hostile{Executor: e, Posture: honest, Control: e, Cases: []string{"F06"}},
			map[string]Outcome{"F06 py": NotPromised, "F06 sh": NotPromised}},
		{"a control that has the wall", Hostile{Executor: dead{}, Posture: box, Control: dead{}, Cases: []string{"K08"}},
			map[string]Outcome{"K08 py": NotKnown}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			told := 0
			tc.hostile.Over = func(Result) { told++ }
			results, err := tc.hostile.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]Outcome{}
			for _, r := range results {
				got[r.ID+" "+r.Language] = r.Outcome
				through := r.Outcome == GotThrough
				if r.Tried == "" || r.Must == "" || r.Class == "" || through != (len(r.Through) > 0) || through && len(r.Faults) == 0 {
					t.Errorf("%+v says too little", r)
				}
			}
			for name, want := range tc.want {
				if got[name] != want {
					t.Errorf("%s: got %q, want %q", name, got[name], want)
				}
			}
			if len(got) != len(tc.want) || told != len(results) {
				t.Errorf("got %v, and %d were told", got, told)
			}
		})
	}
}

// dead is an executor that runs nothing.
type dead struct{}

func (dead) Execute(context.Context, executor.Request) (executor.Result, error) {
	return executor.Result{}, executor.ErrUnavailable
}

// pinned is an executor on which an attack comes to nothing, and that says so.
type pinned struct{}

func (pinned) Execute(_ context.Context, req executor.Request) (executor.Result, error) {
	var out strings.Builder
	for _, n := range []string{"executable data", "no random addresses", "high bits", "another system"} {
		out.WriteString(n + "\tno\tEPERM\n")
	}
	return executor.Result{Ending: executor.Exited(0), Stdout: []byte(out.String())}, nil
}

// An attack that does not work where the wall is missing proves nothing.
func TestControlBroken(t *testing.T) {
	results, err := Hostile{Executor: pinned{}, Posture: box, Control: pinned{}, Cases: []string{"K08"}}.Run(t.Context())
	if err != nil || len(results) != 1 || results[0].Outcome != ControlBroken || len(results[0].Faults) == 0 {
		t.Errorf("got %+v, %v", results, err)
	}
}

// Cases that could hurt a host cannot be chosen.
func TestChoice(t *testing.T) {
	for _, tc := range []struct {
		name         string
		cases, walls []string
	}{
		{"no such case", []string{"F99"}, nil},
		{"a hurtful case", []string{"R01"}, nil},
		{"no such wall", nil, []string{"garden"}},
		{"a wall with hurtful cases alone", nil, []string{"memory"}},
		{"a case that is not about the wall", []string{"F01"}, []string{"network"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			results, err := Hostile{Executor: dead{}, Posture: box, Cases: tc.cases, Walls: tc.walls}.Run(t.Context())
			if !errors.Is(err, ErrFilter) || len(results) > 0 {
				t.Errorf("got %v, %v", results, err)
			}
		})
	}
}

// An operator who gives up gets what is known, and why there is no more.
func TestGivingUp(t *testing.T) {
	e, honest := open(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	h := Hostile{Executor: e, Posture: honest, Over: func(r Result) { cancel(enough) }}
	results, err := h.Run(ctx)
	if !errors.Is(err, enough) || len(results) != 1 {
		t.Errorf("got %d results and error %v", len(results), err)
	}
}

// A case that fails ends there, what it asked for is called, and whoever ran it
// knows.
func TestTester(t *testing.T) {
	var over []string
	top := newTester(t.Context(), func(names, faults []string, group bool) {
		over = append(over, fmt.Sprint(strings.Join(names, "/"), ": ", strings.Join(faults, "; "), " ", group))
	})
	cleaned := 0
	err := top.do(func(t *tester) {
		ok := t.Run("outer", func(t *tester) {
			t.Cleanup(func() { cleaned++ })
			t.Run("inner", func(t *tester) {
				t.Cleanup(func() { cleaned++ })
				t.Fatalf("bad %d", 1)
				t.Errorf("never")
			})
			t.Errorf("worse")
		})
		if ok || !t.Run("fine", func(*tester) {}) {
			t.Errorf("Run says the opposite")
		}
	})
	if want := []string{"outer/inner: bad 1 false", "outer: worse true", "fine:  false"}; !slices.Equal(over, want) || cleaned != 2 || err != nil {
		t.Errorf("got %q, %d cleaned, error %v", over, cleaned, err)
	}
}
