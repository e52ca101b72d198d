package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
)

// wild are the programs that take processes, memory and output without end. On an
// operator's host an executor is not asked to stop them.
var wild = []executortest.Program{executortest.Storm, executortest.Hunger, executortest.Flood}

// A Check is what came of one rule in one language.
type Check struct {
	Language string   `json:"language"` // of its scripts; empty: the rule needs none
	Rule     string   `json:"rule"`
	OK       bool     `json:"ok"`
	Faults   []string `json:"faults,omitempty"` // what is wrong, in sentences that begin with the rule

	// NotOffered: who is looked at may do without it, and says so. Then OK is true.
	NotOffered bool `json:"notOffered,omitempty"`
}

// Executor runs the suite for executors: what every one must do. Over is called
// when a rule was looked at. It returns what came of each.
//
// # Errors
//
// What says that there is no interpreter; the cause of ctx. What was known before
// an error is returned too.
func Executor(ctx context.Context, e executor.Executor, p executor.Posture, over func(Check)) ([]Check, error) {
	found := map[string]gate.Interpreter{}
	var dialects []executortest.Dialect
	var missing error
	for _, d := range executortest.Dialects() {
		f, err := interpreter.Find(ctx, d.Extension)
		if err != nil {
			missing = errors.Join(missing, err)
			continue
		}
		for _, program := range wild {
			delete(d.Programs, program)
		}
		found[d.Extension] = f.Interpreter()
		dialects = append(dialects, d)
	}
	if len(found) == 0 {
		return nil, missing
	}
	var checks []Check
	top := newTester(ctx, func(names, faults []string, group bool) {
		if ctx.Err() != nil || group && len(faults) == 0 {
			return
		}
		c := Check{Rule: names[len(names)-1], Language: strings.Join(names[:len(names)-1], " "), OK: len(faults) == 0, Faults: faults}
		if group {
			c.Language, c.Rule = names[0], "what is left behind"
		}
		checks = append(checks, c)
		over(c)
	})
	lacks := executortest.Lacks{Memory: true} // nobody asks
	lacks.Escapees = slices.ContainsFunc(p.Walls, func(w executor.Wall) bool { return w.Name == "cleanup" && !w.Stands })
	lacks.Pipes = hostile.OwnKernel(p)
	err := top.do(func(t *tester) {
		executortest.Run(t, executortest.Setup{
			New: func(executortest.T) executor.Executor { return e }, Interpreters: found, Dialects: dialects, Lacks: lacks,
		})
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return checks, err
}
