//go:build linux || darwin

package box

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/executor"
)

// R23, R24: the first thing that ends a run is why it is over, and a run that its caller
// gave up, or whose executor is closed, is never taken for one that timed out.
func TestAwait(t *testing.T) {
	gone := errors.New("the caller left")
	refused, closed := errors.New("refused"), errors.New("closed")
	for _, c := range []struct {
		name           string
		ends           func(u *UnderWay, ended, flooded chan struct{}, leave func())
		want           Reason
		after, timeout time.Duration
		cause          error
	}{
		{"it ends", func(_ *UnderWay, ended, _ chan struct{}, _ func()) { close(ended) }, Ended, time.Second, time.Minute, nil},
		{"timeout", nil, Expired, time.Minute, time.Minute, nil},
		{"too much output", func(_ *UnderWay, _, flooded chan struct{}, _ func()) { flooded <- struct{}{} }, Flooded, time.Second, time.Minute, nil},
		{"the caller leaves", func(_ *UnderWay, _, _ chan struct{}, leave func()) { leave() }, Cancelled, time.Second, time.Minute, gone},
		{"the caller leaves at the timeout", func(_ *UnderWay, _, _ chan struct{}, leave func()) { leave() }, Cancelled, time.Second, time.Second, gone},
		{"close", func(u *UnderWay, _, _ chan struct{}, _ func()) { u.Close() }, Cancelled, time.Second, time.Minute, closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := NewUnderWay(refused, closed)
				out, err := u.Enter()
				if err != nil || u.Count() != 1 {
					t.Fatal(err, u.Count())
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				ended, flooded := make(chan struct{}), make(chan struct{}, 1)
				if c.ends != nil {
					go func() {
						time.Sleep(time.Second)
						c.ends(u, ended, flooded, func() { cancel(gone) })
					}()
				}
				began := time.Now()
				if c.name == "the caller leaves at the timeout" { // both are there before it looks
					time.Sleep(time.Second)
					synctest.Wait()
					began, c.after, c.timeout = time.Now(), 0, 0
				}
				if why := u.Await(ctx, ended, flooded, c.timeout); why != c.want || time.Since(began) != c.after {
					t.Errorf("%v after %v, want %v after %v", why, time.Since(began), c.want, c.after)
				}
				if c.cause != nil && !errors.Is(u.Cause(ctx), c.cause) {
					t.Errorf("the cause is %v, want %v", u.Cause(ctx), c.cause)
				}
				out()
				u.Close()
				if _, err := u.Enter(); !errors.Is(err, refused) || u.Count() != 0 {
					t.Errorf("after Close: %v, %d runs", err, u.Count())
				}
				cancel(nil)
			})
		})
	}
}

// B3: Close waits for the runs that are under way, and the first call alone is told so.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := NewUnderWay(errors.New("refused"), errors.New("closed"))
		leave, err := u.Enter()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-u.Closing().Done()
			time.Sleep(time.Minute)
			leave()
		}()
		began := time.Now()
		if first := u.Close(); !first || time.Since(began) != time.Minute {
			t.Errorf("first %t, after %v", first, time.Since(began))
		}
		if u.Close() {
			t.Error("the second Close is told that it is the first")
		}
	})
}

// Cases 30, 31: what stopped a run goes before what its first process says.
func TestEndingOf(t *testing.T) {
	killed, sys, three := syscall.WaitStatus(syscall.SIGKILL), syscall.WaitStatus(syscall.SIGSYS), syscall.WaitStatus(3<<8)
	for _, c := range []struct {
		name                  string
		why                   Reason
		status                syscall.WaitStatus
		outOfMemory, filtered bool
		want                  executor.Ending
	}{
		{"exit code", Ended, three, false, true, executor.Exited(3)},
		{"exit code beside a killed child", Ended, three, true, true, executor.Exited(3)},
		{"signal", Ended, killed, false, true, executor.Signaled(9)},
		{"memory", Ended, killed, true, true, executor.OutOfMemory()},
		{"filter", Ended, sys, false, true, executor.PolicyViolation()},
		{"SIGSYS without a filter", Ended, sys, false, false, executor.Signaled(int(syscall.SIGSYS))},
		{"timeout", Expired, killed, true, true, executor.Expired()},
		{"flood", Flooded, killed, false, true, executor.OutputFlood()},
	} {
		if got := EndingOf(c.why, c.status, c.outOfMemory, c.filtered); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
