package executor

import (
	"context"
	"errors"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

// A Request is a call that passed every gate; see [gate.Request].
type Request = gate.Request

// An Executor runs one admitted script and reports how it ended. It must be
// safe for concurrent use: one instance is called by many runs at once.
type Executor interface {
	// Execute runs the script of req once and returns when its last process is
	// gone, as far as the executor can tell.
	//
	// At req.Timeout() it stops the script and returns Expired. When ctx is done it
	// stops the script and returns context.Cause(ctx); it never reports the
	// caller's cancellation as a timeout. It keeps at most req.MaxOutputBytes()
	// bytes of each stream and sets Truncated when it cut one. It uses the tenant
	// of req, never an ambient one.
	//
	// # Errors
	//
	// ErrInvalidRequest for a Request that is not Valid. An error that wraps
	// ErrUnavailable when the script was definitely not started, and one that wraps
	// ErrUnknown when nobody can tell what became of it. Any other error is a failed
	// run. The text of an error goes to the operator only.
	Execute(ctx context.Context, req Request) (Result, error)
}

// Errors that an Executor returns.
var (
	// ErrInvalidRequest: the Request came through no gate.
	ErrInvalidRequest = errors.New("executor: the request came through no gate")
	// ErrUnavailable is wrapped when the script was not started.
	ErrUnavailable = errors.New("not started")
	// ErrUnknown is wrapped when the script may have run, and nobody can tell what
	// became of it: the host that had it is gone.
	ErrUnknown = errors.New("executor: unknown what became of the script")
)

// Func makes an Executor of a function.
type Func func(ctx context.Context, req Request) (Result, error)

// Execute calls f.
func (f Func) Execute(ctx context.Context, req Request) (Result, error) { return f(ctx, req) }

// A Result is how a script ended and what it left.
type Result struct {
	Ending    Ending
	Stdout    []byte // at most MaxOutputBytes bytes of each; any bytes
	Stderr    []byte
	Truncated bool          // a stream was cut
	Outputs   []bundle.File // files below outputs/ that req.OutputPatterns() want; input files that are new or changed, below inputs/
	Notes     []string      // what the user should know, a line each, such as a process that had to be stopped; no host paths

	// PostureDigest is that of what the executor saw of the walls around this very
	// script before it started. Zero: it did not look.
	PostureDigest bundle.Digest
}
