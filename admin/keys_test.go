package admin_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

var platform = access.Principal{Actor: "root", Roles: []access.Role{access.Platform}}

func of(tenant string, roles ...access.Role) access.Principal {
	return access.Principal{Tenant: tenant, Actor: "ann", Roles: roles}
}

// tenant makes the tenant t of a desk.
func (d desk) tenant(t *testing.T, name string) {
	t.Helper()
	if _, err := d.CreateTenant(t.Context(), platform, access.Tenant{Name: name}); err != nil {
		t.Fatal(err)
	}
}

func (d desk) lets(t *testing.T, s access.Secret) bool {
	t.Helper()
	p, err := access.Authenticate(t.Context(), d.st, s.Reveal(), time.Now())
	if err != nil && err != access.ErrCredential {
		t.Fatal(err)
	}
	return err == nil && p.Key == s.ID()
}

// B7: a key lets its tenant in from when it is made until it ends, and the log tells
// of each change, without the secret and its hash.
func TestKeyLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.tenant(t, "t")
		ctx := t.Context()
		k, s, err := d.CreateKey(ctx, admin.Keying{By: of("t", access.Admin), Tenant: "t", Name: "ci", Roles: []access.Role{access.Operator},
			Scopes: []access.Permission{access.WriteRuns}, Expires: time.Now().Add(48 * time.Hour)})
		if err != nil || !d.lets(t, s) {
			t.Fatalf("a new key does not let in: %v", err)
		}
		time.Sleep(24 * time.Hour)
		next, s2, err := d.RotateKey(ctx, admin.Rotation{By: of("t", access.Admin), Tenant: "t", ID: k.ID, Overlap: time.Hour})
		if err != nil || !d.lets(t, s) || !d.lets(t, s2) {
			t.Fatalf("in the overlap one of two keys does not let in: %v", err)
		}
		if next.Name != k.Name || next.Roles[0] != k.Roles[0] || next.Scopes[0] != k.Scopes[0] || !next.Expires.Equal(time.Now().Add(48*time.Hour)) {
			t.Errorf("in the place of %+v came %+v", k, next)
		}
		time.Sleep(time.Hour)
		if d.lets(t, s) || !d.lets(t, s2) {
			t.Error("after the overlap the old key lets in, or the new one does not")
		}
		third, s3, err := d.RotateKey(ctx, admin.Rotation{By: of("t", access.Admin), Tenant: "t", ID: next.ID})
		if err != nil || d.lets(t, s2) || !d.lets(t, s3) {
			t.Errorf("with an overlap of zero the old key lets in, or the new one does not: %v", err)
		}
		if _, err := d.RevokeKey(ctx, platform, "t", third.ID, "it stood in a log"); err != nil || d.lets(t, s3) {
			t.Errorf("a revoked key lets in: %v", err)
		}
		var text strings.Builder
		for leaf, err := range d.log.Entries(ctx, "t", 0) {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "%s %s %s %v %q\n", leaf.Entry.Kind, leaf.Entry.Actor, leaf.Entry.Subject, leaf.Entry.Facts, leaf.Bytes)
		}
		for _, want := range []string{"{act created}", "{act replaced}", "{act revoked}", "{reason it stood in a log}", "{replaces " + k.ID, "{roles operator}", "{scopes runs.write}", "key ann key " + k.ID} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("the log does not say %q:\n%s", want, text.String())
			}
		}
		for _, secret := range []access.Secret{s, s2, s3} {
			if strings.Contains(text.String(), secret.Reveal()[24:50]) || strings.Contains(text.String(), secret.Hash().String()[:16]) {
				t.Errorf("the log shows the secret, or its hash:\n%s", text.String())
			}
		}
	})
}

