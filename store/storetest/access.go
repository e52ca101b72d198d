package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// keyID returns the id of the tenant's n-th key: of no other tenant's.
func keyID(tenant string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d", tenant, n))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

// keyOf returns the tenant's n-th key; that of the platform where tenant is empty.
func keyOf(tenant string, n int) access.Key {
	k := access.Key{
		ID: keyID(tenant, n), Tenant: tenant, Name: "it's \"needed\"; -- ünï", Roles: []access.Role{access.Operator, access.Approver},
		Scopes: []access.Permission{access.ReadRuns, access.WriteGrants}, Created: at, CreatedBy: "maker", Expires: at.Add(time.Hour),
		Hash: sha256.Sum256([]byte(keyID(tenant, n))),
	}
	if tenant == "" {
		k.Roles, k.Scopes = []access.Role{access.Platform}, []access.Permission{access.ReadHost}
	}
	return k
}

// keptKey returns k as it comes back.
func keptKey(k access.Key) access.Key {
	k.Created, k.Expires = kept(k.Created), kept(k.Expires)
	return k
}

func (k *kit) addKey(key access.Key, after string) error {
	return k.commit(access.History(key.Tenant), audit.Key, func(ctx context.Context, p audit.Pending) error {
		return k.store.AddKey(ctx, key, after, p)
	})
}

func (k *kit) replaceKey(tenant, id string, with access.Key, ends time.Time) error {
	return k.commit(access.History(tenant), audit.Key, func(ctx context.Context, p audit.Pending) error {
		return k.store.ReplaceKey(ctx, tenant, id, with, ends, p)
	})
}

func (k *kit) revokeKey(tenant, id string) error {
	return k.commit(access.History(tenant), audit.Key, func(ctx context.Context, p audit.Pending) error {
		return k.store.RevokeKey(ctx, tenant, id, at.Add(time.Minute), "revoker", p)
	})
}

// tenantOf returns a tenant.
func tenantOf(name string) access.Tenant {
	return access.Tenant{
		Name: name, Created: at, By: "maker", Off: true, Quota: access.Quota{Skills: 1, Bytes: 2, Grants: 3, Keys: 4},
		Rates: access.Rates{Requests: 0.5, Burst: 6, Runs: 1e-3, RunBurst: 8},
	}
}

func (k *kit) setTenant(t access.Tenant, after int64) error {
	return k.commit(t.Name, audit.Tenant, func(ctx context.Context, p audit.Pending) error {
		return k.store.SetTenant(ctx, t, after, p)
	})
}

// changesOfAccess are those of [kit.changes] that this file knows. The tenant has the
// keys 1 and 2; see [kit.base].
func (k *kit) changesOfAccess() []change {
	ctx := k.Context()
	keys := func() any { list, err := k.store.Keys(ctx, alpha, access.KeyFilter{}); return []any{list, err} }
	return []change{
		{"AddKey", alpha, func(ctx context.Context, p audit.Pending) error {
			return k.store.AddKey(ctx, keyOf(alpha, 50), keyID(alpha, 2), p)
		}, keys},
		{"ReplaceKey", alpha, func(ctx context.Context, p audit.Pending) error {
			return k.store.ReplaceKey(ctx, alpha, keyID(alpha, 1), keyOf(alpha, 51), at.Add(time.Minute), p)
		}, keys},
		{"RevokeKey", alpha, func(ctx context.Context, p audit.Pending) error {
			return k.store.RevokeKey(ctx, alpha, keyID(alpha, 2), at, "revoker", p)
		}, keys},
		{"SetTenant", alpha, func(ctx context.Context, p audit.Pending) error { return k.store.SetTenant(ctx, tenantOf(alpha), 0, p) },
			func() any { t, n, err := k.store.TenantAt(ctx, alpha); return []any{t, n, err} }},
	}
}

// methodsOfAccess are those of [kit.methods] that this file knows and that change nothing.
func (k *kit) methodsOfAccess() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"KeyByID":  func(ctx context.Context) error { _, err := k.store.KeyByID(ctx, keyID(alpha, 1)); return err },
		"Key":      func(ctx context.Context) error { _, err := k.store.Key(ctx, alpha, keyID(alpha, 1)); return err },
		"Keys":     func(ctx context.Context) error { _, err := k.store.Keys(ctx, alpha, access.KeyFilter{}); return err },
		"UseKey":   func(ctx context.Context) error { return k.store.UseKey(ctx, keyID(alpha, 1), at) },
		"TenantAt": func(ctx context.Context) error { _, _, err := k.store.TenantAt(ctx, alpha); return err },
		"Tenants":  func(ctx context.Context) error { _, err := k.store.Tenants(ctx, access.TenantFilter{}); return err },
		"Kept":     func(ctx context.Context) error { _, err := k.store.Kept(ctx, alpha, at); return err },
		"Within": func(ctx context.Context) error {
			return k.commitCtx(ctx, alpha, func(ctx context.Context, p audit.Pending) error {
				return k.store.Within(access.Quota{}).AddGrant(ctx, grantOf(id(90), script(alpha, "scripts/w.py"), bare("base.py")), bare("base.py"), "", p)
			})
		},
	}
}

