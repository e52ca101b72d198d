package storetest

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/toolcall"
)

var (
	errGaveUp = errors.New("the caller gave up")
	anyGrant  = grant.Filter{}
	anyCall   = toolcall.Filter{}
)

// base gives the store what the changes of [kit.changes] change.
func (k *kit) base() uint64 {
	k.Helper()
	k.grant(id(1), script(alpha, "scripts/base.py"), bare("base.py"))
	k.must(k.addKey(keyOf(alpha, 1), ""))
	k.must(k.addKey(keyOf(alpha, 2), keyID(alpha, 1)))
	return k.size()
}

func changeUnsealed(k *kit) {
	n := k.base()
	for _, c := range k.changes() {
		before := c.state()
		k.wants(c.do(k.Context(), audit.Pending{}), audit.ErrEntry, "%s with the zero Pending", c.name)
		k.same(c.name+" with the zero Pending had an effect", c.state(), before)
		if c.name == "Append" {
			continue // it is of whatever history its entry says
		}
		for _, other := range []string{beta, "@nobody", c.tenant + " "} {
			c.tenant = other
			_, err := k.with(c)
			k.wants(err, audit.ErrEntry, "%s with an entry in the history of %q", c.name, other)
			k.same(c.name+" with an entry in another history had an effect", c.state(), before)
		}
	}
	if got := k.size(); got != n {
		k.broken("the log grew from %d to %d entries", n, got)
	}
}

func changeOne(k *kit) {
	n := k.base()
	for _, c := range k.changes() {
		before := c.state()
		r, err := k.with(c)
		k.must(err)
		n++
		if got := k.size(); got != n {
			k.broken("after %s the log has %d entries, want %d", c.name, got, n)
		}
		k.lastIs(r, n)
		if c.name != "Append" && cmp.Equal(c.state(), before, equal) {
			k.broken("%s returned no error and had no effect", c.name)
		}
	}
}

