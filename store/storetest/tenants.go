package storetest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/toolcall"
)

// methodsOfStore returns the methods of a store by name.
func methodsOfStore() map[string]reflect.Type {
	methods := map[string]reflect.Type{}
	for m := range reflect.TypeFor[store.Store]().Methods() {
		methods[m.Name] = m.Type
	}
	return methods
}

// withoutTenant are the methods in which there is no tenant, each with its reason.
var withoutTenant = map[string]string{
	"Close":         "it ends the store",
	"Tip":           "the tree is over the leaves of all tenants",
	"Ready":         "it is the whole store's",
	"EraseContents": "a content is that of all tenants who name it; erase/contents looks into it",
	"Survey":        "it is of all tenants; survey/whole looks into it",
	"Host":          "it holds for all tenants",
	"HostAt":        "it holds for all tenants",
	"SetHost":       "it holds for all tenants",
	"Tenants":       "it is the platform's; tenant/list looks into it",
	"Within":        "the changes that it returns name the tenant; quota/bounds looks into them",
	"Sweep":         "it is of all tenants; idempotency/window looks into it",
	"Left":          "it is of all tenants; idempotency/left looks into it",
	"Beginner":      "it is of all tenants; idempotency/left looks into it",
}

// names are the types of parameters that name a tenant.
var names = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[grant.Ref](), reflect.TypeFor[grant.Grant](), reflect.TypeFor[toolcall.Record](),
	reflect.TypeFor[admin.Version](), reflect.TypeFor[access.Key](), reflect.TypeFor[access.Tenant](), reflect.TypeFor[idempotency.Claim](),
}

// A separation shows that a method keeps me and other apart.
type separation struct {
	method string
	check  func(k *kit, me, other string)
}

// apart holds, for each method with a tenant in it, what shows that it keeps
// me and other apart. They run in this order on one store, those that change
// rows of mine last, and again with the two exchanged. Both have a policy, the
// grant id(1), the call id(1) and the version id(1) of the skill "both"; me alone
// has the grant id(2), the call id(2) and the version id(2), of the skill "mine".
var apart = slices.Concat(apartAccess, apartIdempotency, apartRows)

