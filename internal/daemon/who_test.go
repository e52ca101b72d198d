package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/serve/httpapi"
	"github.com/tracon-go/tracon/serve/limit"
)

// keyBook has one key, of one tenant.
type keyBook struct {
	key  access.Key
	away error
}

func (b *keyBook) KeyByID(_ context.Context, id string) (access.Key, error) {
	if b.away == nil && id != b.key.ID {
		return access.Key{}, fmt.Errorf("%w: key %s", grant.ErrNotFound, id)
	}
	return b.key, b.away
}

func (b *keyBook) TenantAt(context.Context, string) (access.Tenant, int64, error) {
	return access.Tenant{Name: b.key.Tenant, Created: b.key.Created}, 1, b.away
}

func (b *keyBook) UseKey(context.Context, string, time.Time) error { return nil }

// T11, W03: who is looked at again is looked at however often his machine guessed, and
// what that finds out counts against nobody.
func TestLooksAgainHoweverManyFailed(t *testing.T) {
	s := access.NewSecret()
	b := &keyBook{key: access.Key{ID: s.ID(), Tenant: "t", Name: "ci", Roles: []access.Role{access.Operator}, Created: time.Now(), CreatedBy: "ann", Hash: s.Hash()}}
	w := newWho(b, nil, limit.NewFailures(slog.New(slog.DiscardHandler)))
	r := httptest.NewRequest("POST", "/mcp", nil)
	r.Header.Set("Authorization", "Bearer "+s.Reveal())
	if p, err := w.Authenticate(r); err != nil || p.Tenant != "t" {
		t.Fatalf("a key that holds: %+v, %v", p, err)
	}
	b.key.Revoked = time.Now()
	again := httpapi.Again(w)
	for range 2 * limit.FailedBurst {
		if _, err := again(r); !errors.Is(err, httpapi.ErrUnauthenticated) {
			t.Fatalf("a revoked key, looked at again: %v", err)
		}
	}
	for range limit.FailedBurst {
		if _, err := w.Authenticate(r); !errors.Is(err, httpapi.ErrUnauthenticated) {
			t.Fatalf("looking again counted: %v", err)
		}
	}
	b.away = errors.New("the store is away")
	if _, err := again(r); err == nil || errors.Is(err, httpapi.ErrUnauthenticated) {
		t.Errorf("with the store away: %v", err)
	}
	b.away = nil
	if _, err := again(r); !errors.Is(err, httpapi.ErrUnauthenticated) {
		t.Errorf("a revoked key is looked at no more: %v", err)
	}
}

// W03: a store that is away makes nobody a guesser.
func TestStoreAwayIsNoGuess(t *testing.T) {
	s := access.NewSecret()
	w := newWho(&keyBook{away: errors.New("the store is away")}, nil, limit.NewFailures(slog.New(slog.DiscardHandler)))
	for range 3 * limit.FailedBurst {
		r := httptest.NewRequest("POST", "/mcp", nil)
		r.Header.Set("Authorization", "Bearer "+s.Reveal())
		s = access.NewSecret()
		if _, err := w.Authenticate(r); !errors.Is(err, access.ErrUnavailable) {
			t.Fatalf("a key that could not be looked up: %v", err)
		}
	}
}
