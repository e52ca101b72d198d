//go:build microvm && linux && amd64

package microvm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/executor"
)

// SetBootTime changes how long a machine may take until its agent is heard.
func SetBootTime(e *Executor, d time.Duration) { e.config.BootTime = d }

// SetRestoreTime changes how long a machine may take until it has answered after it was
// restored, and returns how long it was.
func SetRestoreTime(e *Executor, d time.Duration) (was time.Duration) {
	was, e.restoreTime = e.restoreTime, d
	return was
}

// KeepAhead has machines wait for their calls for so long. It comes before the first call.
func KeepAhead(e *Executor, d time.Duration) { e.ahead.lasts = d }

// AwaitAhead returns when a machine waits for its call. It fails where none does and none
// is to be made: no call is expected, or a machine could not be made.
func AwaitAhead(ctx context.Context, e *Executor) error {
	for {
		waiting, wanted := e.ahead.state()
		if waiting > 0 {
			return nil
		}
		if wanted == 0 {
			e.mu.Lock()
			defer e.mu.Unlock()
			return fmt.Errorf("no machine waits, and none is being made; %d hung; what could not be restored: %q", e.Hung(), e.reasons)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}

// state returns how many machines wait, and how many are to be made or being made.
func (a *ahead) state() (waiting, wanted int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire()
	return len(a.waiting), len(a.wanted)
}

// Served returns how many machines were taken that had been made ahead.
func Served(e *Executor) int {
	e.ahead.mu.Lock()
	defer e.ahead.mu.Unlock()
	return e.ahead.served
}

// Waiting returns the executor as it is for a call that was expected: the machine of each
// run was made ahead, and the interpreter waits in it.
func Waiting(e *Executor) executor.Executor { return expecting{e} }

type expecting struct{ *Executor }

func (e expecting) Execute(ctx context.Context, req executor.Request) (executor.Result, error) {
	_, s, err := e.stage(req)
	if err != nil {
		return executor.Result{}, err
	}
	v, err := e.readied(ctx, s)
	if err == nil && v == nil {
		err = errors.New("no machine can be made ahead")
	}
	if err != nil {
		return executor.Result{}, err
	}
	e.ahead.mu.Lock()
	e.ahead.waiting = append(e.ahead.waiting, waiting{v, s, time.Now()})
	e.ahead.mu.Unlock()
	return e.Executor.Execute(ctx, req)
}
