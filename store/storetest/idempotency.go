package storetest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/idempotency"
)

// claimOf returns a claim of the tenant: the body and the run are named.
func claimOf(tenant, key, body, run string) idempotency.Claim {
	return idempotency.Claim{Tenant: tenant, Key: key, Body: bundle.Sum([]byte(body)), Run: run, At: at}
}

// begins ends the check when the key does not stand for what want says.
func (k *kit) begins(what string, c idempotency.Claim, want idempotency.Found) {
	k.Helper()
	got, err := k.store.Begin(k.Context(), c)
	k.must(err)
	if !want.Begun.IsZero() {
		want.Begun = kept(want.Begun)
	}
	k.same(what, got, want)
}

func begun(run string) idempotency.Found {
	return idempotency.Found{State: idempotency.Begun, Run: run, Begun: at}
}

func running(run string) idempotency.Found {
	return idempotency.Found{State: idempotency.Running, Run: run, Begun: at}
}

func done(run string, answer []byte) idempotency.Found {
	return idempotency.Found{State: idempotency.Done, Run: run, Begun: at, Answer: answer}
}

func (k *kit) methodsOfIdempotency() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Begin": func(ctx context.Context) error {
			_, err := k.store.Begin(ctx, claimOf(alpha, "key", "body", id(1)))
			return err
		},
		"Finish": func(ctx context.Context) error { return k.store.Finish(ctx, alpha, "key", id(1), nil) },
		"Drop":   func(ctx context.Context) error { return k.store.Drop(ctx, alpha, "key", id(1)) },
		"Forget": func(ctx context.Context) error { return k.store.Forget(ctx, alpha) },
		"Sweep":  func(ctx context.Context) error { _, err := k.store.Sweep(ctx, at, 0); return err },
		"Left":   func(ctx context.Context) error { _, err := k.store.Left(ctx, "dead", 0); return err },
		"Beginner": func(ctx context.Context) error {
			_, err := k.store.Beginner(ctx, "")
			return err
		},
	}
}

// apartIdempotency are the separations of idempotency keys (W14). Nobody has any
// before.
var apartIdempotency = []separation{
	{"Begin", func(k *kit, me, other string) {
		k.begins("mine", claimOf(me, "both", "body", id(1)), begun(id(1)))
		k.begins("the other's, of another body", claimOf(other, "both", "another body", id(2)), begun(id(2)))
		k.begins("mine again", claimOf(me, "both", "body", id(3)), running(id(1)))
	}},
	{"Finish", func(k *kit, me, other string) {
		k.wants(k.store.Finish(k.Context(), other, "both", id(1), []byte("evil")), idempotency.ErrGone, "a run of %q finished by %q", me, other)
		k.must(k.store.Finish(k.Context(), me, "both", id(1), []byte("mine")))
		k.begins("mine", claimOf(me, "both", "body", id(3)), done(id(1), []byte("mine")))
		k.begins("the other's", claimOf(other, "both", "another body", id(3)), running(id(2)))
	}},
	{"Drop", func(k *kit, me, other string) {
		k.begins("mine", claimOf(me, "dropped", "body", id(4)), begun(id(4)))
		k.wants(k.store.Drop(k.Context(), other, "dropped", id(4)), idempotency.ErrGone, "a key of %q dropped by %q", me, other)
		k.begins("mine again", claimOf(me, "dropped", "body", id(5)), running(id(4)))
		k.must(k.store.Drop(k.Context(), other, "both", id(2)))
		k.begins("what the other dropped is mine still", claimOf(me, "both", "body", id(5)), done(id(1), []byte("mine")))
		// For the other way round, on the same store.
		k.must(k.store.Drop(k.Context(), me, "dropped", id(4)))
		_, err := k.store.Sweep(k.Context(), at.Add(time.Hour), 0)
		k.must(err)
	}},
	{"Forget", func(k *kit, me, other string) {
		k.begins("mine", claimOf(me, "kept", "body", id(6)), begun(id(6)))
		k.begins("the other's", claimOf(other, "kept", "body", id(7)), begun(id(7)))
		k.must(k.store.Forget(k.Context(), other))
		k.begins("mine when the other's are forgotten", claimOf(me, "kept", "body", id(8)), running(id(6)))
		k.begins("the forgotten one", claimOf(other, "kept", "another body", id(9)), begun(id(9)))
		// For the other way round, on the same store.
		k.must(k.store.Forget(k.Context(), me))
		k.must(k.store.Forget(k.Context(), other))
	}},
}

