package storetest

import (
	"context"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
)

func grantNewest(k *kit) {
	own, all := script(alpha, "scripts/a.py"), allOf(alpha)
	old, new := content("old"), content("new")
	wantNewest := func(what string, ref grant.Ref, id string) {
		k.Helper()
		if got := k.newest(ref).ID; got != id {
			k.broken("%s: the newest grant of %s is %q, want %q", what, ref, got, id)
		}
	}
	wantNewest("before any", own, "")
	k.grant(id(9), all, old)
	wantNewest("beside one for all scripts", own, "")
	wantNewest("the one for all scripts", all, id(9))

	// The newest is the one that came last, whatever its id and its times say.
	k.grant(id(5), own, old)
	wantNewest("the first", own, id(5))
	g := grantOf(id(3), own, new)
	g.Granted, g.Expires = at.Add(-time.Hour), at.Add(-time.Minute)
	k.must(k.addGrant(g, new, id(5)))
	wantNewest("a later one with a smaller id and an earlier time", own, id(3))
	if got := k.newest(own); got.Pin != new.Digest() || got.InForce(at) {
		k.broken("case 45: the newest is expired and pins %s; got %s, %s", new.Digest(), got.State(at), got.Pin)
	}

	// Case 45: a revoked grant stays the newest, beside one that would match.
	k.must(k.revoke(alpha, id(3)))
	wantNewest("after it was revoked", own, id(3))
	if got := k.newest(own); got.State(at) != "revoked" {
		k.broken("case 45: the newest is %s, want revoked", got.State(at))
	}
	wantNewest("the one for all scripts, beside it", all, id(9))
	if got := k.newest(all); !got.InForce(at) {
		k.broken("the grant for all scripts is %s", got.State(at))
	}

	// "a new grant for it makes it run again"
	k.wants(k.addGrant(grantOf(id(4), own, new), new, id(5)), grant.ErrConflict, "a grant behind one that is not the newest")
	k.grant(id(2), own, old)
	wantNewest("the new one", own, id(2))
	if got := k.newest(own); !got.InForce(at) || got.Pin != old.Digest() {
		k.broken("the new grant is %s and pins %s", got.State(at), got.Pin)
	}
	k.must(k.revoke(alpha, id(9)))
	if got := k.newest(own); !got.InForce(at) {
		k.broken("the script's own grant is %s after that for all scripts was revoked", got.State(at))
	}
}

func grantExact(k *kit) {
	c := content("exact")
	refs := []grant.Ref{
		script(alpha, "scripts/a.py"), script(alpha, "scripts/A.py"), script(alpha, "scripts/a.p_"), script(alpha, "scripts/%"),
		script(alpha, "scripts/é.py"), script(alpha, "scripts/e\u0301.py"), script(alpha, "a.py"), allOf(alpha),
		{Tenant: alpha, Skill: "unit-converter scripts", Script: "a.py"}, {Tenant: alpha, Skill: "Unit-converter", AllScripts: true},
	}
	for i, ref := range refs {
		if got := k.newest(ref); got.ID != "" {
			k.broken("%s has the grant of %s", ref, got.Ref)
		}
		k.grant(id(i), ref, c)
	}
	for i, ref := range refs {
		if got := k.newest(ref); got.ID != id(i) || got.Ref != ref {
			k.broken("%s has the grant of %s", ref, got.Ref)
		}
	}
	for _, ref := range []grant.Ref{
		{}, {Tenant: alpha}, {Tenant: alpha, Skill: "unit-converter"}, {Skill: "unit-converter", AllScripts: true},
		{Tenant: alpha, Skill: "unit-converter", Script: "scripts/a.py", AllScripts: true},
		{Tenant: "a%", Skill: "unit-converter", AllScripts: true}, {Tenant: alpha, Skill: "%", AllScripts: true},
	} {
		if got := k.newest(ref); got.ID != "" {
			k.broken("%+v, which names nothing, has the grant of %s", ref, got.Ref)
		}
	}
}