// apartAccess are the separations of keys and tenants. Both tenants have the key 1,
// me alone the key 2; both were made.
var apartAccess = []separation{
	{"KeyByID", func(k *kit, me, other string) {
		for _, tenant := range []string{me, other} {
			key, err := k.store.KeyByID(k.Context(), keyID(tenant, 1))
			k.must(err)
			if key.Tenant != tenant {
				k.broken("the key of %q is said to be that of %q", tenant, key.Tenant)
			}
		}
	}},
	{"Key", func(k *kit, me, other string) {
		key, err := k.store.Key(k.Context(), me, keyID(me, 2))
		k.must(err)
		k.same("the key", key, keptKey(keyOf(me, 2)))
		for _, stranger := range []string{other, "", hostTenant, me + other} {
			_, err := k.store.Key(k.Context(), stranger, keyID(me, 2))
			k.wants(err, grant.ErrNotFound, "the key of %q, asked for by %q", me, stranger)
		}
	}},
	{"Keys", func(k *kit, me, other string) {
		for _, f := range []access.KeyFilter{{}, {Before: keyID(other, 1)}} { // the other's key is no cursor of mine
			list, err := k.store.Keys(k.Context(), me, f)
			k.must(err)
			k.same("the keys", list, []access.Key{keptKey(keyOf(me, 2)), keptKey(keyOf(me, 1))})
		}
		for _, stranger := range []string{"", hostTenant} {
			list, err := k.store.Keys(k.Context(), stranger, access.KeyFilter{})
			k.must(err)
			if len(list) != 0 {
				k.broken("%q has no key and is answered with those of %q", stranger, list[0].Tenant)
			}
		}
	}},
	{"TenantAt", func(k *kit, me, other string) {
		t, n, err := k.store.TenantAt(k.Context(), me)
		k.must(err)
		if t.Name != me || t.By != me || n != 1 {
			k.broken("%q is answered with the tenant %q of %q, revision %d", me, t.Name, t.By, n)
		}
	}},
	{"Kept", func(k *kit, me, other string) {
		u, err := k.store.Kept(k.Context(), me, at)
		k.must(err)
		bytes := int64(len(me+".py") + len(me+".md"))
		k.same("what is kept", u, access.Usage{Skills: 2, Bytes: bytes, Grants: 2, Keys: 2})
	}},
	{"UseKey", func(k *kit, me, other string) {
		k.must(k.store.UseKey(k.Context(), keyID(me, 1), at.Add(time.Second)))
		key, err := k.store.Key(k.Context(), other, keyID(other, 1))
		k.must(err)
		if !key.Used.IsZero() {
			k.broken("a use of the key of %q was kept for that of %q", me, other)
		}
	}},
	{"AddKey", func(k *kit, me, other string) {
		before := k.keys(other)
		k.wants(k.addKey(keyOf(other, 3), keyID(me, 2)), grant.ErrConflict, "after another tenant's key")
		stolen := keyOf(other, 3)
		stolen.ID = keyID(me, 1)
		k.wants(k.addKey(stolen, keyID(other, 1)), grant.ErrConflict, "with the id of another tenant's key")
		k.must(k.addKey(keyOf(me, 3), keyID(me, 2)))
		k.same("the other's keys", k.keys(other), before)
	}},
	{"ReplaceKey", func(k *kit, me, other string) {
		before := k.keys(other)
		k.wants(k.replaceKey(other, keyID(me, 3), keyOf(other, 4), at), grant.ErrNotFound, "a key of %q replaced by %q", me, other)
		if err := k.replaceKey(me, keyID(me, 3), keyOf(other, 4), at); err == nil {
			k.broken("a key of %q stands in place of one of %q", other, me)
		}
		k.must(k.replaceKey(me, keyID(me, 3), keyOf(me, 4), at.Add(time.Minute)))
		k.same("the other's keys", k.keys(other), before)
	}},
	{"RevokeKey", func(k *kit, me, other string) {
		before := k.keys(other)
		for _, stranger := range []string{other, ""} {
			k.wants(k.revokeKey(stranger, keyID(me, 1)), grant.ErrNotFound, "a key of %q revoked by %q", me, stranger)
		}
		k.must(k.revokeKey(me, keyID(me, 1)))
		k.same("the other's keys", k.keys(other), before)
	}},
	{"SetTenant", func(k *kit, me, other string) {
		t, n, err := k.store.TenantAt(k.Context(), me)
		k.must(err)
		t.Off = true
		k.must(k.setTenant(t, n))
		t, n, err = k.store.TenantAt(k.Context(), other)
		k.must(err)
		if t.Off && n == 1 {
			k.broken("switching %q off has switched %q off", me, other)
		}
		p, err := k.store.Policy(k.Context(), other)
		k.must(err)
		if p.Suspended != t.Off {
			k.broken("switching %q off has suspended %q", me, other)
		}
	}},
}