func changeRefused(k *kit) {
	k.base()
	for _, c := range k.changes() {
		_, err := k.with(c)
		k.must(err)
	}
	n := k.size()
	before := map[string]any{}
	for _, c := range k.changes() {
		before[c.name] = c.state()
	}
	fresh, half := content("never kept"), pair("half kept")
	for _, tt := range []struct {
		name string
		want error
		do   func() error
	}{
		{"SetHost after another revision", grant.ErrConflict, func() error { return k.setHost(gate.Host{}, 0) }},
		{"SetHost after a later revision", grant.ErrConflict, func() error { return k.setHost(gate.Host{}, 2) }},
		{"SetPolicy after another revision", grant.ErrConflict, func() error { return k.setPolicy(alpha, gate.Policy{}, 0) }},
		{"SetPolicy after a later revision", grant.ErrConflict, func() error { return k.setPolicy(alpha, gate.Policy{}, 2) }},
		{"SetPolicy of another tenant after this one's revision", grant.ErrConflict, func() error { return k.setPolicy(beta, gate.Policy{}, 1) }},
		{"AddGrant after none where there is one", grant.ErrConflict, func() error {
			return k.addGrant(grantOf(id(70), script(alpha, "scripts/base.py"), fresh), fresh, "")
		}},
		{"AddGrant after one where there is none", grant.ErrConflict, func() error {
			return k.addGrant(grantOf(id(71), script(alpha, "scripts/new.py"), fresh), fresh, id(1))
		}},
		// This one fails last of all: its content was written before.
		{"AddGrant with an id that is taken", grant.ErrConflict, func() error {
			return k.addGrant(grantOf(id(1), script(alpha, "scripts/new.py"), fresh), fresh, "")
		}},
		{"RevokeGrant a second time", grant.ErrConflict, func() error { return k.revoke(alpha, id(1)) }},
		{"RevokeGrant of no grant", grant.ErrNotFound, func() error { return k.revoke(alpha, id(999)) }},
		{"AddVersion after none where there is one", grant.ErrConflict, func() error {
			return k.addVersion(versionOf(alpha, id(80), "imported", fresh), fresh, "")
		}},
		{"AddVersion after one where there is none", grant.ErrConflict, func() error {
			return k.addVersion(versionOf(alpha, id(81), "new", fresh), fresh, id(55))
		}},
		{"AddVersion of a deletion after none where there is one", grant.ErrConflict, func() error {
			return k.addVersion(deletionOf(alpha, id(82), "imported"), bundle.Bundle{}, "")
		}},
		{"AddVersion of a content whose last file cannot be read", errUnread, func() error {
			return k.addVersion(versionOf(alpha, id(83), "new", half), unread{half}, "")
		}},
		{"AddVersion of a content whose last file is another one than listed", bundle.ErrAltered, func() error {
			return k.addVersion(versionOf(alpha, id(84), "new", half), bent{half}, "")
		}},
		// This one fails last of all: its content was written before.
		{"AddVersion with an id that is taken", grant.ErrConflict, func() error {
			return k.addVersion(versionOf(alpha, id(55), "new", fresh), fresh, "")
		}},
		{"AddKey after none where there is one", grant.ErrConflict, func() error { return k.addKey(keyOf(alpha, 52), "") }},
		{"AddKey after one that is not the newest", grant.ErrConflict, func() error { return k.addKey(keyOf(alpha, 52), keyID(alpha, 2)) }},
		{"AddKey with an id that is taken", grant.ErrConflict, func() error { return k.addKey(keyOf(alpha, 1), keyID(alpha, 51)) }},
		{"ReplaceKey of what was replaced", grant.ErrConflict, func() error {
			return k.replaceKey(alpha, keyID(alpha, 1), keyOf(alpha, 52), at)
		}},
		// This one fails last of all: the old key was written before.
		{"ReplaceKey with an id that is taken", grant.ErrConflict, func() error {
			return k.replaceKey(alpha, keyID(alpha, 50), keyOf(alpha, 1), at)
		}},
		{"RevokeKey a second time", grant.ErrConflict, func() error { return k.revokeKey(alpha, keyID(alpha, 2)) }},
		{"SetTenant after another revision", grant.ErrConflict, func() error { return k.setTenant(tenantOf(alpha), 0) }},
		{"SetTenant after a later revision", grant.ErrConflict, func() error { return k.setTenant(tenantOf(alpha), 2) }},
		{"AddCall a second time", toolcall.ErrExists, func() error {
			r := record(alpha, id(60))
			r.Ending = "signaled"
			return k.addCall(r)
		}},
	} {
		k.wants(tt.do(), tt.want, "%s", tt.name)
		if got := k.size(); got != n {
			k.broken("%s: the log grew from %d to %d entries", tt.name, n, got)
		}
		for _, c := range k.changes() {
			k.same(tt.name+" had an effect", c.state(), before[c.name])
		}
	}
	_, err := k.store.Content(k.Context(), alpha, fresh.Digest())
	k.wants(err, grant.ErrNotFound, "the content of a grant that was refused")
	// The refusals have left nothing in the way of the next change.
	k.must(k.addVersion(versionOf(alpha, id(85), "new", half), half, ""))
	k.filesAre("what could not be read before", alpha, half)
	k.must(k.addGrant(grantOf(id(72), script(alpha, "scripts/new.py"), fresh), fresh, ""))
	b, err := k.store.Content(k.Context(), alpha, fresh.Digest())
	k.must(err)
	k.same("the content", b.Files(), fresh.Files())
}

func changeRace(k *kit) {
	k.base()
	n := k.size()
	const callers = 12
	race := func(name string, change func(caller int) error) {
		k.Helper()
		var made atomic.Int64
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				if err := change(i); err == nil {
					made.Add(1)
				} else if !errors.Is(err, grant.ErrConflict) && !errors.Is(err, toolcall.ErrExists) {
					k.Errorf("%s: %v", name, err)
				}
			})
		}
		wg.Wait()
		n++
		if got := k.size(); made.Load() != 1 || got != n {
			k.broken("%s: %d of %d callers succeeded, and the log has %d entries, want %d", name, made.Load(), callers, got, n)
		}
	}
	c := content("race")
	race("SetHost", func(int) error { return k.setHost(host(), 0) })
	race("SetPolicy", func(int) error { return k.setPolicy(alpha, policy(), 0) })
	race("AddGrant", func(i int) error { return k.addGrant(grantOf(id(100+i), allOf(alpha), c), c, "") })
	race("RevokeGrant", func(int) error { return k.revoke(alpha, id(1)) })
	race("AddVersion", func(i int) error { return k.addVersion(versionOf(alpha, id(300+i), "race", c), c, "") })
	first, err := k.store.Versions(k.Context(), alpha, "race", 0)
	k.must(err)
	race("AddVersion of a deletion", func(i int) error {
		return k.addVersion(deletionOf(alpha, id(400+i), "race"), bundle.Bundle{}, first[0].ID)
	})
	race("AddKey", func(i int) error { return k.addKey(keyOf(alpha, 500+i), keyID(alpha, 2)) })
	race("ReplaceKey", func(i int) error { return k.replaceKey(alpha, keyID(alpha, 1), keyOf(alpha, 600+i), at) })
	race("RevokeKey", func(int) error { return k.revokeKey(alpha, keyID(alpha, 2)) })
	race("SetTenant", func(int) error { return k.setTenant(tenantOf(alpha), 0) })
	race("the first AddKey of the platform", func(i int) error { return k.addKey(keyOf("", i), "") })
	race("AddCall", func(int) error { return k.addCall(record(alpha, id(200))) })
}

