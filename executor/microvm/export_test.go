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

// AwaitAhead returns when a machine waits for its call, and how many have been taken before.
func AwaitAhead(ctx context.Context, e *Executor) (served int, err error) {
	for {
		e.ahead.mu.Lock()
		waits, served := len(e.ahead.waiting), e.ahead.served
		e.ahead.mu.Unlock()
		if waits > 0 {
			return served, nil
		}
		select {
		case <-ctx.Done():
			return served, context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}

// Ahead returns how many machines were taken that had been made ahead, and the processes of
// those that wait.
func Ahead(e *Executor) (served int, pids []int) {
	e.ahead.mu.Lock()
	defer e.ahead.mu.Unlock()
	for _, w := range e.ahead.waiting {
		pids = append(pids, w.v.child.process.Pid)
	}
	return e.ahead.served, pids
}