var apartRows = []separation{
	{"Leaves", func(k *kit, me, other string) {
		for i, leaf := range k.all(me, 0) {
			e, link, err := audit.Decode(leaf.Bytes)
			k.must(err)
			if e.Tenant != me || leaf.Tenant != me || link.Seq != uint64(i)+1 {
				k.broken("the history of %q has at %d number %d of %q", me, i+1, link.Seq, e.Tenant)
			}
		}
	}},
	{"Policy", func(k *kit, me, other string) {
		p, err := k.store.Policy(k.Context(), me)
		k.must(err)
		k.same("the policy", p.Environment, map[string]string{"WHOSE": me})
	}},
	{"PolicyAt", func(k *kit, me, other string) {
		p, _, err := k.store.PolicyAt(k.Context(), me)
		k.must(err)
		k.same("the policy", p.Environment, map[string]string{"WHOSE": me})
		p, n, err := k.store.PolicyAt(k.Context(), me+other)
		k.must(err)
		k.same("the policy of one that is not known", p, gate.Policy{})
		if n != 0 {
			k.broken("the policy of one that is not known has the revision %d", n)
		}
	}},
	{"Grant", func(k *kit, me, other string) {
		if g := k.newest(script(me, "scripts/a.py")); g.Ref.Tenant != me || g.Reason != me {
			k.broken("%q is answered with the grant of %q", me, g.Ref.Tenant)
		}
		if g := k.newest(script(other, "scripts/mine.py")); g.ID != "" {
			k.broken("%q is answered with a grant that %q alone has", other, me)
		}
	}},
	{"GrantByID", func(k *kit, me, other string) {
		g, err := k.store.GrantByID(k.Context(), me, id(1))
		k.must(err)
		if g.Ref.Tenant != me {
			k.broken("%q is answered with the grant of %q", me, g.Ref.Tenant)
		}
		_, err = k.store.GrantByID(k.Context(), other, id(2))
		k.wants(err, grant.ErrNotFound, "the id of a grant that %q alone has, asked for by %q", me, other)
	}},
	{"Grants", func(k *kit, me, other string) {
		list, err := k.store.Grants(k.Context(), me, anyGrant)
		k.must(err)
		if len(list) != 2 || slices.ContainsFunc(list, func(g grant.Grant) bool { return g.Ref.Tenant != me }) {
			k.broken("%q has two grants and is answered with %v", me, list)
		}
	}},
	{"Content", func(k *kit, me, other string) {
		_, err := k.store.Content(k.Context(), me, bare(me+".py").Digest())
		k.must(err)
		_, err = k.store.Content(k.Context(), other, bare(me+".py").Digest())
		k.wants(err, grant.ErrNotFound, "the content that only a grant of %q pins, asked for by %q", me, other)
	}},
	{"Files", func(k *kit, me, other string) {
		for _, c := range []bundle.Bundle{bare(me + ".py"), bare(me + ".md")} { // of a grant, and of a version
			_, err := k.store.Files(k.Context(), me, c.Digest())
			k.must(err)
			_, err = k.store.Files(k.Context(), other, c.Digest())
			k.wants(err, grant.ErrNotFound, "the files that only %q may see, asked for by %q", me, other)
		}
	}},
	{"Versions", func(k *kit, me, other string) {
		k.history("the history of what both have", me, "both", 0, id(1))
		k.history("the history of what "+me+" has", me, "mine", 0, id(2))
		k.history("the history of what "+me+" alone has", other, "mine", 0)
	}},
	{"Skills", func(k *kit, me, other string) {
		list, err := k.store.Skills(k.Context(), me)
		k.must(err)
		if len(list) != 2 || slices.ContainsFunc(list, func(v admin.Version) bool { return v.Tenant != me || v.By != me }) {
			k.broken("%q has two skills and is answered with %v", me, list)
		}
	}},
	{"Imported", func(k *kit, me, other string) {
		k.skillIs("what both have", me, "both", id(1), bare(me+".md"))
		k.skillIs("what "+me+" has", me, "mine", id(2), bare(me+".md"))
		k.skillIs("what "+me+" alone has", other, "mine", "", bundle.Bundle{})
		_, err := k.store.Content(k.Context(), other, bare(me+".md").Digest())
		k.wants(err, grant.ErrNotFound, "the content that only a version of %q is of, asked for by %q", me, other)
	}},
	{"ImportedFile", func(k *kit, me, other string) {
		for path, want := range map[string]bool{me + ".md": true, other + ".md": false} {
			v, has, err := k.store.ImportedFile(k.Context(), me, "both", path)
			k.must(err)
			if v.By != me || has != want {
				k.broken("that %q has %s in a skill of %q is %v", me, path, v.By, has)
			}
		}
		_, _, err := k.store.ImportedFile(k.Context(), other, "mine", me+".md")
		k.wants(err, grant.ErrNotFound, "a file of a skill that %q alone has, asked for by %q", me, other)
	}},
	{"Call", func(k *kit, me, other string) {
		r, err := k.store.Call(k.Context(), me, id(1))
		k.must(err)
		if r.Tenant != me || r.Actor != me {
			k.broken("%q is answered with the call of %q", me, r.Actor)
		}
		_, err = k.store.Call(k.Context(), other, id(2))
		k.wants(err, toolcall.ErrNotFound, "the id of a call that %q alone has, asked for by %q", me, other)
	}},
	{"Calls", func(k *kit, me, other string) {
		for _, f := range []toolcall.Filter{{}, {Skill: "unit-converter"}} {
			list, err := k.store.Calls(k.Context(), me, f)
			k.must(err)
			if len(list) != 2 || slices.ContainsFunc(list, func(r toolcall.Record) bool { return r.Actor != me }) {
				k.broken("%q has two calls and is answered with %v", me, list)
			}
		}
	}},
	{"DailyCalls", func(k *kit, me, other string) {
		sums, err := k.store.DailyCalls(k.Context(), me, toolcall.DailyFilter{})
		k.must(err)
		if len(sums) != 1 || sums[0].Calls != 2 {
			k.broken("%q has made two calls, and they come to %+v", me, sums)
		}
		sums, err = k.store.DailyCalls(k.Context(), me+other, toolcall.DailyFilter{})
		k.must(err)
		if len(sums) != 0 {
			k.broken("one that is not known has made %+v", sums)
		}
	}},
	{"Append", func(k *kit, me, other string) {
		before, was := k.all(other, 0), len(k.all(me, 0))
		k.append(me, "mine")
		k.same("the history of the other", k.all(other, 0), before)
		if n := len(k.all(me, 0)); n != was+1 {
			k.broken("the history of %q went from %d to %d", me, was, n)
		}
	}},
	{"SetPolicy", func(k *kit, me, other string) {
		before, n, err := k.store.PolicyAt(k.Context(), other)
		k.must(err)
		mine, at, err := k.store.PolicyAt(k.Context(), me)
		k.must(err)
		k.must(k.setPolicy(me, mine, at))
		after, m, err := k.store.PolicyAt(k.Context(), other)
		k.must(err)
		k.same("the other's policy", after, before)
		if n != m {
			k.broken("the other's revision went from %d to %d", n, m)
		}
	}},
	{"EraseCalls", func(k *kit, me, other string) {
		before, err := k.store.Calls(k.Context(), other, anyCall)
		k.must(err)
		for _, lists := range [][2][]string{{{id(4)}, nil}, {nil, {id(4)}}, {{id(2)}, nil}} {
			if err := k.eraseCalls(me, lists[0], lists[1]); err != nil {
				k.wants(err, grant.ErrConflict, "erasing the record of a call that %q has not", me)
			}
		}
		after, err := k.store.Calls(k.Context(), other, anyCall)
		k.must(err)
		k.same("the other's calls", after, before)
	}},
	{"AddCall", func(k *kit, me, other string) {
		before, err := k.store.Calls(k.Context(), other, anyCall)
		k.must(err)
		k.must(k.addCall(record(me, id(5))))
		after, err := k.store.Calls(k.Context(), other, anyCall)
		k.must(err)
		k.same("the other's calls", after, before)
	}},
	{"AddGrant", func(k *kit, me, other string) {
		// The other's newest is no "after" of mine, and mine changes nothing of the other's.
		before, err := k.store.Grants(k.Context(), other, anyGrant)
		k.must(err)
		c := content("added by " + me)
		k.wants(k.addGrant(grantOf(id(3), script(other, "scripts/mine.py"), c), c, id(2)), grant.ErrConflict, "after another tenant's grant")
		g := grantOf(id(3), script(me, "scripts/added.py"), c)
		k.must(k.addGrant(g, c, ""))
		after, err := k.store.Grants(k.Context(), other, anyGrant)
		k.must(err)
		k.same("the other's grants", after, before)
	}},
	{"AddVersion", func(k *kit, me, other string) {
		before, err := k.store.Skills(k.Context(), other)
		k.must(err)
		c := content("imported by " + me)
		k.wants(k.addVersion(versionOf(other, id(6), "mine", c), c, id(2)), grant.ErrConflict, "after another tenant's version")
		k.must(k.addVersion(versionOf(me, id(6), "both", c), c, id(1)))
		k.must(k.addVersion(deletionOf(me, id(7), "both"), bundle.Bundle{}, id(6)))
		after, err := k.store.Skills(k.Context(), other)
		k.must(err)
		k.same("the other's skills", after, before)
	}},
	{"RevokeGrant", func(k *kit, me, other string) {
		k.wants(k.revoke(other, id(2)), grant.ErrNotFound, "revoking a grant that %q alone has, by %q", me, other)
		before, err := k.store.GrantByID(k.Context(), other, id(1))
		k.must(err)
		k.must(k.revoke(me, id(1)))
		after, err := k.store.GrantByID(k.Context(), other, id(1))
		k.must(err)
		k.same("the other's grant of the same id", after, before)
	}},
}

