package storetest

import (
	"io/fs"
	"strings"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/toolcall"
)

func contentWhole(k *kit) {
	large, err := bundle.New([]bundle.File{
		{Path: "assets/large.bin", Data: []byte(strings.Repeat("0123456789abcdef", 1<<16))}, {Path: "SKILL.md", Data: []byte{}},
	}, []byte{}, bundle.Limits{})
	k.must(err)
	empty, err := bundle.New(nil, []byte("only a declaration"), bundle.Limits{})
	k.must(err)
	deep, err := bundle.New([]bundle.File{{Path: strings.Repeat("d/", 40) + "f", Data: []byte("x")}}, nil, bundle.Limits{Depth: 100})
	k.must(err)
	for i, c := range []bundle.Bundle{content("whole"), bare("one.py"), large, empty, deep} {
		ref := grant.Ref{Tenant: alpha, Skill: "whole", Script: id(i)}
		k.grant(id(i), ref, c)
		for _, state := range []string{"in force", "revoked"} {
			b, err := k.store.Content(k.Context(), alpha, c.Digest())
			k.must(err)
			if b.Digest() != c.Digest() {
				k.broken("content %d of a grant %s has the digest %s, want %s", i, state, b.Digest(), c.Digest())
			}
			k.same("the files", b.Files(), c.Files())
			k.same("the declaration", b.Declaration(), c.Declaration())
			k.filesAre("grant "+state, alpha, c)
			if state == "in force" {
				k.must(k.revoke(alpha, id(i)))
			}
		}
	}
	for _, digest := range []bundle.Digest{{}, bundle.Sum([]byte("print(1)\n")), bundle.Sum(nil)} {
		_, err := k.store.Content(k.Context(), alpha, digest)
		k.wants(err, grant.ErrNotFound, "a digest that is a file's, or nothing's")
	}
}

// filesAre ends the check when the files that the tenant reads one by one are not
// those of c.
func (k *kit) filesAre(what, tenant string, c bundle.Bundle) {
	k.Helper()
	kept, err := k.store.Files(k.Context(), tenant, c.Digest())
	k.must(err)
	k.same(what+": the listing", kept.Listing().Entries(), c.Listing().Entries())
	if got := kept.Listing().Digest(); got != c.Digest() {
		k.broken("%s: the listing has the digest %s, want %s", what, got, c.Digest())
	}
	for range 2 { // and again: what was handed out is the caller's
		for _, f := range c.Files() {
			data, err := bundle.Read(kept, f.Path)
			k.must(err)
			k.same(what+": the file "+f.Path, data, f.Data)
			clear(data)
		}
	}
	_, err = kept.ReadFile("never")
	k.wants(err, fs.ErrNotExist, "%s: a file that is not there", what)
}

func contentShared(k *kit) {
	one, two := content("one"), content("two") // all files but SKILL.md are equal
	k.grant(id(1), script(alpha, "scripts/a.py"), one)
	k.grant(id(2), script(alpha, "scripts/b.py"), one)
	k.grant(id(3), script(alpha, "scripts/c.py"), two)
	k.grant(id(1), script(beta, "scripts/a.py"), one)
	for tenant, contents := range map[string][]bundle.Bundle{alpha: {one, two}, beta: {one}} {
		for _, c := range contents {
			b, err := k.store.Content(k.Context(), tenant, c.Digest())
			k.must(err)
			k.same("the files for "+tenant, b.Files(), c.Files())
		}
	}
	_, err := k.store.Content(k.Context(), beta, two.Digest())
	k.wants(err, grant.ErrNotFound, "a content that only another tenant's grant pins")
}

// readDamaged ends the check when no file of c is told to be damaged, or one is
// served that differs from its entry.
func (k *kit) readDamaged(c bundle.Content) {
	k.Helper()
	found := false
	for _, e := range c.Listing().Entries() {
		data, err := c.ReadFile(e.Path)
		if err != nil {
			k.wants(err, store.ErrCorrupt, "reading %s of the damaged content", e.Path)
			found = true
		} else if bundle.Sum(data) != e.Digest {
			k.broken("%s of the damaged content was served", e.Path)
		}
	}
	if !found {
		k.broken("each file of the damaged content was served")
	}
}

func contentDamaged(k *kit) {
	bad, good := content("bad"), bare("good.py")
	g := k.grant(id(1), script(alpha, "scripts/a.py"), bad)
	k.grant(id(2), script(alpha, "scripts/b.py"), good)
	k.must(k.addVersion(versionOf(alpha, id(1), "bad", bad), bad, ""))
	k.must(k.addVersion(versionOf(alpha, id(2), "good", good), good, ""))
	files, err := k.store.Files(k.Context(), alpha, bad.Digest())
	k.must(err)
	k.setup.Damage(k, k.store, bad.Digest())
	k.readDamaged(files)
	if again, err := k.store.Files(k.Context(), alpha, bad.Digest()); err == nil {
		k.readDamaged(again)
	} else {
		k.wants(err, store.ErrCorrupt, "the files of the damaged content")
	}
	v, imported, err := k.store.Imported(k.Context(), alpha, "bad")
	k.wants(err, store.ErrCorrupt, "the imported skill of the damaged content")
	if !imported.IsZero() || v.ID != "" {
		k.broken("with the error came version %q and a content of %d files", v.ID, len(imported.Paths()))
	}
	_, _, err = k.store.Imported(k.Context(), alpha, "good")
	k.must(err)
	k.filesAre("what is not damaged", alpha, good)
	b, err := k.store.Content(k.Context(), alpha, bad.Digest())
	k.wants(err, store.ErrCorrupt, "the damaged content")
	if !b.IsZero() {
		k.broken("with the error came a content of %d files", len(b.Paths()))
	}
	if !strings.Contains(err.Error(), bad.Digest().String()) {
		k.broken("the error does not name the content: %v", err)
	}
	_, err = k.store.Content(k.Context(), alpha, good.Digest())
	k.must(err)
	k.same("the grant that pins it", k.newest(g.Ref), g)
}