func idempotencyOnce(k *kit) {
	n := k.size()
	k.begins("the first", claimOf(alpha, "key", "body", id(1)), begun(id(1)))
	k.begins("the very same try", claimOf(alpha, "key", "body", id(1)), begun(id(1)))
	k.begins("the second", claimOf(alpha, "key", "body", id(2)), running(id(1)))
	k.begins("another body", claimOf(alpha, "key", "other", id(2)), idempotency.Found{State: idempotency.Conflict})
	k.begins("another key", claimOf(alpha, "KEY", "other", id(3)), begun(id(3)))
	k.wants(k.store.Finish(k.Context(), alpha, "key", id(2), nil), idempotency.ErrGone, "finishing another's run")
	k.wants(k.store.Drop(k.Context(), alpha, "key", id(2)), idempotency.ErrGone, "dropping another's run")
	k.must(k.store.Finish(k.Context(), alpha, "key", id(1), []byte("{\"a\":\n\x00\xff}")))
	k.begins("when it is done", claimOf(alpha, "key", "body", id(2)), done(id(1), []byte("{\"a\":\n\x00\xff}")))
	k.begins("another body when it is done", claimOf(alpha, "key", "other", id(2)), idempotency.Found{State: idempotency.Conflict})
	k.wants(k.store.Finish(k.Context(), alpha, "key", id(1), nil), idempotency.ErrGone, "finishing it again")
	k.wants(k.store.Drop(k.Context(), alpha, "key", id(1)), idempotency.ErrGone, "dropping what is done")
	k.must(k.store.Drop(k.Context(), alpha, "KEY", id(3)))
	k.begins("after it was dropped", claimOf(alpha, "KEY", "another", id(4)), begun(id(4)))
	for name, c := range map[string]idempotency.Claim{
		"no tenant": claimOf("", "key", "body", id(1)), "no key": claimOf(alpha, "", "body", id(1)), "no run": claimOf(alpha, "key", "body", ""),
		"a blank": claimOf(alpha, "a key", "body", id(1)), "no body": {Tenant: alpha, Key: "key", Run: id(1), At: at},
	} {
		if f, err := k.store.Begin(k.Context(), c); err == nil {
			k.broken("a claim with %s was answered with %+v", name, f)
		}
	}
	if got := k.size(); got != n {
		k.broken("the log grew from %d to %d entries", n, got)
	}
}

func idempotencyWindow(k *kit) {
	for i := range 5 {
		c := claimOf(alpha, fmt.Sprint(i), "body", id(i))
		c.At = at.Add(time.Duration(i) * time.Hour)
		k.begins("a key", c, idempotency.Found{State: idempotency.Begun, Run: id(i), Begun: c.At})
		k.must(k.store.Finish(k.Context(), alpha, c.Key, c.Run, []byte("answer")))
	}
	late := claimOf(alpha, "0", "another body", id(9))
	late.At = at.Add(idempotency.Window - time.Microsecond)
	k.begins("at the end of its time", late, idempotency.Found{State: idempotency.Conflict})
	late.At = at.Add(idempotency.Window)
	k.begins("when its time is over", late, idempotency.Found{State: idempotency.Begun, Run: id(9), Begun: late.At})

	for _, tt := range []struct {
		before time.Duration
		limit  int
		want   int
	}{{time.Hour, 0, 0}, {4 * time.Hour, 2, 2}, {4 * time.Hour, 2, 1}, {4 * time.Hour, 0, 0}, {100 * time.Hour, 0, 2}} {
		n, err := k.store.Sweep(k.Context(), at.Add(tt.before), tt.limit)
		k.must(err)
		if n != tt.want {
			k.broken("of what began %s later at the most %d keys were forgotten, want %d", tt.before, n, tt.want)
		}
	}
	if _, err := k.store.Sweep(k.Context(), at, -1); err == nil {
		k.broken("a negative limit is no error")
	}
	for i := range 2 * idempotency.SweptByBegin {
		k.begins("an old key", claimOf(beta, fmt.Sprint(i), "body", id(i)), begun(id(i)))
	}
	young := claimOf(alpha, "young", "body", id(20))
	young.At = at.Add(2 * idempotency.Window)
	k.begins("a young key", young, idempotency.Found{State: idempotency.Begun, Run: id(20), Begun: young.At})
	n, err := k.store.Sweep(k.Context(), at.Add(time.Hour), 0)
	k.must(err)
	if n != idempotency.SweptByBegin {
		k.broken("beside a key that begins %d of %d old ones are left", n, 2*idempotency.SweptByBegin)
	}
}

