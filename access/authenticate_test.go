package access_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/grant"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// A book holds one key and one tenant, and counts what it is asked.
type book struct {
	key    access.Key
	tenant access.Tenant
	err    error // of every read
	asked  []string
	used   []time.Time
	failed error // of UseKey
}

func (b *book) KeyByID(_ context.Context, id string) (access.Key, error) {
	b.asked = append(b.asked, "key")
	if b.err == nil && id != b.key.ID {
		return access.Key{}, fmt.Errorf("%w: key %s", grant.ErrNotFound, id)
	}
	return b.key, b.err
}

func (b *book) TenantAt(_ context.Context, name string) (access.Tenant, int64, error) {
	b.asked = append(b.asked, "tenant")
	if name != b.tenant.Name {
		return access.Tenant{}, 0, b.err
	}
	return b.tenant, 1, b.err
}

func (b *book) UseKey(_ context.Context, id string, at time.Time) error {
	b.used = append(b.used, at)
	return b.failed
}

func made(s access.Secret) *book {
	return &book{
		key: access.Key{ID: s.ID(), Tenant: "t", Name: "ci", Roles: roles(access.Operator), Scopes: []access.Permission{access.WriteRuns},
			Created: now.Add(-time.Hour), CreatedBy: "ann", Expires: now.Add(time.Hour), Hash: s.Hash()},
		tenant: access.Tenant{Name: "t", Created: now, By: "ann"},
	}
}

// A key that is in force lets its tenant in, with what it gives and no more.
func TestAuthenticate(t *testing.T) {
	s := access.NewSecret()
	b := made(s)
	p, err := access.Authenticate(t.Context(), b, s.Reveal(), now)
	if err != nil {
		t.Fatal(err)
	}
	want := access.Principal{Tenant: "t", Actor: "key " + s.ID() + " ci", Roles: roles(access.Operator), Scopes: []access.Permission{access.WriteRuns}, Key: s.ID()}
	if d := cmp.Diff(want, p); d != "" {
		t.Error(d)
	}
	if !p.May(access.WriteRuns) || p.May(access.ReadRuns) {
		t.Error("the scopes do not hold")
	}
	if !slices.Equal(b.used, []time.Time{now}) {
		t.Errorf("the use was kept at %v", b.used)
	}
	b.key.Used = now
	b.used = nil
	for _, at := range []time.Time{now, now.Add(access.UsedEvery - 1), now.Add(-time.Hour)} {
		if _, err := access.Authenticate(t.Context(), b, s.Reveal(), at); err != nil {
			t.Fatal(err)
		}
	}
	if b.used != nil {
		t.Errorf("a use within %s of the last was kept at %v", access.UsedEvery, b.used)
	}
	b.failed = errors.New("the disk is full")
	if _, err := access.Authenticate(t.Context(), b, s.Reveal(), now.Add(access.UsedEvery)); err != nil || len(b.used) != 1 {
		t.Errorf("a use that could not be kept keeps out: %v", err)
	}
}

// The platform's key needs no tenant.
func TestAuthenticatePlatform(t *testing.T) {
	s := access.NewSecret()
	b := made(s)
	b.key.Tenant, b.key.Roles, b.key.Scopes, b.tenant = "", roles(access.Platform), nil, access.Tenant{}
	p, err := access.Authenticate(t.Context(), b, s.Reveal(), now)
	if err != nil || !p.IsPlatform() {
		t.Errorf("got %+v, %v", p, err)
	}
}

