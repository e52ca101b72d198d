package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
)

// An Outcome is what came of a case.
type Outcome string

// The outcomes.
const (
	Held          Outcome = "held"
	GotThrough    Outcome = "GOT THROUGH"    // the wall does not hold
	NotPromised   Outcome = "not promised"   // the executor does not say that it holds; it was not tried
	ControlBroken Outcome = "control broken" // it held, but does not get through where the wall is missing either
	NotKnown      Outcome = "not known"      // the script did not do its work
	LeftOut       Outcome = "left out"       // there is no interpreter for it
)

// A Result is what came of one case in one language.
type Result struct {
	ID       string   `json:"id"`
	Language string   `json:"language"` // of its script
	Tried    string   `json:"tried"`
	Wall     string   `json:"wall"`
	Must     string   `json:"must"` // what must hold
	Class    string   `json:"class"`
	Outcome  Outcome  `json:"outcome"`
	Attempts int      `json:"attempts"`
	Control  string   `json:"control"`           // what came of it where the wall is missing
	Through  []string `json:"through,omitempty"` // the attempts that got through
	Faults   []string `json:"faults,omitempty"`  // what is wrong, in sentences
}

// Hostile says what to attack.
type Hostile struct {
	Executor executor.Executor
	Posture  executor.Posture  // what it promises
	Control  executor.Executor // one without its walls, to show that attacks work there; nil: nobody shows it
	Cases    []string          // ids; nil: all
	Walls    []string          // names; nil: all
	Over     func(Result)      // is called when a case is over; nil: nobody is
}

// ErrFilter says that the words by which cases were chosen choose none.
var ErrFilter = errors.New("conformance: no such case")

// Run attacks the executor with the harmless cases, and returns what came of them.
//
// # Errors
//
// [ErrFilter]; what says that there is no interpreter; the cause of ctx. What was
// known before an error is returned too.
func (h Hostile) Run(ctx context.Context) ([]Result, error) {
	only, err := h.only()
	if err != nil {
		return nil, err
	}
	interpreters, err := find(ctx, "py", "sh")
	if err != nil {
		return nil, err
	}
	var results []Result
	var rows []hostile.Row
	top := newTester(ctx, func(_, faults []string, _ bool) {
		r := result(rows[len(rows)-1], faults)
		results = append(results, r)
		if h.Over != nil {
			h.Over(r)
		}
	})
	setup := hostile.Setup{
		New:          func(executortest.T) executor.Executor { return h.Executor },
		Interpreters: interpreters, Lacks: hostile.Lacking(h.Posture), Only: only, Races: 2 * time.Second,
		OwnKernel: hostile.OwnKernel(h.Posture),
		Report:    func(r hostile.Row) { rows = append(rows, r) },
	}
	if h.Control != nil {
		setup.Control = h.control
	}
	err = top.do(func(t *tester) { hostile.RunHarmless(t, setup) })
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return results, err
}

// control is the executor without the wall, for those walls that it has not.
func (h Hostile) control(_ executortest.T, w hostile.Wall) executor.Executor {
	switch w {
	case hostile.Environment, hostile.Descriptors, hostile.Cleanup, hostile.Collection:
		return nil // every executor of this house has them
	}
	return h.Control
}

// only returns the ids of the cases that the words choose.
func (h Hostile) only() ([]string, error) {
	all := hostile.HarmlessCases()
	if len(all) == 0 {
		return nil, errors.New("the cases run on Linux alone")
	}
	for _, id := range h.Cases {
		if !slices.ContainsFunc(all, func(c hostile.Case) bool { return c.ID == id }) {
			return nil, fmt.Errorf("%w: %q is none of the harmless ones", ErrFilter, id)
		}
	}
	for _, w := range h.Walls {
		if !slices.ContainsFunc(all, func(c hostile.Case) bool { return string(c.Wall) == w }) {
			return nil, fmt.Errorf("%w: no harmless one is about the wall %q", ErrFilter, w)
		}
	}
	var ids []string
	for _, c := range all {
		if (len(h.Cases) == 0 || slices.Contains(h.Cases, c.ID)) && (len(h.Walls) == 0 || slices.Contains(h.Walls, string(c.Wall))) {
			ids = append(ids, c.ID)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: none of those is about that wall", ErrFilter)
	}
	return ids, nil
}

// result is what came of a row, in words for operators.
func result(r hostile.Row, faults []string) Result {
	outcome := map[hostile.Outcome]Outcome{
		hostile.Safe: Held, hostile.Unsafe: GotThrough, hostile.NotPromised: NotPromised, hostile.LeftOut: LeftOut,
	}[r.Outcome]
	switch {
	case outcome == "":
		outcome = NotKnown
	case r.Control == hostile.Broken && outcome != GotThrough:
		outcome = ControlBroken
	}
	return Result{r.ID, r.Language, r.Title, string(r.Wall), r.Must, r.Class, outcome, r.Attempts, string(r.Control), r.Through, faults}
}

// find returns the interpreters of all the extensions.
func find(ctx context.Context, extensions ...string) (map[string]gate.Interpreter, error) {
	found := map[string]gate.Interpreter{}
	for _, ext := range extensions {
		f, err := interpreter.Find(ctx, ext)
		if err != nil {
			return nil, err
		}
		found[ext] = f.Interpreter()
	}
	return found, nil
}

// Cases returns the harmless cases: their ids, and what they try.
func Cases() []hostile.Case { return hostile.HarmlessCases() }