// idempotencyRace: of several that bring one key at once, one begins (case 53).
func idempotencyRace(k *kit) {
	const callers = 16
	var first atomic.Pointer[string]
	var wg sync.WaitGroup
	runs := make(chan string, callers)
	for i := range callers {
		wg.Go(func() {
			f, err := k.store.Begin(k.Context(), claimOf(alpha, "race", "body", id(i)))
			if err != nil {
				k.Errorf("error: %v", err)
			}
			if f.State == idempotency.Begun {
				if f.Run != id(i) || !first.CompareAndSwap(nil, &f.Run) {
					k.Errorf("the rule is broken: %s\n\ta second one began, as run %s", k.rule, f.Run)
				}
			}
			runs <- f.Run
		})
	}
	wg.Wait()
	for range callers {
		if run := <-runs; first.Load() == nil || run != *first.Load() {
			k.broken("some were told of run %s, and others of another", run)
		}
	}
}

func idempotencyBounds(k *kit) {
	huge := bytes.Repeat([]byte("x"), idempotency.MaxAnswer+1)
	for i, tt := range []struct{ answer, want []byte }{
		{nil, nil}, {[]byte{}, nil}, {huge[1:], huge[1:]}, {huge, nil}, {huge[:idempotency.SmallAnswer], huge[:idempotency.SmallAnswer]},
	} {
		key := fmt.Sprint("size", i)
		k.begins("a key", claimOf(alpha, key, "body", id(i)), begun(id(i)))
		k.must(k.store.Finish(k.Context(), alpha, key, id(i), tt.answer))
		k.begins("the answer", claimOf(alpha, key, "body", id(99)), done(id(i), tt.want))
	}
	// One large answer is kept already. Those beyond the bound are not, and small ones are.
	large := huge[:idempotency.SmallAnswer+1]
	var keptLarge atomic.Int64
	var wg sync.WaitGroup
	work := make(chan int)
	for range 64 {
		wg.Go(func() {
			for i := range work {
				c := claimOf(alpha, fmt.Sprint("large", i), "body", id(i))
				_, err := k.store.Begin(k.Context(), c)
				if err == nil {
					err = k.store.Finish(k.Context(), alpha, c.Key, c.Run, large)
				}
				f, err2 := k.store.Begin(k.Context(), c)
				if err != nil || err2 != nil || f.State != idempotency.Done {
					k.Errorf("%+v, errors %v, %v", f, err, err2)
				}
				if f.Answer != nil {
					keptLarge.Add(1)
				}
			}
		})
	}
	for i := range idempotency.MaxLarge + 5 {
		work <- i
	}
	close(work)
	wg.Wait()
	if n := keptLarge.Load(); n != idempotency.MaxLarge-1 {
		k.broken("%d large answers of a tenant are kept beside one, want %d", n, idempotency.MaxLarge-1)
	}
	k.begins("a small one", claimOf(alpha, "small", "body", id(1)), begun(id(1)))
	k.must(k.store.Finish(k.Context(), alpha, "small", id(1), []byte("small")))
	k.begins("a small one", claimOf(alpha, "small", "body", id(2)), done(id(1), []byte("small")))
	k.begins("another tenant's", claimOf(beta, "large", "body", id(1)), begun(id(1)))
	k.must(k.store.Finish(k.Context(), beta, "large", id(1), large))
	k.begins("another tenant's", claimOf(beta, "large", "body", id(2)), done(id(1), large))
}