// W02, T15: every credential that lets nobody in has the one error, whatever the reason, and
// an id that nobody has costs the same questions as a wrong secret.
func TestAuthenticateFails(t *testing.T) {
	s, other := access.NewSecret(), access.NewSecret()
	for _, tt := range []struct {
		name   string
		text   string
		change func(*book)
		asked  []string
	}{
		{"no text", "", func(*book) {}, nil},
		{"a text of another form", "Bearer x", func(*book) {}, nil},
		{"a wrong checksum", s.Reveal()[:len(s.Reveal())-1] + "x", func(*book) {}, nil},
		{"an id that nobody has", other.Reveal(), func(*book) {}, []string{"key", "tenant"}},
		{"a wrong secret", s.Reveal(), func(b *book) { b.key.Hash = other.Hash() }, []string{"key", "tenant"}},
		{"no hash is kept", s.Reveal(), func(b *book) { b.key.Hash = access.Hash{} }, []string{"key", "tenant"}},
		{"revoked", s.Reveal(), func(b *book) { b.key.Revoked = now.Add(time.Hour) }, []string{"key", "tenant"}},
		{"expired to the instant", s.Reveal(), func(b *book) { b.key.Expires = now }, []string{"key", "tenant"}},
		{"replaced, and its overlap over", s.Reveal(), func(b *book) { b.key.ReplacedBy, b.key.Expires = other.ID(), now }, []string{"key", "tenant"}},
		{"no role", s.Reveal(), func(b *book) { b.key.Roles = nil }, []string{"key", "tenant"}},
		{"a tenant that nobody made", s.Reveal(), func(b *book) { b.tenant = access.Tenant{} }, []string{"key", "tenant"}},
		{"a tenant that is off", s.Reveal(), func(b *book) { b.tenant.Off = true }, []string{"key", "tenant"}},
		{"a tenant that was deleted, and is not off", s.Reveal(), func(b *book) { b.tenant.Deleted = now }, []string{"key", "tenant"}},
		{"a tenant's role without a tenant", s.Reveal(), func(b *book) { b.key.Tenant = "" }, []string{"key", "tenant"}},
		{"the platform's role with a tenant", s.Reveal(), func(b *book) { b.key.Roles = roles(access.Platform) }, []string{"key", "tenant"}},
	} {
		b := made(s)
		tt.change(b)
		p, err := access.Authenticate(t.Context(), b, tt.text, now)
		if err != access.ErrCredential || !cmp.Equal(p, access.Principal{}) {
			t.Errorf("%s: got %+v, %v", tt.name, p, err)
		}
		if !slices.Equal(b.asked, tt.asked) {
			t.Errorf("%s: the book was asked for %v, want %v", tt.name, b.asked, tt.asked)
		}
		if b.used != nil {
			t.Errorf("%s: a use was kept", tt.name)
		}
	}
}

// A rotated key lets in until its overlap is over.
func TestAuthenticateInTheOverlap(t *testing.T) {
	s := access.NewSecret()
	b := made(s)
	b.key.ReplacedBy = access.NewSecret().ID()
	if _, err := access.Authenticate(t.Context(), b, s.Reveal(), now.Add(time.Hour-1)); err != nil {
		t.Error(err)
	}
}

// A book that cannot be read lets nobody in, and is told apart from a bad credential.
func TestAuthenticateUnavailable(t *testing.T) {
	s := access.NewSecret()
	b := made(s)
	b.err = errors.New("connection refused")
	p, err := access.Authenticate(t.Context(), b, s.Reveal(), now)
	if !errors.Is(err, access.ErrUnavailable) || errors.Is(err, access.ErrCredential) || !errors.Is(err, b.err) || p.May(access.WriteRuns) {
		t.Errorf("got %+v, %v", p, err)
	}
	if err := access.Admit(t.Context(), b, principal("t", roles(access.Reader))); !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("Admit: got %v", err)
	}
}

// A door's own credential lets in whom a key would.
func TestAdmit(t *testing.T) {
	for _, tt := range []struct {
		name   string
		p      access.Principal
		change func(*book)
		want   error
	}{
		{"a tenant's", principal("t", roles(access.Reader)), func(*book) {}, nil},
		{"the platform's", principal("", roles(access.Platform)), func(*book) {}, nil},
		{"nobody", access.Principal{}, func(*book) {}, access.ErrCredential},
		{"no role", principal("t", nil), func(*book) {}, access.ErrCredential},
		{"a role that is none", principal("t", roles("root")), func(*book) {}, access.ErrCredential},
		{"a tenant that nobody made", principal("u", roles(access.Reader)), func(*book) {}, access.ErrCredential},
		{"a tenant that is off", principal("t", roles(access.Reader)), func(b *book) { b.tenant.Off = true }, access.ErrCredential},
		{"a tenant that was deleted, and is not off", principal("t", roles(access.Reader)), func(b *book) { b.tenant.Deleted = now }, access.ErrCredential},
	} {
		b := made(access.NewSecret())
		tt.change(b)
		if err := access.Admit(t.Context(), b, tt.p); err != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
}
