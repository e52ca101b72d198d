package runs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/gatecase"
	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/slot"
)

// Zero means the defaults, and less than zero nothing that could be meant.
func TestNew(t *testing.T) {
	runner := newHouse(t, prints(""), runs.Limits{}).runner
	for name, l := range map[string]runs.Limits{
		"Keep": {Keep: -1}, "Runs": {Runs: -1}, "RunsPerTenant": {RunsPerTenant: -1}, "Bytes": {Bytes: -1}, "BytesPerTenant": {BytesPerTenant: -1},
		"CallBytes": {CallBytes: -1}, "CallBytesPerTenant": {CallBytesPerTenant: -1},
		"LiveBytes": {LiveBytes: -1}, "Followers": {Followers: -1}, "FollowersPerTenant": {FollowersPerTenant: -1},
	} {
		if _, err := runs.New(runner, l); err == nil || !strings.Contains(err.Error(), name+" ") {
			t.Errorf("a negative %s: %v, want an error that names it", name, err)
		}
	}
	if _, err := runs.New(nil, runs.Limits{}); err == nil {
		t.Error("New made runs without a runner")
	}
}

// A run that was started goes on when whoever started it has left; one that is
// waited for does not (case 50).
func TestWhoLeaves(t *testing.T) {
	within(t, sleeps(10*time.Second), runs.Limits{}, func(t *testing.T, h *house) {
		ctx, leave := context.WithCancel(t.Context())
		started, err := h.Start(ctx, h.call(gatecase.Tenant), nil)
		if err != nil || started.Stage == runs.Ended {
			t.Fatalf("Start = %+v, %v", started, err)
		}
		leave()
		if v := h.ended(gatecase.Tenant, started.ID); v.Code() != "" || v.Err != nil || !v.Ended.Equal(v.Begun.Add(10*time.Second)) {
			t.Errorf("a run that was started: %+v, want one that ended by itself", v)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		v, err := h.Do(ctx, h.call(gatecase.Tenant))
		if err != nil || v.Stage != runs.Ended || v.Code() != "cancelled" {
			t.Errorf("a run that was waited for: %+v, %v; want cancelled", v, err)
		}
		if got := h.fact(gatecase.Tenant, v.ID, "ending"); got != "cancelled" {
			t.Errorf("the log says %q", got)
		}
	})
}

// Before the gates have said yes nothing has begun: who leaves then cancels, and
// there is nothing to be found (case 50).
func TestWhoLeavesBeforeTheGates(t *testing.T) {
	within(t, sleeps(10*time.Second), runs.Limits{}, func(t *testing.T, h *house) {
		ctx, leave := context.WithCancelCause(t.Context())
		leave(errors.New("gone"))
		for name, do := range map[string]func(context.Context, gate.Call) (runs.View, error){"Start": h.startIt, "Do": h.Do} {
			v, err := do(ctx, h.call(gatecase.Tenant))
			if !errors.Is(err, tracon.ErrCancelled) || v.Stage != "" {
				t.Errorf("%s = %+v, %v; want cancelled", name, v, err)
			}
			if all := h.List(gatecase.Tenant, "", "", 100); len(all) != 0 {
				t.Errorf("%s left a run: %+v", name, all)
			}
		}
	})
}

// R8–R15: a refused call is no run; it is told with its reason and leaves nothing.
func TestRefused(t *testing.T) {
	within(t, prints(""), runs.Limits{}, func(t *testing.T, h *house) {
		c := h.call(gatecase.Tenant)
		c.Script = "no.py"
		for name, do := range map[string]func(context.Context, gate.Call) (runs.View, error){"Start": h.startIt, "Do": h.Do} {
			v, err := do(t.Context(), c)
			if !errors.Is(err, gate.ErrDenied) || v.ID == "" || v.Stage != "" {
				t.Errorf("%s = %+v, %v; want a refusal with the call's id", name, v, err)
			}
			if _, err := h.Run(gatecase.Tenant, v.ID); !errors.Is(err, runs.ErrNotFound) {
				t.Errorf("%s left a run: %v", name, err)
			}
		}
		if all := h.List(gatecase.Tenant, "", "", 100); len(all) != 0 {
			t.Errorf("there are runs: %+v", all)
		}
	})
}

// An id stands for one run.
func TestIDTwice(t *testing.T) {
	within(t, sleeps(time.Second), runs.Limits{}, func(t *testing.T, h *house) {
		c := h.call(gatecase.Tenant)
		c.ID = h.start(gatecase.Tenant)
		if _, err := h.Start(t.Context(), c, nil); err == nil {
			t.Error("a second run with the id of the first was started")
		}
		h.ended(gatecase.Tenant, c.ID)
		if _, err := h.Do(t.Context(), c); err == nil {
			t.Error("a second run with the id of one that has ended was started")
		}
	})
}

// R17: the stages of a run, as its slot comes and goes.
func TestStages(t *testing.T) {
	within(t, sleeps(10*time.Second), runs.Limits{}, func(t *testing.T, h *house) {
		first := h.start(gatecase.Tenant)
		synctest.Wait() // until it has the slot
		second := h.start(gatecase.Tenant)
		stages := func() string {
			synctest.Wait()
			var all []string
			for _, id := range []string{first, second} {
				v, err := h.Run(gatecase.Tenant, id)
				if err != nil {
					t.Fatal(err)
				}
				if (v.Stage == runs.Ended) != !v.Ended.IsZero() {
					t.Errorf("%+v has ended or has not", v)
				}
				all = append(all, string(v.Stage))
			}
			return strings.Join(all, " ")
		}
		for _, want := range []string{"running queued", "ended running", "ended ended"} {
			if got := stages(); got != want {
				t.Errorf("the stages are %q, want %q", got, want)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

// T01, T02, T03: the run of another tenant is not found, not listed, not followed
// and not cancelled, and the error is that of one that never was.
func TestTenantsAreApart(t *testing.T) {
	within(t, sleeps(10*time.Second), runs.Limits{}, func(t *testing.T, h *house) {
		mine, theirs := h.start(gatecase.Tenant), h.start(other)
		for _, tt := range []struct{ tenant, id string }{{gatecase.Tenant, theirs}, {other, mine}, {"", mine}, {gatecase.Tenant, ""}} {
			_, run := h.Run(tt.tenant, tt.id)
			_, wait := h.Wait(t.Context(), tt.tenant, tt.id)
			_, follow := h.Follow(tt.tenant, tt.id, 0)
			_, cancel := h.Cancel(tt.tenant, tt.id, "stranger")
			for name, err := range map[string]error{"Run": run, "Wait": wait, "Follow": follow, "Cancel": cancel} {
				if want := fmt.Sprintf("%v: %s", runs.ErrNotFound, tt.id); !errors.Is(err, runs.ErrNotFound) || err.Error() != want {
					t.Errorf("%s of %q for %q: %v, want %s", name, tt.id, tt.tenant, err, want)
				}
			}
		}
		for tenant, want := range map[string]string{gatecase.Tenant: mine, other: theirs} {
			if all := h.List(tenant, "", "", 10); len(all) != 1 || all[0].ID != want || all[0].Tenant != tenant {
				t.Errorf("the runs of %s are %+v", tenant, all)
			}
			if v := h.ended(tenant, want); v.Code() != "" {
				t.Errorf("the run of %s was stopped: %v", tenant, v.Err)
			}
		}
	})
}

// The newest come first, and a page goes on where the last one ended.
func TestList(t *testing.T) {
	within(t, prints(""), runs.Limits{}, func(t *testing.T, h *house) {
		var ids []string
		for range 5 {
			ids = append(ids, h.start(gatecase.Tenant))
		}
		slices.Reverse(ids)
		var got []string
		for before := ""; ; {
			page := h.List(gatecase.Tenant, gatecase.Skill, before, 2)
			if len(page) == 0 {
				break
			}
			for _, v := range page {
				got = append(got, v.ID)
			}
			before = page[len(page)-1].ID
		}
		if !slices.Equal(got, ids) {
			t.Errorf("got %v, want %v", got, ids)
		}
		for _, limit := range []int{0, -1} {
			if page := h.List(gatecase.Tenant, "", "", limit); len(page) != 0 {
				t.Errorf("a page of %d has %d runs", limit, len(page))
			}
		}
		if page := h.List(gatecase.Tenant, "another", "", 10); len(page) != 0 {
			t.Errorf("a skill that nobody ran has %d runs", len(page))
		}
	})
}

// T03, case 50: who may cancel does so wherever the run stands, is named in the
// log, and changes nothing of a run that has ended.
func TestCancel(t *testing.T) {
	within(t, sleeps(10*time.Second), runs.Limits{}, func(t *testing.T, h *house) {
		running := h.start(gatecase.Tenant)
		synctest.Wait() // until it has the slot
		queued := h.start(gatecase.Tenant)
		for _, id := range []string{queued, running} {
			if _, err := h.Cancel(gatecase.Tenant, id, "anna"); err != nil {
				t.Fatal(err)
			}
			v := h.ended(gatecase.Tenant, id)
			if v.Code() != "cancelled" || h.fact(gatecase.Tenant, id, "cancelledBy") != "anna" {
				t.Errorf("the run is %q, cancelled by %q", v.Code(), h.fact(gatecase.Tenant, id, "cancelledBy"))
			}
		}
		done := h.start(gatecase.Tenant)
		h.ended(gatecase.Tenant, done)
		if v, err := h.Cancel(gatecase.Tenant, done, "anna"); err != nil || v.Code() != "" || v.Stage != runs.Ended {
			t.Errorf("cancelling what has ended: %+v, %v", v, err)
		}
		if got := h.fact(gatecase.Tenant, done, "ending"); got != "exited" {
			t.Errorf("the log says %q", got)
		}
	})
}

// A host that stops lets runs end while it may, then stops them; what they ended
// with stands in the log, and nothing new begins (B8).
func TestClose(t *testing.T) {
	for _, tt := range []struct {
		name     string
		deadline time.Duration
		want     string
	}{{"they end in time", time.Minute, "exited"}, {"they do not", 5 * time.Second, "cancelled"}} {
		t.Run(tt.name, func(t *testing.T) {
			within(t, sleeps(10*time.Second), runs.Limits{}, func(t *testing.T, h *house) {
				id := h.start(gatecase.Tenant)
				follower, err := h.Follow(gatecase.Tenant, id, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer follower.Close()
				ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
				defer cancel()
				closed := make(chan error, 1)
				go func() { closed <- h.Close(ctx) }()
				synctest.Wait()
				if _, err := h.Start(t.Context(), h.call(gatecase.Tenant), nil); !errors.Is(err, tracon.ErrClosed) {
					t.Errorf("a host that stops answers %v", err)
				}
				if err := <-closed; err != nil {
					t.Error(err)
				}
				if got := h.fact(gatecase.Tenant, id, "ending"); got != tt.want {
					t.Errorf("the log says %q, want %q", got, tt.want)
				}
				if _, err := h.Run(gatecase.Tenant, id); !errors.Is(err, runs.ErrNotFound) {
					t.Errorf("a host that has stopped keeps a run: %v", err)
				}
				for _, want := range []runs.Kind{runs.Started, runs.End} {
					if e, err := follower.Next(t.Context()); err != nil || e.Kind != want {
						t.Errorf("a follower reads %+v, %v; want %s", e, err, want)
					}
				}
			})
		})
	}
}

// B10: what is kept is bounded in time, number and bytes, and a tenant that keeps
// much displaces its own first.
func TestKept(t *testing.T) {
	exists := func(h *house, tenant string, ids []string) (n int) {
		for _, id := range ids {
			if _, err := h.Run(tenant, id); err == nil {
				n++
			}
		}
		return n
	}
	run := func(h *house, tenant string, n int) (ids []string) {
		for range n {
			v, err := h.Do(h.t.Context(), h.call(tenant))
			if err != nil {
				h.t.Fatal(err)
			}
			ids = append(ids, v.ID)
			synctest.Wait()
		}
		return ids
	}
	big := func(_ context.Context, req executor.Request) (executor.Result, error) {
		return executor.Result{Ending: executor.Exited(0), Outputs: []bundle.File{{Path: "a", Data: make([]byte, 100<<10)}}}, nil
	}
	t.Run("time", func(t *testing.T) {
		within(t, prints("x"), runs.Limits{Keep: time.Minute}, func(t *testing.T, h *house) {
			ids := run(h, gatecase.Tenant, 1)
			time.Sleep(30 * time.Second)
			ids = append(ids, run(h, gatecase.Tenant, 1)...)
			for _, want := range []int{2, 1, 0} {
				if got := exists(h, gatecase.Tenant, ids); got != want {
					t.Errorf("%d runs are kept, want %d", got, want)
				}
				time.Sleep(30 * time.Second)
				synctest.Wait()
			}
		})
	})
	t.Run("number", func(t *testing.T) {
		within(t, prints("x"), runs.Limits{Runs: 4, RunsPerTenant: 3}, func(t *testing.T, h *house) {
			theirs := run(h, other, 2)
			mine := run(h, gatecase.Tenant, 5)
			if a, b := exists(h, gatecase.Tenant, mine), exists(h, other, theirs); a != 2 || b != 2 {
				t.Errorf("of the greedy one %d are kept, of the other %d; want 2 and 2", a, b)
			}
			if _, err := h.Run(gatecase.Tenant, mine[4]); err != nil {
				t.Errorf("the newest is not kept: %v", err)
			}
		})
	})
	t.Run("bytes", func(t *testing.T) {
		within(t, executor.Func(big), runs.Limits{Bytes: 450 << 10, BytesPerTenant: 350 << 10}, func(t *testing.T, h *house) {
			theirs := run(h, other, 1)
			mine := run(h, gatecase.Tenant, 5)
			if a, b := exists(h, gatecase.Tenant, mine), exists(h, other, theirs); a != 3 || b != 1 {
				t.Errorf("of the greedy one %d are kept, of the other %d; want 3 and 1", a, b)
			}
			theirs = append(theirs, run(h, other, 1)...)
			if a, b := exists(h, gatecase.Tenant, mine), exists(h, other, theirs); a != 2 || b != 2 {
				t.Errorf("of the greedy one %d are kept, of the other %d; want 2 and 2", a, b)
			}
		})
	})
	t.Run("one that is too large", func(t *testing.T) {
		within(t, executor.Func(big), runs.Limits{Bytes: 50 << 10}, func(t *testing.T, h *house) {
			v, err := h.Do(t.Context(), h.call(gatecase.Tenant))
			if err != nil || len(v.Outcome.Outputs) != 1 {
				t.Errorf("its caller gets %+v, %v", v, err)
			}
			synctest.Wait()
			if exists(h, gatecase.Tenant, []string{v.ID}) != 0 {
				t.Error("it is kept")
			}
		})
	})
}

// B10: the bytes of the calls under way are bounded, for a tenant too, from before a
// door reads them until the run has ended.
func TestHold(t *testing.T) {
	within(t, sleeps(10*time.Second), runs.Limits{CallBytes: 1000, CallBytesPerTenant: 600}, func(t *testing.T, h *house) {
		hold := func(tenant string, n int64, want bool) func() {
			t.Helper()
			release, err := h.Hold(tenant, n)
			if busy, ok := errors.AsType[*slot.BusyError](err); (err == nil) != want || !want && (!ok || busy.RetryAfter <= 0) {
				t.Fatalf("holding %d for %s: %v", n, tenant, err)
			}
			return release
		}
		mine := hold(gatecase.Tenant, 600, true)
		hold(gatecase.Tenant, 1, false)
		theirs := hold(other, 400, true)
		hold(other, 1, false)
		for range 2 {
			mine()
			theirs()
		}
		c := h.call(gatecase.Tenant)
		c.Inputs = []bundle.File{{Path: "a", Data: make([]byte, 500)}}
		first, err := h.Start(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Start(t.Context(), c, nil); !errors.Is(err, tracon.ErrBusy) || errors.Is(err, tracon.ErrClosed) {
			t.Errorf("a second call of 500 bytes: %v, want busy", err)
		}
		h.ended(gatecase.Tenant, first.ID)
		synctest.Wait()
		hold(gatecase.Tenant, 600, true)()
	})
}

// B10: calls that grow leave an eighth to those that are small, of all and of the tenant's.
func TestHoldMore(t *testing.T) {
	within(t, sleeps(time.Second), runs.Limits{CallBytes: 800, CallBytesPerTenant: 400}, func(t *testing.T, h *house) {
		var held []func()
		more := func(tenant string, want int) {
			t.Helper()
			for i := range want + 1 {
				release, err := h.HoldMore(tenant, 50)
				if (err == nil) != (i < want) {
					t.Fatalf("the piece %d for %s: %v, want %d pieces", i, tenant, err, want)
				}
				if err == nil {
					held = append(held, release)
				}
			}
		}
		more("a", 7)
		more("b", 7)
		more("c", 0)
		for _, tenant := range []string{"a", "c"} {
			release, err := h.Hold(tenant, 50)
			if err != nil {
				t.Fatalf("a small call of %s: %v", tenant, err)
			}
			held = append(held, release)
		}
		for _, release := range held {
			release()
		}
		more("c", 7)
	})
}

// Whoever started a run and left hears of its end even so, and a host that stops
// waits for that; of a refused one nobody does.
func TestEnded(t *testing.T) {
	within(t, sleeps(10*time.Second), runs.Limits{}, func(t *testing.T, h *house) {
		heard := make(chan runs.View, 1)
		ended := func(v runs.View) {
			time.Sleep(time.Second)
			heard <- v
		}
		refused := h.call(gatecase.Tenant)
		refused.Script = "no.py"
		if _, err := h.Start(t.Context(), refused, ended); !errors.Is(err, gate.ErrDenied) {
			t.Fatal(err)
		}
		v, err := h.Start(t.Context(), h.call(gatecase.Tenant), ended)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-heard; got.ID != v.ID || got.Stage != runs.Ended {
			t.Errorf("heard of %+v", got)
		}
	})
}