func (k *kit) keys(tenant string) []access.Key {
	k.Helper()
	list, err := k.store.Keys(k.Context(), tenant, access.KeyFilter{})
	k.must(err)
	return list
}

// populateAccess gives tenant what apartAccess says.
func (k *kit) populateAccess(tenant string, mine bool) {
	k.Helper()
	k.must(k.addKey(keyOf(tenant, 1), ""))
	if mine {
		k.must(k.addKey(keyOf(tenant, 2), keyID(tenant, 1)))
	} else {
		k.must(k.addKey(keyOf(tenant, 5), keyID(tenant, 1)))
		k.must(k.revokeKey(tenant, keyID(tenant, 5)))
	}
	k.must(k.setTenant(access.Tenant{Name: tenant, Created: at, By: tenant}, 0))
}

func keyWhole(k *kit) {
	sample := keyOf(alpha, 1)
	k.whole(sample, "Revoked", "RevokedBy", "ReplacedBy", "Used")
	least := keyOf("", 2)
	least.Scopes, least.Expires = nil, time.Time{}
	for _, key := range []access.Key{sample, least} {
		k.must(k.addKey(key, ""))
		want := keptKey(key)
		if key.Expires.IsZero() {
			want.Expires = time.Time{}
		}
		for range 2 { // and again: what comes out is a copy
			got, err := k.store.Key(k.Context(), key.Tenant, key.ID)
			k.must(err)
			k.same("by its tenant", got, want)
			got.Roles[0] = "evil"
			got, err = k.store.KeyByID(k.Context(), key.ID)
			k.must(err)
			k.same("by its id", got, want)
			got.Roles[0] = "evil"
			list := k.keys(key.Tenant)
			k.same("in the list", list, []access.Key{want})
			list[0].Roles[0] = "evil"
		}
	}
	key := keyOf(beta, 1)
	k.must(k.addKey(key, ""))
	key.Roles[0] = "evil" // what went in is a copy too
	got, err := k.store.KeyByID(k.Context(), key.ID)
	k.must(err)
	k.same("after the caller changed what it had given", got, keptKey(keyOf(beta, 1)))
}

func keyBad(k *kit) {
	for name, change := range map[string]func(*access.Key){
		"no id":                   func(key *access.Key) { key.ID = "" },
		"an id of another form":   func(key *access.Key) { key.ID = id(1) },
		"no hash":                 func(key *access.Key) { key.Hash = access.Hash{} },
		"no name":                 func(key *access.Key) { key.Name = "" },
		"no role":                 func(key *access.Key) { key.Roles = nil },
		"the platform's role":     func(key *access.Key) { key.Roles = []access.Role{access.Platform} },
		"a role that is none":     func(key *access.Key) { key.Roles = []access.Role{"root"} },
		"the platform's tenant":   func(key *access.Key) { key.Tenant = "" },
		"the host's history":      func(key *access.Key) { key.Tenant = hostTenant },
		"a scope it has not":      func(key *access.Key) { key.Scopes = []access.Permission{access.WriteKeys} },
		"no time":                 func(key *access.Key) { key.Created = time.Time{} },
		"revoked before it is":    func(key *access.Key) { key.Revoked = at },
		"replaced before it is":   func(key *access.Key) { key.ReplacedBy = keyID(alpha, 2) },
		"used before it is":       func(key *access.Key) { key.Used = at },
		"made by nobody":          func(key *access.Key) { key.CreatedBy = "" },
		"a name that breaks rows": func(key *access.Key) { key.Name = "a\nb" },
	} {
		key := keyOf(alpha, 1)
		change(&key)
		if err := k.addKey(key, ""); err == nil {
			k.broken("a key with %s was kept", name)
		}
	}
	if n := k.size(); n != 0 {
		k.broken("the log has %d entries", n)
	}
}