func tenantsApart(k *kit) {
	for name, typ := range methodsOfStore() {
		has := slices.ContainsFunc(names, func(t reflect.Type) bool {
			return slices.Contains(slices.Collect(typ.Ins()), t)
		})
		tested := slices.ContainsFunc(apart, func(a separation) bool { return a.method == name })
		switch {
		case withoutTenant[name] != "" && has:
			k.broken("%s takes what names a tenant, and the suite says that there is none in it", name)
		case withoutTenant[name] == "" && !tested:
			k.broken("%s has a tenant in it, and no check in both directions", name)
		}
	}
	for _, order := range [][2]string{{alpha, beta}, {beta, alpha}, {"a", "a%"}, {"a%", "a"}} {
		k.Run(order[0]+" beside "+order[1], func(t *testing.T) {
			k := &kit{T: t, store: k.setup.Open(t), setup: k.setup, rule: k.rule}
			k.log = audit.NewLog(k.store)
			t.Cleanup(func() { k.must(k.store.Close()) })
			k.populate(order[0], true)
			k.populate(order[1], false)
			for _, a := range apart {
				t.Run(a.method, func(t *testing.T) {
					k := *k
					k.T = t
					a.check(&k, order[0], order[1])
				})
			}
			k.size()
		})
	}
}

