package tracon_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/grant"
)

// slowPosture is an executor whose posture is told when it is let.
type slowPosture struct {
	busy atomic.Int32
	let  chan struct{}
}

func (s *slowPosture) Execute(context.Context, executor.Request) (executor.Result, error) {
	return executor.Result{Ending: executor.Exited(0)}, nil
}

func (s *slowPosture) Posture(context.Context) (executor.Posture, error) {
	s.busy.Add(1)
	<-s.let
	return executor.Posture{Executor: "slow", Tier: grant.Process}, nil
}

// B10: of calls that come in one moment few pass the gates at once, and half as many
// of one tenant; the others wait for their turn, and one whose caller has left waits
// no longer.
func TestCallsPassTheGatesInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &slowPosture{let: make(chan struct{})}
		h := newHouse(t, e, func(c *tracon.Config) { c.SlotWait = time.Hour })
		var wg sync.WaitGroup
		come := func(tenant string) {
			for range 100 {
				wg.Go(func() {
					if _, err := h.Run(t.Context(), call(tenant)); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
		}
		come("a")
		if n := e.busy.Load(); n != 32 {
			t.Errorf("%d calls of one tenant are at the gates, want 32", n)
		}
		come("b")
		if n := e.busy.Load(); n != 64 {
			t.Errorf("%d calls are at the gates, want 64", n)
		}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := h.Run(ctx, call("b"))
			left <- err
		}()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, tracon.ErrCancelled) {
			t.Errorf("one who has left: got error %v", err)
		}
		close(e.let)
		wg.Wait()
		if n := len(h.endings(t)); n != 200 || e.busy.Load() != 200 {
			t.Errorf("%d endings, and %d calls were at the gates, want 200", n, e.busy.Load())
		}
	})
}
