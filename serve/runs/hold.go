package runs

import "context"

type holdKey struct{}

// WithHold returns a context whose runs hold what their door works with, such as the
// store in which it keeps what came of them: hold is called when a run begins, and what
// it returns when the run has ended and its ended has returned. Both must be safe for
// concurrent use.
func WithHold(ctx context.Context, hold func() (release func())) context.Context {
	return context.WithValue(ctx, holdKey{}, hold)
}

// held holds what the context says, and returns what lets it go.
func held(ctx context.Context) (release func()) {
	if hold, ok := ctx.Value(holdKey{}).(func() func()); ok {
		return hold()
	}
	return func() {}
}