// populate gives tenant what apart says.
func (k *kit) populate(tenant string, mine bool) {
	k.Helper()
	k.must(k.setPolicy(tenant, gate.Policy{Environment: map[string]string{"WHOSE": tenant}}, 0))
	add := func(id, path, skill string) {
		c := bare(tenant + ".py")
		g := grantOf(id, script(tenant, path), c)
		g.Reason = tenant
		k.must(k.addGrant(g, c, ""))
		r := record(tenant, id)
		r.Actor = tenant
		k.must(k.addCall(r))
		c = bare(tenant + ".md")
		v := versionOf(tenant, id, skill, c)
		v.By = tenant
		k.must(k.addVersion(v, c, ""))
	}
	k.populateAccess(tenant, mine)
	add(id(1), "scripts/a.py", "both")
	if mine {
		add(id(2), "scripts/mine.py", "mine")
	} else {
		add(id(4), "scripts/other.py", "other")
	}
}

func aliases(k *kit) {
	h, p, r := host(), policy(), record(alpha, id(1))
	k.must(k.setHost(h, 0))
	k.must(k.setPolicy(alpha, p, 0))
	k.must(k.addCall(r))
	g := k.grant(id(1), script(alpha, "scripts/a.py"), content("alias"))

	// spoil changes everything that a copy that is none would share.
	spoil := func(h gate.Host, p gate.Policy, r toolcall.Record) {
		h.Interpreters["py"] = gate.Interpreter{Path: "/evil"}
		h.Interpreters["sh"] = gate.Interpreter{Path: "/evil"}
		h.Runtimes["small"] = bundle.Sum([]byte("evil"))
		p.Interpreters[0] = "evil"
		p.Environment["UNIT"] = "evil"
		r.Notes[0], r.ArgumentsSalt[0] = "evil", 'e'
		*r.ExitCode, *r.Signal = 99, 99
	}
	read := func() (gate.Host, gate.Policy, toolcall.Record) {
		k.Helper()
		h, err := k.store.Host(k.Context())
		k.must(err)
		p, err := k.store.Policy(k.Context(), alpha)
		k.must(err)
		r, err := k.store.Call(k.Context(), alpha, id(1))
		k.must(err)
		return h, p, r
	}
	check := func(when string) {
		k.Helper()
		gotH, gotP, gotR := read()
		want := record(alpha, id(1))
		want.Admitted, want.Ended = kept(want.Admitted), kept(want.Ended)
		k.same("the host's settings "+when, gotH, host())
		k.same("the policy "+when, gotP, policy())
		k.same("the record "+when, gotR, want)
	}
	spoil(h, p, r)
	check("after the caller changed what it had given")
	spoil(read())
	check("after a reader changed what it had got")

	hAt, _, err := k.store.HostAt(k.Context())
	k.must(err)
	pAt, _, err := k.store.PolicyAt(k.Context(), alpha)
	k.must(err)
	list, err := k.store.Calls(k.Context(), alpha, anyCall)
	k.must(err)
	spoil(hAt, pAt, list[0])
	check("after a reader changed what HostAt, PolicyAt and Calls had returned")

	grants, err := k.store.Grants(k.Context(), alpha, anyGrant)
	k.must(err)
	grants[0].Pin[0]++
	k.same("the grant after a reader changed the list", k.newest(g.Ref), g)
	for leaf, err := range k.store.Leaves(k.Context(), "", 0) {
		k.must(err)
		clear(leaf.Bytes)
	}
	k.size()
}

