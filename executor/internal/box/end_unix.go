//go:build linux || darwin

package box

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/executor"
)

// A Reason says why a run is over.
type Reason int

const (
	Ended     Reason = iota // its first process has ended
	Expired                 // the timeout has passed
	Flooded                 // there is too much output
	Cancelled               // the caller does not want it any more, or the executor is closed
)

// Await waits until the run is over, and says why.
func (u *UnderWay) Await(ctx context.Context, ended, flooded <-chan struct{}, timeout time.Duration) Reason {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	why := Ended
	select {
	case <-ended:
	case <-timer.C:
		why = Expired
	case <-flooded:
		why = Flooded
	case <-ctx.Done():
		why = Cancelled
	case <-u.closing.Done():
		why = Cancelled
	}
	if why != Ended && (ctx.Err() != nil || u.closing.Err() != nil) {
		why = Cancelled // also when the timeout passed at the same moment (R24)
	}
	return why
}

// Cause is the error of a run that was cancelled.
func (u *UnderWay) Cause(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return context.Cause(u.closing)
}

// EndingOf is how a run ended, by the status of its first process where that ended by
// itself. Filtered says that a filter of system calls sends SIGSYS.
func EndingOf(why Reason, status syscall.WaitStatus, outOfMemory, filtered bool) executor.Ending {
	switch {
	case why == Expired:
		return executor.Expired()
	case why == Flooded:
		return executor.OutputFlood()
	case filtered && status.Signaled() && status.Signal() == syscall.SIGSYS:
		return executor.PolicyViolation()
	case outOfMemory && status.Signaled() && status.Signal() == syscall.SIGKILL:
		return executor.OutOfMemory()
	case status.Signaled():
		return executor.Signaled(int(status.Signal()))
	}
	return executor.Exited(status.ExitStatus())
}

// Stopped is the note of a run that left processes behind, n of them.
func Stopped(n int) string {
	if n == 1 {
		return "1 process was still running when the script ended, and was stopped"
	}
	return fmt.Sprintf("%d processes were still running when the script ended, and were stopped", n)
}

// KilledWithin is the note of a run that exited, and in which a process was killed for
// want of memory.
func KilledWithin(code int) string {
	return fmt.Sprintf("a process of the script was killed at the limit of memory; the script itself ended with exit code %d", code)
}