// Nobody hands on what he does not hold, and nobody touches another's keys.
func TestKeysAreHandedOn(t *testing.T) {
	d := newDesk(t)
	d.tenant(t, "t")
	d.tenant(t, "u")
	ctx := t.Context()
	mine, _, err := d.CreateKey(ctx, admin.Keying{By: platform, Tenant: "t", Name: "admin", Roles: []access.Role{access.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	root, _, made, err := d.FirstKey(ctx)
	if err != nil || !made {
		t.Fatal(err)
	}
	narrow := of("t", access.Admin)
	narrow.Scopes = []access.Permission{access.WriteKeys}
	roles := func(r ...access.Role) []access.Role { return r }
	for _, tt := range []struct {
		name string
		k    admin.Keying
		want error // nil: it is made
	}{
		{"an admin, for his tenant", admin.Keying{By: of("t", access.Admin), Tenant: "t", Roles: roles(access.Admin)}, nil},
		{"an admin, for another", admin.Keying{By: of("t", access.Admin), Tenant: "u", Roles: roles(access.Reader)}, access.ErrDenied},
		{"an admin, for the platform", admin.Keying{By: of("t", access.Admin), Roles: roles(access.Platform)}, access.ErrDenied},
		{"an approver", admin.Keying{By: of("t", access.Approver), Tenant: "t", Roles: roles(access.Reader)}, access.ErrDenied},
		{"a narrowed admin, all that the role gives", admin.Keying{By: narrow, Tenant: "t", Roles: roles(access.Admin)}, access.ErrDenied},
		{"a narrowed admin, as narrow", admin.Keying{By: narrow, Tenant: "t", Roles: roles(access.Admin), Scopes: narrow.Scopes}, nil},
		{"nobody", admin.Keying{Tenant: "t", Roles: roles(access.Reader)}, access.ErrInvalid},
		{"the platform, for a tenant", admin.Keying{By: platform, Tenant: "t", Roles: roles(access.Admin)}, nil},
		{"the platform, for itself", admin.Keying{By: platform, Roles: roles(access.Platform)}, nil},
		{"the platform, for one that nobody made", admin.Keying{By: platform, Tenant: "v", Roles: roles(access.Admin)}, grant.ErrNotFound},
		{"no role", admin.Keying{By: platform, Tenant: "t"}, access.ErrInvalid},
		{"an end before its beginning", admin.Keying{By: platform, Tenant: "t", Roles: roles(access.Reader), Expires: time.Unix(1, 0)}, access.ErrInvalid},
	} {
		tt.k.Name = "k"
		k, s, err := d.CreateKey(ctx, tt.k)
		if tt.want == nil && err != nil || !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
		if err != nil && (k.ID != "" || s.Reveal() != "") {
			t.Errorf("%s: with the error came a key", tt.name)
		}
	}
	before := d.kinds(t)
	for _, tt := range []struct {
		name   string
		by     access.Principal
		tenant string
		id     string
		want   error
	}{
		{"another tenant's admin", of("u", access.Admin), "t", mine.ID, access.ErrDenied},
		{"another tenant's admin, as his own", of("u", access.Admin), "u", mine.ID, grant.ErrNotFound},
		{"an operator", of("t", access.Operator), "t", mine.ID, access.ErrDenied},
		{"an admin, the platform's", of("t", access.Admin), "", root.ID, access.ErrDenied},
		{"an admin, the platform's as his own", of("t", access.Admin), "t", root.ID, grant.ErrNotFound},
		{"the platform, a tenant's as its own", platform, "", mine.ID, grant.ErrNotFound},
	} {
		if _, err := d.RevokeKey(ctx, tt.by, tt.tenant, tt.id, ""); !errors.Is(err, tt.want) {
			t.Errorf("%s revokes: got %v, want %v", tt.name, err, tt.want)
		}
		if _, s, err := d.RotateKey(ctx, admin.Rotation{By: tt.by, Tenant: tt.tenant, ID: tt.id}); !errors.Is(err, tt.want) || s.Reveal() != "" {
			t.Errorf("%s rotates: got %v, want %v", tt.name, err, tt.want)
		}
	}
	// A rotation hands the secret on, and so takes what the key gives.
	if _, _, err := d.RotateKey(ctx, admin.Rotation{By: narrow, Tenant: "t", ID: mine.ID}); !errors.Is(err, access.ErrDenied) {
		t.Errorf("a narrowed admin rotates a wider key: %v", err)
	}
	for _, overlap := range []time.Duration{-1, admin.MaxOverlap + 1} {
		if _, _, err := d.RotateKey(ctx, admin.Rotation{By: platform, Tenant: "t", ID: mine.ID, Overlap: overlap}); !errors.Is(err, access.ErrInvalid) {
			t.Errorf("an overlap of %s: got %v", overlap, err)
		}
	}
	if after := d.kinds(t); after != before {
		t.Errorf("what was refused is in the log: %s, then %s", before, after)
	}
}

// A key that is dead is not rotated into life.
func TestDeadKeysStayDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.tenant(t, "t")
		ctx := t.Context()
		dead := func(name string, kill func(access.Key) error) {
			t.Helper()
			k, _, err := d.CreateKey(ctx, admin.Keying{By: platform, Tenant: "t", Name: name, Roles: []access.Role{access.Reader}, Expires: time.Now().Add(time.Hour)})
			if err == nil {
				err = kill(k)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := d.RotateKey(ctx, admin.Rotation{By: platform, Tenant: "t", ID: k.ID}); !errors.Is(err, grant.ErrConflict) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		dead("revoked", func(k access.Key) error { _, err := d.RevokeKey(ctx, platform, "t", k.ID, ""); return err })
		dead("expired", func(access.Key) error { time.Sleep(time.Hour); return nil })
		dead("replaced", func(k access.Key) error {
			_, _, err := d.RotateKey(ctx, admin.Rotation{By: platform, Tenant: "t", ID: k.ID, Overlap: time.Minute})
			return err
		})
	})
}

// B10: the quota of keys holds however many are made at once; revoked, expired and
// replaced ones take no room.
func TestKeyQuota(t *testing.T) {
	d := newDesk(t)
	if _, err := d.CreateTenant(t.Context(), platform, access.Tenant{Name: "t", Quota: access.Quota{Keys: 3}}); err != nil {
		t.Fatal(err)
	}
	create := func() (access.Key, error) {
		k, _, err := d.CreateKey(t.Context(), admin.Keying{By: platform, Tenant: "t", Name: "k", Roles: []access.Role{access.Reader}})
		return k, err
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := create(); err != nil && !errors.Is(err, access.ErrQuota) && !errors.Is(err, grant.ErrConflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for {
		if _, err := create(); errors.Is(err, access.ErrQuota) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	u, q, err := d.Usage(t.Context(), "t")
	if err != nil || u.Keys != 3 || q.Keys != 3 || q.Skills != access.DefaultSkills {
		t.Errorf("the usage is %+v of %+v, error %v", u, q, err)
	}
	keys, err := d.Keys(t.Context(), "t", access.KeyFilter{})
	if err != nil || len(keys) != 3 {
		t.Fatalf("%d keys, error %v", len(keys), err)
	}
	if _, _, err := d.RotateKey(t.Context(), admin.Rotation{By: platform, Tenant: "t", ID: keys[0].ID, Overlap: time.Hour}); err != nil {
		t.Errorf("a rotation takes room: %v", err)
	}
	if _, err := d.RevokeKey(t.Context(), platform, "t", keys[1].ID, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := create(); err != nil {
		t.Errorf("a revoked key takes room: %v", err)
	}
}

// The platform has its first key once, however many hosts start, and never again.
func TestFirstKey(t *testing.T) {
	d := newDesk(t)
	var wg sync.WaitGroup
	secrets := make(chan access.Secret, 8)
	for range cap(secrets) {
		wg.Go(func() {
			if k, s, made, err := d.FirstKey(t.Context()); err != nil {
				t.Error(err)
			} else if made {
				secrets <- s
			} else if k.ID != "" || s.Reveal() != "" {
				t.Error("who made none has one")
			}
		})
	}
	wg.Wait()
	if len(secrets) != 1 {
		t.Fatalf("%d hosts made the first key", len(secrets))
	}
	s := <-secrets
	p, err := access.Authenticate(t.Context(), d.st, s.Reveal(), time.Now())
	if err != nil || !p.IsPlatform() || !p.May(access.WriteKeysOf) {
		t.Errorf("the first key lets in %+v, %v", p, err)
	}
	if _, err := d.RevokeKey(t.Context(), platform, "", s.ID(), "done"); err != nil {
		t.Fatal(err)
	}
	if _, _, made, err := d.FirstKey(t.Context()); made || err != nil {
		t.Errorf("after the first key was revoked there is another first one: %t, %v", made, err)
	}
}

// R8: a tenant that is off has no credential and runs nothing; what it set itself stays.
func TestTenantOff(t *testing.T) {
	d := newDesk(t)
	d.tenant(t, "t")
	ctx := t.Context()
	_, s, err := d.CreateKey(ctx, admin.Keying{By: platform, Tenant: "t", Name: "k", Roles: []access.Role{access.Reader}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.SetPolicy(ctx, "op", "t", func(p *gate.Policy) error { p.Enabled = true; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, off := range []bool{true, false} {
		tenant, err := d.SetTenant(ctx, platform, "t", func(x *access.Tenant) error {
			*x = access.Tenant{Name: "other", Off: off, By: "evil"} // of it the switch alone holds
			return nil
		})
		if err != nil || tenant.Name != "t" || tenant.By != "root" || tenant.Off != off {
			t.Errorf("the tenant is %+v, error %v", tenant, err)
		}
		p, err := d.st.Policy(ctx, "t")
		if err != nil || p.Suspended != off || !p.Enabled || d.lets(t, s) == off {
			t.Errorf("off: %t, and the gates see %+v, and its key lets in: %t; error %v", off, p, d.lets(t, s), err)
		}
	}
	if p, err := d.Policy(ctx, "t"); err != nil || !p.Enabled || p.Suspended {
		t.Errorf("its own policy is %+v, error %v", p, err)
	}
	before := d.kinds(t)
	if _, err := d.SetTenant(ctx, platform, "t", func(*access.Tenant) error { return nil }); err != nil || d.kinds(t) != before {
		t.Errorf("a change of nothing is an entry: %v", err)
	}
}

// Tenants are the platform's to make and to change.
func TestTenantMistakes(t *testing.T) {
	d := newDesk(t)
	d.tenant(t, "t")
	ctx := t.Context()
	for _, tt := range []struct {
		name string
		do   func() error
		want error
	}{
		{"a tenant's admin makes one", func() error {
			_, err := d.CreateTenant(ctx, of("t", access.Admin), access.Tenant{Name: "u"})
			return err
		}, access.ErrDenied},
		{"a tenant's admin changes his own", func() error {
			_, err := d.SetTenant(ctx, of("t", access.Admin), "t", func(x *access.Tenant) error { x.Quota.Keys = 1000; return nil })
			return err
		}, access.ErrDenied},
		{"one that is there", func() error { _, err := d.CreateTenant(ctx, platform, access.Tenant{Name: "t"}); return err }, grant.ErrConflict},
		{"the host's history", func() error {
			_, err := d.CreateTenant(ctx, platform, access.Tenant{Name: gate.HostTenant})
			return err
		}, grant.ErrRef},
		{"a quota below zero", func() error {
			_, err := d.CreateTenant(ctx, platform, access.Tenant{Name: "u", Quota: access.Quota{Skills: -1}})
			return err
		}, access.ErrInvalid},
		{"one that nobody made", func() error {
			_, err := d.SetTenant(ctx, platform, "u", func(*access.Tenant) error { return nil })
			return err
		}, grant.ErrNotFound},
		{"the host as a tenant", func() error { _, err := d.Tenant(ctx, gate.HostTenant); return err }, grant.ErrRef},
	} {
		if err := tt.do(); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	if list, err := d.Tenants(ctx, access.TenantFilter{}); err != nil || len(list) != 1 {
		t.Errorf("the tenants are %v, error %v", list, err)
	}
}

// B10: an import and a grant over the tenant's quota are refused, and are no entry.
func TestQuotaOfGrantsAndImports(t *testing.T) {
	d := newDesk(t)
	ctx := t.Context()
	if _, err := d.CreateTenant(ctx, platform, access.Tenant{Name: "t", Quota: access.Quota{Grants: 1, Skills: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Grant(ctx, d.granting(t)); err != nil {
		t.Fatal(err)
	}
	content, err := d.in.Read(ctx, "t", "s", gate.Host{}.Content)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Import(ctx, admin.Importing{Actor: "op", Tenant: "t", Skill: "one", Content: content}); err != nil {
		t.Fatal(err)
	}
	before := d.kinds(t)
	g := d.granting(t)
	g.Ref = grant.Ref{Tenant: "t", Skill: "s", AllScripts: true}
	if _, err := d.Grant(ctx, g); !errors.Is(err, access.ErrQuota) {
		t.Errorf("a second grant: got %v", err)
	}
	if _, err := d.Import(ctx, admin.Importing{Actor: "op", Tenant: "t", Skill: "two", Content: content}); !errors.Is(err, access.ErrQuota) {
		t.Errorf("a second skill: got %v", err)
	}
	if after := d.kinds(t); after != before {
		t.Errorf("what was refused is in the log: %s, then %s", before, after)
	}
}