func grantBad(k *kit) {
	c, other := content("bad"), content("other")
	good := grantOf(id(1), script(alpha, "scripts/a.py"), c)
	for _, tt := range []struct {
		name    string
		content bundle.Bundle
		bend    func(*grant.Grant)
	}{
		{"no id", c, func(g *grant.Grant) { g.ID = "" }},
		{"no pin", c, func(g *grant.Grant) { g.Pin = bundle.Digest{} }},
		{"no pin and no content", bundle.Bundle{}, func(g *grant.Grant) { g.Pin = bundle.Digest{} }},
		{"a pin and no content", bundle.Bundle{}, func(*grant.Grant) {}},
		{"the pin of another content", other, func(*grant.Grant) {}},
		{"no tier", c, func(g *grant.Grant) { g.MinTier = "" }},
		{"a tier that is none", c, func(g *grant.Grant) { g.MinTier = "strong" }},
		{"no time", c, func(g *grant.Grant) { g.Granted = time.Time{} }},
		{"an end before its beginning", c, func(g *grant.Grant) { g.Expires = g.Granted.Add(-time.Second) }},
		{"an end that is its beginning once cut to the microsecond", c, func(g *grant.Grant) { g.Expires = g.Granted.Add(time.Nanosecond) }},
		{"revoked already", c, func(g *grant.Grant) { g.Revoked = at }},
		{"a blank script", c, func(g *grant.Grant) { g.Ref.Script = "" }},
		{"a script and all scripts", c, func(g *grant.Grant) { g.Ref.AllScripts = true }},
		{"no skill", c, func(g *grant.Grant) { g.Ref.Skill = "" }},
	} {
		g := good
		tt.bend(&g)
		if err := k.addGrant(g, tt.content, ""); err == nil {
			k.broken("a grant with %s was kept", tt.name)
		}
	}
	if err := k.commit(alpha, audit.Revoked, func(ctx context.Context, p audit.Pending) error {
		return k.store.RevokeGrant(ctx, alpha, id(1), time.Time{}, "revoker", p)
	}); err == nil {
		k.broken("a revocation without a time was kept")
	}
	if n := k.size(); n != 0 {
		k.broken("%d entries were kept", n)
	}
	list, err := k.store.Grants(k.Context(), alpha, anyGrant)
	k.must(err)
	k.same("the grants", list, []grant.Grant(nil))
	k.must(k.addGrant(good, c, ""))
}

func grantWhole(k *kit) {
	c := content("whole")
	sample := grantOf(id(1), script(alpha, "scripts/ünï 'x'.py"), c)
	k.whole(sample, "Revoked", "RevokedBy")
	plain := grantOf(id(2), allOf(alpha), c)
	plain.Reason, plain.Source, plain.GrantedBy, plain.Expires = "", "", "", time.Time{}
	for _, g := range []grant.Grant{sample, plain} {
		k.must(k.addGrant(g, c, ""))
		want := g
		want.Granted = kept(g.Granted)
		if !g.Expires.IsZero() {
			want.Expires = kept(g.Expires)
		}
		k.same("the newest", k.newest(g.Ref), want)
		got, err := k.store.GrantByID(k.Context(), alpha, g.ID)
		k.must(err)
		k.same("by its id", got, want)
		list, err := k.store.Grants(k.Context(), alpha, grant.Filter{Limit: 1})
		k.must(err)
		k.same("in the list", list, []grant.Grant{want})
		if got.Granted.Location() != time.UTC {
			k.broken("its time is in %s, not UTC", got.Granted.Location())
		}
	}
	_, err := k.store.GrantByID(k.Context(), alpha, id(3))
	k.wants(err, grant.ErrNotFound, "GrantByID of no grant")
}

func grantRevoke(k *kit) {
	c := content("revoke")
	g := k.grant(id(1), script(alpha, "scripts/a.py"), c)
	other := k.grant(id(2), script(alpha, "scripts/b.py"), c)
	k.must(k.revoke(alpha, id(1)))
	want := g
	want.Revoked, want.RevokedBy = kept(at), "revoker"
	k.same("the revoked grant", k.newest(g.Ref), want)
	k.wants(k.revoke(alpha, id(1)), grant.ErrConflict, "revoking it again")
	k.same("the revoked grant, after that", k.newest(g.Ref), want)
	k.same("another grant", k.newest(other.Ref), other)
}

func grantList(k *kit) {
	c := content("list")
	var want []string // the newest first
	for i := range 12 {
		ref := grant.Ref{Tenant: alpha, Skill: []string{"one", "two", "on_"}[i%3], Script: "scripts/a.py"}
		k.grant(id(100-i), ref, c) // ids fall, so that their order is not the answer
		want = append([]string{id(100 - i)}, want...)
	}
	pick := func(list []string, start, step int) (some []string) {
		for i := start; i < len(list); i += step {
			some = append(some, list[i])
		}
		return some
	}
	for _, tt := range []struct {
		name string
		f    grant.Filter
		want []string
	}{
		{"all", grant.Filter{}, want},
		{"five", grant.Filter{Limit: 5}, want[:5]},
		{"more than there are", grant.Filter{Limit: 500}, want},
		{"one skill", grant.Filter{Skill: "one"}, pick(want, 2, 3)},
		{"a skill that looks like a pattern", grant.Filter{Skill: "on_"}, pick(want, 0, 3)},
		{"one skill, one grant", grant.Filter{Skill: "two", Limit: 1}, want[1:2]},
		{"no such skill", grant.Filter{Skill: "ONE"}, nil},
		{"before one", grant.Filter{Before: want[1], Limit: 2}, want[2:4]},
		{"before the oldest", grant.Filter{Before: want[len(want)-1]}, nil},
		{"one skill, before one of it", grant.Filter{Skill: "one", Before: want[2]}, pick(want, 5, 3)},
		{"before one that is not there", grant.Filter{Before: "nobody", Limit: 2}, want[:2]},
	} {
		list, err := k.store.Grants(k.Context(), alpha, tt.f)
		k.must(err)
		var got []string
		for _, g := range list {
			got = append(got, g.ID)
		}
		k.same(tt.name, got, tt.want)
	}
	if _, err := k.store.Grants(k.Context(), alpha, grant.Filter{Limit: -1}); err == nil {
		k.broken("a negative limit is no error")
	}
}
