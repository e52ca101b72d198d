package tracon_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

// Live output reaches whoever listens while the script runs, and ends with the run.
func TestLive(t *testing.T) {
	h := newHouse(t, executor.Func(func(_ context.Context, req executor.Request) (executor.Result, error) {
		req.Live().Send(gate.Stdout, []byte("hello"))
		return executor.Result{Ending: executor.Exited(0), Stdout: []byte("hello")}, nil
	}), nil)
	c := call("a")
	c.Live = gate.NewLive(0)
	if _, err := h.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for chunk := range c.Live.Chunks() {
		got = append(got, chunk.Data...)
	}
	if string(got) != "hello" {
		t.Errorf("live output = %q", got)
	}
}

// B8: whoever watches a call knows when the gates have admitted it and when it has
// its slot; a refused one shows neither.
func TestLiveStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, sleeps(8*time.Second), func(c *tracon.Config) { c.Slots = 1 })
		reached := func(l *gate.Live) string {
			synctest.Wait()
			stages := ""
			for _, s := range []struct {
				name string
				ch   <-chan struct{}
			}{{"admitted", l.Admitted()}, {"started", l.Started()}} {
				select {
				case <-s.ch:
					stages += s.name + " "
				default:
				}
			}
			return stages
		}
		first, second, refused := call("a"), call("b"), call("a")
		first.Live, second.Live, refused.Live = gate.NewLive(0), gate.NewLive(0), gate.NewLive(0)
		refused.Script = "no.sh"
		go h.Run(t.Context(), first)
		synctest.Wait()
		go h.Run(t.Context(), second)
		if _, err := h.Run(t.Context(), refused); !errors.Is(err, gate.ErrDenied) {
			t.Errorf("err = %v, want a refusal", err)
		}
		if got := reached(first.Live) + "| " + reached(second.Live) + "| " + reached(refused.Live); got != "admitted started | admitted | " {
			t.Errorf("reached %q", got)
		}
		time.Sleep(9 * time.Second)
		if got := reached(second.Live); got != "admitted started " {
			t.Errorf("after the wait it reached %q", got)
		}
	})
}

// T03, case 50: when somebody else stops a call, the log's ending names who.
func TestCancellationNamesWho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, sleeps(time.Hour), nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(&tracon.Cancellation{By: "anna"}) })
		if out, err := h.Run(ctx, call("a")); tracon.Code(out, err) != "cancelled" {
			t.Errorf("err = %v, want cancelled", err)
		}
		synctest.Wait()
		for leaf, err := range h.log.Entries(t.Context(), "a", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e := leaf.Entry; e.Kind == audit.Ending && (e.Fact("ending") != "cancelled" || e.Fact("cancelledBy") != "anna") {
				t.Errorf("the ending says %v", e.Facts)
			}
		}
		h.check(t, "cancelled")
	})
}
