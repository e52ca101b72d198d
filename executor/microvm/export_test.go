//go:build microvm && linux && amd64

package microvm

import (
	"context"
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

// AwaitAhead returns when a machine waits for its call.
func AwaitAhead(ctx context.Context, e *Executor) error {
	for {
		if e.Waiting() > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}

// Served returns how many machines were taken that had been made ahead.
func Served(e *Executor) int {
	e.ahead.mu.Lock()
	defer e.ahead.mu.Unlock()
	return e.ahead.served
}
