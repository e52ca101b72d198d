package daemon_test

import (
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/internal/id"
)

// TestKeysOfADeadHost: case 53, I5, I7: of two hosts on one PostgreSQL one is killed. The
// key of a call that it did not admit is the next caller's; that of one which it
// admitted is done, and its record says unknown. What the living host began is left alone.
func TestKeysOfADeadHost(t *testing.T) {
	f := newFleet(t)
	living := f.house()
	if err := living.AddRoots(); err != nil {
		t.Fatal(err)
	}
	settings(t, living)
	if _, err := living.Admin.SetPolicy(t.Context(), "op", "t", func(p *gate.Policy) error { p.Timeout = 20 * time.Minute; return nil }); err != nil {
		t.Fatal(err)
	}
	grantAll(t, living)
	if _, err := started(living); err != nil {
		t.Fatal(err)
	}
	c, _ := f.host(1, "wait.sh")
	pids := f.appear("pid.", 1)
	var dead, run string
	for leaf, err := range living.Log.Entries(t.Context(), "t", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e := leaf.Entry; e.Kind == audit.Admission {
			dead, run = e.Fact("instance"), e.Run
		}
	}
	begin := func(key, run, instance string) idempotency.Found {
		t.Helper()
		found, err := living.Store.Begin(t.Context(), idempotency.Claim{Tenant: "t", Key: key, Body: bundle.Sum([]byte("body")), Run: run, At: time.Now(), Instance: idempotency.Instance(instance)})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	mine, next := id.New(), id.New()
	begin("admitted", run, dead)
	begin("not-admitted", id.New(), dead)
	begin("mine", mine, living.ID())
	f.kill(c, pids)
	if got := begin("not-admitted", next, living.ID()); got.State != idempotency.Running {
		t.Errorf("while nobody knows of its death it stands for %+v", got)
	}

	f.expire(living, 24*time.Hour)
	if _, err := started(f.house()); err != nil { // which buries the dead before it starts
		t.Fatal(err)
	}
	if got := begin("not-admitted", next, living.ID()); got.State != idempotency.Begun || got.Run != next {
		t.Errorf("what was not admitted stands for %+v", got)
	}
	if got := begin("admitted", id.New(), living.ID()); got.State != idempotency.Done || got.Run != run || got.Answer != nil {
		t.Errorf("what was admitted stands for %+v", got)
	}
	if r, err := living.Store.Call(t.Context(), "t", run); err != nil || r.Ending != "unknown" {
		t.Errorf("its record is %+v, %v", r, err)
	}
	if got := begin("mine", id.New(), living.ID()); got.State != idempotency.Running || got.Run != mine {
		t.Errorf("what the living one began stands for %+v", got)
	}
}
