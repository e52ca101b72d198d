package runs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/gatecase"
	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/slot"
)

// shows is an executor that sends each piece a second after the last one.
func shows(pieces ...gate.Chunk) executor.Func {
	return func(_ context.Context, req executor.Request) (executor.Result, error) {
		for _, c := range pieces {
			time.Sleep(time.Second)
			req.Live().Send(c.Stream, c.Data)
		}
		return executor.Result{Ending: executor.Exited(0)}, nil
	}
}

func out(s string) gate.Chunk { return gate.Chunk{Stream: gate.Stdout, Data: []byte(s)} }

// events reads the tenant's run to its end, after the event with the number after.
func (h *house) events(id string, after uint64) (all []runs.Event) {
	h.t.Helper()
	f, err := h.Follow(gatecase.Tenant, id, after)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	for {
		e, err := f.Next(h.t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, e)
	}
}

func show(events []runs.Event) string {
	var b strings.Builder
	for _, e := range events {
		switch e.Kind {
		case runs.Output:
			fmt.Fprintf(&b, "%d:%d%q ", e.Seq, e.Stream, e.Text)
		case runs.Gap:
			fmt.Fprintf(&b, "%d:gap%d ", e.Seq, e.Lost)
		default:
			fmt.Fprintf(&b, "%d:%s ", e.Seq, e.Kind)
		}
	}
	return b.String()
}

// Each follower sees everything in its order, whenever it comes, and goes on where
// it broke off.
func TestFollow(t *testing.T) {
	within(t, shows(out("a"), gate.Chunk{Stream: gate.Stderr, Data: []byte("b")}, out("c")), runs.Limits{}, func(t *testing.T, h *house) {
		id := h.start(gatecase.Tenant)
		const whole = `1:started 2:1"a" 3:2"b" 4:1"c" 5:end `
		for _, when := range []string{"while it runs", "after its end"} {
			if got := show(h.events(id, 0)); got != whole {
				t.Errorf("%s: %s, want %s", when, got, whole)
			}
		}
		for after, want := range map[uint64]string{1: `2:1"a" 3:2"b" 4:1"c" 5:end `, 4: `5:end `, 5: `5:end `, 6: whole, 1 << 63: whole} {
			if got := show(h.events(id, after)); got != want {
				t.Errorf("after %d: %s, want %s", after, got, want)
			}
		}
	})
}

// Case 28: a character that comes in two pieces is shown as one; bytes that are no
// UTF-8 are replaced, and so is what is left of a character at the end.
func TestFollowCharacters(t *testing.T) {
	within(t, shows(out("x\xe2\x82"), out("\xac\xff"), out("\xf0\x9f"), gate.Chunk{Stream: 9, Data: []byte("no stream")}, out("\x98\x80z\xe2\x82")),
		runs.Limits{}, func(t *testing.T, h *house) {
			id := h.start(gatecase.Tenant)
			const want = `1:started 2:1"x" 3:1"€�" 4:1"😀z" 5:1"�" 6:end `
			if got := show(h.events(id, 0)); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
}

// B10: whoever reads slowly misses something, and is told how much; nobody else
// does, and the run does not wait.
func TestSlowFollower(t *testing.T) {
	var pieces []gate.Chunk
	for i := range 20 {
		pieces = append(pieces, out(fmt.Sprintf("%04d", i)))
	}
	within(t, shows(pieces...), runs.Limits{LiveBytes: 1000}, func(t *testing.T, h *house) {
		id := h.start(gatecase.Tenant)
		synctest.Wait()
		slow, err := h.Follow(gatecase.Tenant, id, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		for range 2 { // what started, and 0000
			if _, err := slow.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, e := range h.events(id, 0) {
			if e.Kind == runs.Gap {
				t.Errorf("a quick follower misses something: %+v", e)
			}
		}
		if v := h.ended(gatecase.Tenant, id); !v.Ended.Equal(v.Begun.Add(20 * time.Second)) {
			t.Errorf("the run took %v, want 20s", v.Ended.Sub(v.Begun))
		}
		gap, err := slow.Next(t.Context())
		if err != nil || gap.Kind != runs.Gap {
			t.Fatalf("the slow one reads %+v, %v; want a gap", gap, err)
		}
		next, err := slow.Next(t.Context())
		if err != nil || next.Seq != gap.Seq+1 {
			t.Errorf("after the gap %d comes %+v, %v", gap.Seq, next, err)
		}
		var n int64
		if _, err := fmt.Sscanf(next.Text, "%d", &n); err != nil || gap.Lost != (n-1)*4 {
			t.Errorf("the gap tells of %d bytes before %q", gap.Lost, next.Text)
		}
		// Whoever comes again after a number that is gone misses nobody knows how much.
		if again := h.events(id, 2); again[0].Kind != runs.Gap || again[0].Seq != gap.Seq || again[0].Lost != gap.Lost && again[0].Lost != 0 {
			t.Errorf("it comes again and reads %s", show(again))
		}
	})
}

// What nobody could take while it ran is told as a gap, not left out in silence.
func TestFollowTellsOfWhatWasDropped(t *testing.T) {
	flood := executor.Func(func(_ context.Context, req executor.Request) (executor.Result, error) {
		for range 10_000 {
			req.Live().Send(gate.Stdout, []byte("0123456789"))
		}
		return executor.Result{Ending: executor.Exited(0)}, nil
	})
	within(t, flood, runs.Limits{LiveBytes: 10 << 20}, func(t *testing.T, h *house) {
		var got int64
		for _, e := range h.events(h.start(gatecase.Tenant), 0) {
			got += int64(len(e.Text)) + e.Lost
		}
		if got != 100_000 {
			t.Errorf("%d bytes are shown or told of, want 100000", got)
		}
	})
}

// B10: how many follow is bounded, for a tenant too, and a place comes back.
func TestFollowersAreBounded(t *testing.T) {
	within(t, sleeps(10*time.Second), runs.Limits{Followers: 3, FollowersPerTenant: 2}, func(t *testing.T, h *house) {
		mine, theirs := h.start(gatecase.Tenant), h.start(other)
		follow := func(tenant, id string, want bool) *runs.Follower {
			t.Helper()
			f, err := h.Follow(tenant, id, 0)
			if busy, ok := errors.AsType[*slot.BusyError](err); (err == nil) != want || !want && (!ok || busy.RetryAfter <= 0) {
				t.Fatalf("Follow for %s: %v", tenant, err)
			}
			return f
		}
		a := follow(gatecase.Tenant, mine, true)
		b := follow(gatecase.Tenant, mine, true)
		follow(gatecase.Tenant, mine, false)
		c := follow(other, theirs, true)
		follow(other, theirs, false)
		a.Close()
		a.Close()
		d := follow(other, theirs, true)
		follow(gatecase.Tenant, mine, false)
		for _, f := range []*runs.Follower{b, c, d} {
			f.Close()
		}
	})
}

// A follower that stops waiting may go on later.
func TestFollowHeartbeat(t *testing.T) {
	within(t, sleeps(10*time.Second), runs.Limits{}, func(t *testing.T, h *house) {
		id := h.start(gatecase.Tenant)
		synctest.Wait() // until the first event is there
		f, err := h.Follow(gatecase.Tenant, id, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		beats := 0
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			e, err := f.Next(ctx)
			cancel()
			if err == nil {
				if e.Kind != runs.End || f.View().Stage != runs.Ended {
					t.Errorf("got %+v of %+v", e, f.View())
				}
				break
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			beats++
		}
		if beats != 3 {
			t.Errorf("it waited %d times, want 3", beats)
		}
	})
}
