//go:build microvm && linux && amd64

package microvm

import (
	"context"
	"fmt"
	"time"
)

// SetBootTime changes how long a machine may take until its agent is heard.
func SetBootTime(e *Executor, d time.Duration) { e.config.BootTime = d }

// SetRestoreTime changes how long a machine may take until it has answered after it was
// restored, and returns how long it was.
func SetRestoreTime(e *Executor, d time.Duration) (was time.Duration) {
	was, e.restoreTime = e.restoreTime, d
	return was
}

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
