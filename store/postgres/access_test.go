package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/internal/pgserver"
	"github.com/tracon-go/tracon/store/postgres"
)

// TestKeysAcrossHosts: of hosts that start at once one makes the platform's first key
// (B9), and a quota of keys holds on all of them together (B10).
func TestKeysAcrossHosts(t *testing.T) {
	address := pgserver.New(t)
	var hosts []*admin.Admin
	var stores []*postgres.Store
	for range 2 {
		s := open(t, address)
		defer s.Close()
		stores = append(stores, s)
		hosts = append(hosts, admin.New(admin.Config{Store: s, Log: audit.NewLog(s), Hosts: s, Contents: nothing{}}))
	}
	var wg sync.WaitGroup
	secrets := make(chan access.Secret, 8)
	for i := range cap(secrets) {
		wg.Go(func() {
			if _, s, made, err := hosts[i%2].FirstKey(t.Context()); err != nil {
				t.Error(err)
			} else if made {
				secrets <- s
			}
		})
	}
	wg.Wait()
	if len(secrets) != 1 {
		t.Fatalf("%d hosts made the first key", len(secrets))
	}
	s := <-secrets
	var platform access.Principal
	for i, st := range stores {
		p, err := access.Authenticate(t.Context(), st, s.Reveal(), time.Now())
		if err != nil || !p.IsPlatform() {
			t.Fatalf("host %d lets in %+v, error %v", i, p, err)
		}
		platform = p
	}
	if _, err := hosts[0].CreateTenant(t.Context(), platform, access.Tenant{Name: "acme", Quota: access.Quota{Keys: 2}}); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		wg.Go(func() {
			_, _, err := hosts[i%2].CreateKey(t.Context(), admin.Keying{By: platform, Tenant: "acme", Name: fmt.Sprint(i), Roles: []access.Role{access.Reader}})
			if err != nil && !errors.Is(err, access.ErrQuota) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if keys, err := hosts[1].Keys(t.Context(), "acme", access.KeyFilter{}); err != nil || len(keys) != 2 {
		t.Errorf("of two keys there are %d, error %v", len(keys), err)
	}
	if n := verified(t, audit.NewLog(stores[0])); n != 4 {
		t.Errorf("the log has %d entries, want 4", n)
	}
}

// nothing is a gate.Contents without skills.
type nothing struct{}

func (nothing) Find(context.Context, string, string, string) (gate.Origin, error) {
	return 0, gate.ErrUnknown
}

func (nothing) Read(context.Context, string, string, bundle.Limits) (bundle.Bundle, error) {
	return bundle.Bundle{}, gate.ErrUnknown
}

// claimOf returns a claim of the key "key" for a run.
func claimOf(run string) idempotency.Claim {
	return idempotency.Claim{Tenant: "acme", Key: "key", Body: bundle.Sum([]byte("body")), Run: run, At: time.Now()}
}

// TestOneKeyOnTwoHosts: case 53, one key that comes to two hosts at once begins once,
// and what one host finished the other one answers with.
func TestOneKeyOnTwoHosts(t *testing.T) {
	address := pgserver.New(t)
	a, b := open(t, address), open(t, address)
	defer a.Close()
	defer b.Close()
	var wg sync.WaitGroup
	began := make(chan string, 16)
	for i := range cap(began) {
		wg.Go(func() {
			f, err := []*postgres.Store{a, b}[i%2].Begin(t.Context(), claimOf(fmt.Sprint(i)))
			if err != nil {
				t.Error(err)
			}
			if f.State == idempotency.Begun {
				began <- f.Run
			}
		})
	}
	wg.Wait()
	if len(began) != 1 {
		t.Fatalf("the key began %d times", len(began))
	}
	run := <-began
	if err := a.Finish(t.Context(), "acme", "key", run, []byte("answer")); err != nil {
		t.Fatal(err)
	}
	if f, err := b.Begin(t.Context(), claimOf("late")); err != nil || f.State != idempotency.Done || f.Run != run || string(f.Answer) != "answer" {
		t.Errorf("the other host answers %+v, error %v", f, err)
	}
}

// TestKeyWhenTheConnectionIsLost: a key whose commit was not answered stands for the
// run that asked, whether the commit was made or not, and the store goes on.
func TestKeyWhenTheConnectionIsLost(t *testing.T) {
	for name, c := range map[string]cut{"unsent": unsent, "unanswered": unanswered} {
		t.Run(name, func(t *testing.T) {
			w, address := wired(t, pgserver.New(t))
			s, err := postgres.Open(t.Context(), address, postgres.Options{Timeout: 5 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			appendTo(t, audit.NewLog(s), "first")
			w.at("commit", c)
			if f, err := s.Begin(t.Context(), claimOf("mine")); err != nil || f.State != idempotency.Begun || f.Run != "mine" {
				t.Errorf("it is answered with %+v, error %v", f, err)
			}
			w.mu.Lock()
			if w.cut != 0 {
				t.Error("the wire was not cut")
			}
			w.mu.Unlock()
			if f, err := s.Begin(t.Context(), claimOf("another")); err != nil || f.State != idempotency.Running || f.Run != "mine" {
				t.Errorf("another one is answered with %+v, error %v", f, err)
			}
			appendTo(t, audit.NewLog(s), "last")
			if n := verified(t, audit.NewLog(s)); n != 2 {
				t.Errorf("the log has %d entries, want 2", n)
			}
		})
	}
}