func closed(k *kit) {
	k.base()
	k.must(k.store.Close())
	k.must(k.store.Close())
	for name, do := range k.methods() {
		k.wants(do(k.Context()), store.ErrClosed, "%s", name)
	}
}

func reopened(k *kit) {
	k.populate(alpha, true)
	k.populate(beta, false)
	k.must(k.setHost(host(), 0))
	k.must(k.revoke(alpha, id(2)))
	k.must(k.addVersion(versionOf(alpha, id(8), "gone", content("gone")), content("gone"), ""))
	k.must(k.addVersion(deletionOf(alpha, id(9), "gone"), bundle.Bundle{}, id(8)))
	k.begins("a key", claimOf(alpha, "key", "body", id(1)), begun(id(1)))
	k.must(k.store.Finish(k.Context(), alpha, "key", id(1), []byte("answer")))
	k.begins("a key", claimOf(beta, "key", "body", id(3)), begun(id(3))) // as a crash leaves it
	n := k.size()
	look := func() map[string]any {
		state := map[string]any{}
		for _, tenant := range []string{alpha, beta} {
			grants, err1 := k.store.Grants(k.Context(), tenant, anyGrant)
			calls, err2 := k.store.Calls(k.Context(), tenant, anyCall)
			p, rev, err3 := k.store.PolicyAt(k.Context(), tenant)
			b, err4 := k.store.Content(k.Context(), tenant, bare(tenant+".py").Digest())
			skills, err5 := k.store.Skills(k.Context(), tenant)
			versions, err6 := k.store.Versions(k.Context(), tenant, "gone", 0)
			_, c, err7 := k.store.Imported(k.Context(), tenant, "both")
			made, revision, err8 := k.store.TenantAt(k.Context(), tenant)
			claim, err9 := k.store.Begin(k.Context(), claimOf(tenant, "key", "body", id(2)))
			k.must(errors.Join(err8, err9))
			k.must(errors.Join(err1, err2, err3, err4, err5, err6, err7))
			state[tenant] = []any{grants, calls, p, rev, b.Files(), k.newest(script(tenant, "scripts/a.py")), k.all(tenant, 0), skills, versions, c.Files(),
				k.keys(tenant), made, revision, claim}
		}
		h, rev, err := k.store.HostAt(k.Context())
		k.must(err)
		state["host"] = []any{h, rev, k.all("", 0)}
		return state
	}
	before := look()
	for range 3 {
		k.store = k.setup.Reopen(k, k.store)
		k.log = audit.NewLog(k.store)
		k.same("after it was opened again", look(), before)
	}
	if got := k.size(); got != n {
		k.broken("the log has %d entries, want %d", got, n)
	}
	k.append(alpha, "after it was opened again")
	k.wants(k.commit(alpha, audit.Policy, func(ctx context.Context, p audit.Pending) error {
		return k.store.SetPolicy(ctx, alpha, gate.Policy{}, 0, p)
	}), grant.ErrConflict, "SetPolicy after revision 0")
	if got := k.size(); got != n+1 {
		k.broken("the log has %d entries, want %d", got, n+1)
	}
}