func keyList(k *kit) {
	var want []string // the newest first
	for i := range 30 {
		after := ""
		if i > 0 {
			after = want[0]
		}
		k.must(k.addKey(keyOf(alpha, i), after))
		want = slices.Insert(want, 0, keyID(alpha, i))
		k.must(k.addKey(keyOf(beta, i), map[bool]string{true: keyID(beta, i-1)}[i > 0]))
	}
	for _, tt := range []struct {
		name string
		f    access.KeyFilter
		want []string
	}{
		{"all", access.KeyFilter{}, want},
		{"five", access.KeyFilter{Limit: 5}, want[:5]},
		{"before one", access.KeyFilter{Before: want[7], Limit: 3}, want[8:11]},
		{"before the oldest", access.KeyFilter{Before: want[29]}, nil},
		{"before one that is another's", access.KeyFilter{Before: keyID(beta, 3), Limit: 2}, want[:2]},
	} {
		list, err := k.store.Keys(k.Context(), alpha, tt.f)
		k.must(err)
		var got []string
		for _, key := range list {
			got = append(got, key.ID)
		}
		k.same(tt.name, got, tt.want)
	}
	if _, err := k.store.Keys(k.Context(), alpha, access.KeyFilter{Limit: -1}); err == nil {
		k.broken("a negative limit is no error")
	}
}

func keyReplace(k *kit) {
	for _, tenant := range []string{alpha, ""} {
		k.must(k.addKey(keyOf(tenant, 1), ""))
		end := at.Add(10 * time.Minute)
		k.must(k.replaceKey(tenant, keyID(tenant, 1), keyOf(tenant, 2), end))
		old := keptKey(keyOf(tenant, 1))
		old.Expires, old.ReplacedBy = kept(end), keyID(tenant, 2)
		k.same("the keys", k.keys(tenant), []access.Key{keptKey(keyOf(tenant, 2)), old})
		k.wants(k.replaceKey(tenant, keyID(tenant, 1), keyOf(tenant, 3), end), grant.ErrConflict, "replacing it again")

		k.must(k.replaceKey(tenant, keyID(tenant, 2), keyOf(tenant, 3), at.Add(100*time.Hour)))
		second, err := k.store.Key(k.Context(), tenant, keyID(tenant, 2))
		k.must(err)
		if !second.Expires.Equal(kept(at.Add(time.Hour))) {
			k.broken("a key that was to expire at %s was made to live until %s", kept(at.Add(time.Hour)), second.Expires)
		}
		k.wants(k.replaceKey(tenant, keyID(tenant, 3), keyOf(tenant, 1), end), grant.ErrConflict, "by a key whose id is taken")
		k.must(k.revokeKey(tenant, keyID(tenant, 3)))
		third := keptKey(keyOf(tenant, 3))
		third.Revoked, third.RevokedBy = kept(at.Add(time.Minute)), "revoker"
		k.same("the revoked key", k.keys(tenant)[0], third)
		k.wants(k.replaceKey(tenant, keyID(tenant, 3), keyOf(tenant, 4), end), grant.ErrConflict, "replacing what is revoked")
		k.wants(k.revokeKey(tenant, keyID(tenant, 3)), grant.ErrConflict, "revoking it again")
		k.wants(k.revokeKey(tenant, keyID(tenant, 9)), grant.ErrNotFound, "revoking none")
		k.must(k.revokeKey(tenant, keyID(tenant, 1))) // one that was replaced may be taken back before its end
	}
}