// methods returns every method as a call with ctx, and what Leaves yields.
func (k *kit) methods() map[string]func(context.Context) error {
	m := map[string]func(context.Context) error{
		"Leaves": func(ctx context.Context) error {
			for _, err := range k.store.Leaves(ctx, "", 0) {
				return err
			}
			return nil
		},
		"Tip": func(ctx context.Context) error { _, err := k.store.Tip(ctx); return err },
		"EraseCalls": func(ctx context.Context) error {
			return k.commitCtx(ctx, alpha, func(ctx context.Context, p audit.Pending) error { return k.store.EraseCalls(ctx, alpha, nil, nil, p) })
		},
		"EraseContents": func(ctx context.Context) error {
			return k.commitCtx(ctx, hostTenant, func(ctx context.Context, p audit.Pending) error { return k.store.EraseContents(ctx, nil, p) })
		},
		"Survey":   func(ctx context.Context) error { _, err := k.store.Survey(ctx); return err },
		"Ready":    func(ctx context.Context) error { return k.store.Ready(ctx) },
		"Host":     func(ctx context.Context) error { _, err := k.store.Host(ctx); return err },
		"HostAt":   func(ctx context.Context) error { _, _, err := k.store.HostAt(ctx); return err },
		"Policy":   func(ctx context.Context) error { _, err := k.store.Policy(ctx, alpha); return err },
		"PolicyAt": func(ctx context.Context) error { _, _, err := k.store.PolicyAt(ctx, alpha); return err },
		"Grant": func(ctx context.Context) error {
			_, err := k.store.Grant(ctx, script(alpha, "scripts/base.py"))
			return err
		},
		"GrantByID": func(ctx context.Context) error { _, err := k.store.GrantByID(ctx, alpha, id(1)); return err },
		"Grants":    func(ctx context.Context) error { _, err := k.store.Grants(ctx, alpha, anyGrant); return err },
		"Content": func(ctx context.Context) error {
			_, err := k.store.Content(ctx, alpha, bare("base.py").Digest())
			return err
		},
		"Files": func(ctx context.Context) error {
			_, err := k.store.Files(ctx, alpha, bare("base.py").Digest())
			return err
		},
		"Versions": func(ctx context.Context) error { _, err := k.store.Versions(ctx, alpha, "imported", 0); return err },
		"Skills":   func(ctx context.Context) error { _, err := k.store.Skills(ctx, alpha); return err },
		"Imported": func(ctx context.Context) error { _, _, err := k.store.Imported(ctx, alpha, "imported"); return err },
		"ImportedFile": func(ctx context.Context) error {
			_, _, err := k.store.ImportedFile(ctx, alpha, "imported", "SKILL.md")
			return err
		},
		"Call": func(ctx context.Context) error { _, err := k.store.Call(ctx, alpha, id(60)); return err },
		"DailyCalls": func(ctx context.Context) error {
			_, err := k.store.DailyCalls(ctx, alpha, toolcall.DailyFilter{})
			return err
		},
		"Calls": func(ctx context.Context) error { _, err := k.store.Calls(ctx, alpha, anyCall); return err },
	}
	maps.Copy(m, k.methodsOfAccess())
	maps.Copy(m, k.methodsOfIdempotency())
	for _, c := range k.changes() {
		m[c.name] = func(ctx context.Context) error {
			_, err := k.log.Commit(ctx, entry(c.tenant, audit.Ending, c.name), c.do)
			return err
		}
	}
	return m
}

func contextEnded(k *kit) {
	n := k.base()
	ctx, cancel := context.WithCancelCause(k.Context())
	cancel(errGaveUp)
	covered := k.methods()
	for name := range methodsOfStore() {
		do, ok := covered[name]
		switch {
		case name == "Close":
		case !ok:
			k.broken("no check calls %s", name)
		default:
			k.wants(do(ctx), errGaveUp, "%s with a context that has ended", name)
		}
	}
	if got := k.size(); got != n {
		k.broken("the log grew from %d to %d entries", n, got)
	}
}
