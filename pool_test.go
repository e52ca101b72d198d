package tracon_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/slot"
)

// pool is a slot.Pool that gives a slot to everybody, for as long as it is kept.
type pool struct {
	lost     chan struct{}
	released int
	err      error // of Enter
}

func (p *pool) Enter(context.Context, string) (slot.Place, error) { return p, p.err }
func (p *pool) Count() slot.Count                                 { return slot.Count{Slots: 7} }
func (p *pool) Leave()                                            {}
func (p *pool) Release()                                          { p.released++ }
func (p *pool) Lost() <-chan struct{}                             { return p.lost }
func (p *pool) Wait(context.Context, time.Duration) (slot.Slot, error) {
	return p, nil
}

// TestSlotLost: B9, a run whose slot was given to another host is stopped at
// once, and its ending says that it did not come to its own end. It is told
// neither as the caller's cancellation nor as a timeout (R24).
func TestSlotLost(t *testing.T) {
	for _, tt := range []struct {
		name      string
		answers   time.Duration // of a script that does not stop; zero: it stops
		after     time.Duration
		abandoned bool
	}{
		{"the script stops", 0, time.Second, false},
		{"the executor answers later", 4 * time.Second, 4 * time.Second, false},
		{"the executor does not answer", time.Hour, 15 * time.Second, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pool{lost: make(chan struct{})}
				e := sleeps(5 * time.Second)
				if tt.answers > 0 {
					e = deaf(tt.answers)
				}
				h := newHouse(t, e, func(c *tracon.Config) { c.Pool = p })
				if got := h.Stats().Slots; got != 7 {
					t.Errorf("there are %d slots, want those of the pool", got)
				}
				time.AfterFunc(time.Second, func() { close(p.lost) })
				began := time.Now()
				out, err := h.Run(t.Context(), call("a"))
				if !errors.Is(err, slot.ErrLost) || !errors.Is(err, tracon.ErrExecutorFailed) || errors.Is(err, tracon.ErrCancelled) {
					t.Errorf("got %+v, %v; want that the slot was lost", out, err)
				}
				if d := time.Since(began); d != tt.after {
					t.Errorf("it answered after %s, want %s", d, tt.after)
				}
				if n := h.Stats().Abandoned; n > 0 != tt.abandoned {
					t.Errorf("%d executions are abandoned, want that %v", n, tt.abandoned)
				}
				if p.released != 1 {
					t.Errorf("the slot was given back %d times, want once", p.released)
				}
				h.check(t, "executor_failed")
				time.Sleep(2 * time.Hour) // until the deaf one has answered
			})
		})
	}
}

// TestPoolUnavailable: zero is closed. Where the slots cannot be reached nothing
// runs, nothing is written, and the model is told to try again.
func TestPoolUnavailable(t *testing.T) {
	h := newHouse(t, exits(0), func(c *tracon.Config) { c.Pool = &pool{err: slot.ErrUnavailable} })
	out, err := h.Run(t.Context(), call("a"))
	if !errors.Is(err, slot.ErrUnavailable) || tracon.Code(out, err) != "busy" {
		t.Errorf("got %v, code %s; want %v", err, tracon.Code(out, err), slot.ErrUnavailable)
	}
	h.check(t)
}
