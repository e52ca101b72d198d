package limit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/access"
)

func principal(tenant, key string) access.Principal {
	return access.Principal{Tenant: tenant, Actor: "key " + key, Roles: []access.Role{access.Admin}, Key: key}
}

// ask has n requests come one after the other, each answered at once, and returns
// how many were let in.
func ask(l *Limits, p access.Principal, n int, run bool) (let int, after time.Duration) {
	for range n {
		leave, wait := l.Enter(context.Background(), p, run)
		if leave != nil {
			leave()
			let++
		} else {
			after = wait
		}
	}
	return let, after
}

// B10: a key has a burst and then its rate, and is told when to come back; what
// one key floods, another one of the tenant and other tenants do not feel.
func TestKeyRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{KeyRate: 10, TenantRate: 100})
		let, after := ask(l, principal("a", "1"), 50, false)
		if let != 20 || after <= 0 || after > 100*time.Millisecond {
			t.Errorf("let in %d, again after %v; want a burst of 20, and at most 100ms", let, after)
		}
		for _, p := range []access.Principal{principal("a", "2"), principal("b", "3"), {Actor: "op", Roles: []access.Role{access.Platform}}} {
			if let, _ := ask(l, p, 1, false); let != 1 {
				t.Errorf("%v was not let in", p)
			}
		}
		time.Sleep(after)
		if let, _ := ask(l, principal("a", "1"), 2, false); let != 1 {
			t.Errorf("after the time that it was told %d were let in, want 1", let)
		}
		time.Sleep(time.Second)
		if let, _ := ask(l, principal("a", "1"), 50, false); let != 10 {
			t.Errorf("after a second %d were let in, want 10", let)
		}
	})
}

// B10: many keys of one tenant have the tenant's rate together; runs have one more.
func TestTenantRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{KeyRate: 100, TenantRate: 10, RunRate: 2})
		total := 0
		for key := range 10 {
			let, _ := ask(l, principal("a", fmt.Sprint(key)), 10, false)
			total += let
		}
		if total != 20 {
			t.Errorf("%d were let in, want a burst of 20", total)
		}
		if let, _ := ask(l, principal("b", "x"), 10, true); let != 4 {
			t.Errorf("%d runs were let in, want a burst of 4", let)
		}
		// What was refused for the one took nothing from the other.
		if let, _ := ask(l, principal("b", "x"), 30, false); let != 16 {
			t.Errorf("%d requests were let in, want the 16 that the runs left", let)
		}
	})
}

// A tenant's own rates hold for it alone, are read again after a while, and where
// they cannot be read the host's hold.
func TestOwnRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		rates := access.Rates{Requests: 1, Burst: 3}
		l := New(Config{KeyRate: 100, TenantRate: 10, Tenant: func(_ context.Context, tenant string) (access.Rates, error) {
			if tenant != "a" {
				return access.Rates{}, errors.New("the store is stopped")
			}
			asked++
			return rates, nil
		}})
		if let, _ := ask(l, principal("a", "1"), 50, false); let != 3 || asked != 1 {
			t.Errorf("%d were let in, asked %d times; want 3, once", let, asked)
		}
		if let, _ := ask(l, principal("b", "2"), 50, false); let != 20 {
			t.Errorf("%d of another tenant were let in, want 20", let)
		}
		rates = access.Rates{}
		time.Sleep(ratesHold)
		ask(l, principal("a", "1"), 1, false)
		time.Sleep(2 * time.Second)
		if let, _ := ask(l, principal("a", "1"), 50, false); let != 20 || asked != 2 {
			t.Errorf("with the host's rates %d were let in, asked %d times; want 20, twice", let, asked)
		}
	})
}

// B10: what is under way is bounded; one tenant has a quarter of it, and what all
// tenants do together leaves places to the platform.
func TestAtOnce(t *testing.T) {
	l := New(Config{KeyRate: 1000, TenantRate: 1000, AtOnce: 16})
	var leave []func()
	enter := func(ctx context.Context, p access.Principal, n int) {
		t.Helper()
		for i := range n {
			f, _ := l.Enter(ctx, p, false)
			if f == nil {
				t.Fatalf("%s: %d of %d were let in", p.Actor, i, n)
			}
			leave = append(leave, f)
		}
		if f, after := l.Enter(ctx, p, false); f != nil || after != retryCrowd {
			t.Errorf("%s: more than %d were let in, or are to come after %v", p.Actor, n, after)
		}
	}
	for _, tenant := range []string{"a", "b", "c"} {
		enter(t.Context(), principal(tenant, tenant), 4)
	}
	enter(t.Context(), principal("d", "d"), 2)
	enter(t.Context(), access.Principal{Actor: "platform", Roles: []access.Role{access.Platform}}, 2)
	for _, f := range leave {
		f()
		f() // twice is once
	}
	if l.under != 0 || len(l.tenants) != 0 {
		t.Errorf("%d are under way, of %v", l.under, l.tenants)
	}
	leave = nil
	enter(t.Context(), access.Principal{Actor: "platform", Roles: []access.Role{access.Platform}}, 8)
	for _, f := range leave {
		f()
	}
	if f, _ := New(Config{AtOnce: 1}).Enter(t.Context(), principal("a", "1"), false); f == nil {
		t.Error("where one may be under way, no tenant gets in")
	}
}

// However many ask, the number of buckets is bounded, and who asks all the time
// keeps his.
func TestBucketsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{KeyRate: 1, TenantRate: 1e6, RunRate: 1})
		busy := principal("a", "busy")
		ask(l, busy, 2, false)
		for i := range MaxBuckets + 10 {
			ask(l, principal("b", fmt.Sprint(i)), 1, false)
			if i%1000 == 0 {
				ask(l, busy, 1, false)
			}
		}
		if n := len(l.buckets); n != MaxBuckets || l.used.Len() != n {
			t.Errorf("%d buckets, %d in the list; want %d", n, l.used.Len(), MaxBuckets)
		}
		if let, _ := ask(l, busy, 1, false); let != 0 {
			t.Error("a busy key got a new bucket by crowding its own out")
		}
	})
}
