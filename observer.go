package tracon

import (
	"context"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

// An Observer is told of every call, for spans and metrics. It must be safe for
// concurrent use, and quick: calls wait for it.
type Observer interface {
	// Call is told of a call before the gates. It returns the context that the
	// call goes on with, and what is called once when everything about the call
	// is known: after its ending stands in the log, or when it was refused.
	Call(ctx context.Context, call gate.Call) (context.Context, func(Observation))
}

// An Observation is all that is known of a call at its end.
type Observation struct {
	Request executor.Request // not valid for a call that was not admitted
	Outcome Outcome
	Err     error // for the operator: it may hold an executor's own words
}

type noObserver struct{}

func (noObserver) Call(ctx context.Context, _ gate.Call) (context.Context, func(Observation)) {
	return ctx, func(Observation) {}
}