func settingHost(k *kit) {
	h, n, err := k.store.HostAt(k.Context())
	k.must(err)
	k.same("what was never set", h, gate.Host{})
	if n != 0 {
		k.broken("what was never set has the revision %d", n)
	}
	sample := host()
	k.whole(sample)
	for i, want := range []gate.Host{sample, {}, {Enabled: true}, sample} {
		k.must(k.setHost(want, int64(i)))
		got, n, err := k.store.HostAt(k.Context())
		k.must(err)
		k.same("HostAt", got, want)
		if n != int64(i)+1 {
			k.broken("after %d changes the revision is %d", i+1, n)
		}
		got, err = k.store.Host(k.Context())
		k.must(err)
		k.same("Host", got, want)
	}
}

func settingPolicy(k *kit) {
	p, n, err := k.store.PolicyAt(k.Context(), alpha)
	k.must(err)
	k.same("what was never set", p, gate.Policy{})
	if n != 0 {
		k.broken("what was never set has the revision %d", n)
	}
	sample := policy()
	k.whole(sample, "Suspended") // it is no part of the setting: see tenant/whole
	for i, want := range []gate.Policy{sample, {}, {Enabled: true, Timeout: 24 * time.Hour}, {Timeout: time.Microsecond}, sample} {
		k.must(k.setPolicy(alpha, want, int64(i)))
		got, n, err := k.store.PolicyAt(k.Context(), alpha)
		k.must(err)
		k.same("PolicyAt", got, want)
		if n != int64(i)+1 {
			k.broken("after %d changes the revision is %d", i+1, n)
		}
		got, err = k.store.Policy(k.Context(), alpha)
		k.must(err)
		k.same("Policy", got, want)
	}
}

func callWhole(k *kit) {
	sample := record(alpha, id(1))
	k.whole(sample)
	least := toolcall.Record{ID: id(2), Tenant: alpha}
	zeroes := toolcall.Record{ID: id(3), Tenant: alpha, ExitCode: new(0), Signal: new(0), Notes: []string{"", "ends\xff"}}
	for _, r := range []toolcall.Record{sample, least, zeroes} {
		k.must(k.addCall(r))
		want := r
		if !r.Admitted.IsZero() {
			want.Admitted, want.Ended = kept(r.Admitted), kept(r.Ended)
		}
		if r.ID == zeroes.ID {
			want.Notes = []string{"", "ends\uFFFD"}
		}
		got, err := k.store.Call(k.Context(), alpha, r.ID)
		k.must(err)
		k.same("by its id", got, want)
		list, err := k.store.Calls(k.Context(), alpha, toolcall.Filter{Limit: 1})
		k.must(err)
		k.same("in the list", list, []toolcall.Record{want})
		k.wants(k.addCall(r), toolcall.ErrExists, "writing it again")
	}
	for _, r := range []toolcall.Record{{Tenant: alpha}, {ID: id(4)}} {
		if err := k.addCall(r); err == nil {
			k.broken("a record without an id or a tenant was kept")
		}
	}
	_, err := k.store.Call(k.Context(), alpha, id(4))
	k.wants(err, toolcall.ErrNotFound, "Call of no record")
}

func callList(k *kit) {
	var want []string // the newest first
	for i := range 130 {
		r := record(alpha, id(i*7%130)) // the order of their coming is not that of their ids
		r.Skill = []string{"one", "two", "on_"}[i*7%130%3]
		k.must(k.addCall(r))
		want = append(want, id(129-i))
	}
	var ones []string
	for i, id := range want {
		if (129-i)%3 == 0 {
			ones = append(ones, id)
		}
	}
	for _, tt := range []struct {
		name string
		f    toolcall.Filter
		want []string
	}{
		{"the default limit", toolcall.Filter{}, want[:toolcall.DefaultLimit]},
		{"five", toolcall.Filter{Limit: 5}, want[:5]},
		{"all", toolcall.Filter{Limit: 500}, want},
		{"before one", toolcall.Filter{Before: want[9], Limit: 4}, want[10:14]},
		{"before the oldest", toolcall.Filter{Before: want[129]}, nil},
		{"before one that is not there", toolcall.Filter{Before: want[9] + "x", Limit: 2}, want[9:11]},
		{"one skill", toolcall.Filter{Skill: "one", Limit: 500}, ones},
		{"one skill before one", toolcall.Filter{Skill: "one", Before: ones[3], Limit: 2}, ones[4:6]},
		{"no such skill", toolcall.Filter{Skill: "ONE"}, nil},
	} {
		list, err := k.store.Calls(k.Context(), alpha, tt.f)
		k.must(err)
		var got []string
		for _, r := range list {
			got = append(got, r.ID)
		}
		k.same(tt.name, got, tt.want)
	}
	var paged []string
	for before := ""; ; before = paged[len(paged)-1] {
		list, err := k.store.Calls(k.Context(), alpha, toolcall.Filter{Before: before, Limit: 17})
		k.must(err)
		for _, r := range list {
			paged = append(paged, r.ID)
		}
		if len(list) < 17 {
			break
		}
	}
	k.same("page by page", paged, want)
	if _, err := k.store.Calls(k.Context(), alpha, toolcall.Filter{Limit: -1}); err == nil {
		k.broken("a negative limit is no error")
	}
}