func keyUse(k *kit) {
	k.must(k.addKey(keyOf(alpha, 1), ""))
	n := k.size()
	for _, tt := range []struct{ at, want time.Duration }{
		{0, 0}, {access.UsedEvery - time.Microsecond, 0}, {-time.Hour, 0}, {access.UsedEvery, access.UsedEvery}, {time.Hour, time.Hour},
		{time.Hour + access.UsedEvery - time.Microsecond, time.Hour},
	} {
		k.must(k.store.UseKey(k.Context(), keyID(alpha, 1), at.Add(tt.at)))
		key, err := k.store.KeyByID(k.Context(), keyID(alpha, 1))
		k.must(err)
		if want := kept(at.Add(tt.want)); !key.Used.Equal(want) {
			k.broken("a key used at %s more is said to be used at %s, want %s", tt.at, key.Used, want)
		}
	}
	k.must(k.store.UseKey(k.Context(), keyID(alpha, 9), at)) // of none
	k.must(k.revokeKey(alpha, keyID(alpha, 1)))
	key, err := k.store.KeyByID(k.Context(), keyID(alpha, 1))
	k.must(err)
	if key.Used.IsZero() || key.Revoked.IsZero() {
		k.broken("a revocation has forgotten the use: %+v", key)
	}
	if got := k.size(); got != n+1 {
		k.broken("the uses of a key grew the log from %d to %d entries", n, got-1)
	}
}

func tenantWhole(k *kit) {
	t, n, err := k.store.TenantAt(k.Context(), alpha)
	k.must(err)
	if n != 0 || t != (access.Tenant{}) {
		k.broken("one that nobody made has the revision %d: %+v", n, t)
	}
	sample := tenantOf(alpha)
	sample.Deleted = kept(at)
	k.whole(sample)
	plain := access.Tenant{Name: alpha, Created: at, By: "maker"}
	for i, want := range []access.Tenant{plain, sample, plain} {
		k.must(k.setTenant(want, int64(i)))
		want.Created = kept(want.Created)
		got, n, err := k.store.TenantAt(k.Context(), alpha)
		k.must(err)
		k.same("the tenant", got, want)
		if n != int64(i)+1 {
			k.broken("after %d changes the revision is %d", i+1, n)
		}
		p, err := k.store.Policy(k.Context(), alpha)
		k.must(err)
		k.same("R8: a tenant that is off is suspended for the gates, and one that is on is not", p, gate.Policy{Suspended: want.Off})
	}
	k.must(k.setPolicy(alpha, gate.Policy{Enabled: true, Suspended: false}, 0))
	p, _, err := k.store.PolicyAt(k.Context(), alpha)
	k.must(err)
	k.same("the policy as it was set", p, gate.Policy{Enabled: true})
	for name, bad := range map[string]access.Tenant{
		"no name":            {Created: at, By: "maker"},
		"the host's name":    {Name: hostTenant, Created: at, By: "maker"},
		"a quota below zero": {Name: alpha, Created: at, By: "maker", Quota: access.Quota{Keys: -1}},
		"no author":          {Name: alpha, Created: at},
	} {
		if err := k.setTenant(bad, 3); err == nil {
			k.broken("a tenant with %s was kept", name)
		}
	}
}

func tenantList(k *kit) {
	for _, name := range []string{"b", "B", "a", "ünï", "a%", "aa"} {
		k.must(k.setTenant(access.Tenant{Name: name, Created: at, By: "maker"}, 0))
	}
	k.must(k.setPolicy("nobody made it", gate.Policy{}, 0))
	all := []string{"B", "a", "a%", "aa", "b", "ünï"}
	for _, tt := range []struct {
		name string
		f    access.TenantFilter
		want []string
	}{
		{"all", access.TenantFilter{}, all},
		{"two", access.TenantFilter{Limit: 2}, all[:2]},
		{"behind one", access.TenantFilter{After: "a", Limit: 2}, all[2:4]},
		{"behind one that is not there", access.TenantFilter{After: "a$"}, all[2:]},
		{"behind the last", access.TenantFilter{After: "ünï"}, nil},
	} {
		list, err := k.store.Tenants(k.Context(), tt.f)
		k.must(err)
		var got []string
		for _, t := range list {
			got = append(got, t.Name)
		}
		k.same(tt.name, got, tt.want)
	}
	if _, err := k.store.Tenants(k.Context(), access.TenantFilter{Limit: -1}); err == nil {
		k.broken("a negative limit is no error")
	}
}
