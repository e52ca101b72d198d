package storetest

import (
	"time"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// skillIs ends the check when the tenant's skill is not now the version id of
// content c, by every way to ask; an empty id stands for none.
func (k *kit) skillIs(what, tenant, skill, id string, c bundle.Bundle) {
	k.Helper()
	v, b, err := k.store.Imported(k.Context(), tenant, skill)
	w, has, err2 := k.store.ImportedFile(k.Context(), tenant, skill, "SKILL.md")
	_, want, _ := c.Text("SKILL.md")
	_, got, _ := b.Text("SKILL.md")
	if id == "" {
		k.wants(err, grant.ErrNotFound, "%s: Imported", what)
		k.wants(err2, grant.ErrNotFound, "%s: ImportedFile", what)
		if !b.IsZero() || has {
			k.broken("%s: with the error came a content of %d files", what, len(b.Paths()))
		}
		k.same(what+": with the error came a version", v, admin.Version{})
	} else {
		k.must(err)
		k.must(err2)
		if v.ID != id || v.Digest != c.Digest() || b.Digest() != c.Digest() || got != want {
			k.broken("%s: the skill is %s of %s with a content of %s; want %s of %s", what, v.ID, v.Digest, b.Digest(), id, c.Digest())
		}
		k.same(what+": the content", b.Files(), c.Files())
	}
	k.same(what+": the version by ImportedFile", w, v)
	list, err := k.store.Skills(k.Context(), tenant)
	k.must(err)
	listed := ""
	for _, s := range list {
		if s.Skill == skill {
			listed += s.ID
		}
	}
	if listed != id {
		k.broken("%s: the skill is listed as %q, want %q", what, listed, id)
	}
}

// history ends the check when the versions of the skill are not those of ids.
func (k *kit) history(what, tenant, skill string, limit int, ids ...string) {
	k.Helper()
	list, err := k.store.Versions(k.Context(), tenant, skill, limit)
	k.must(err)
	var got []string
	for _, v := range list {
		if v.Tenant != tenant || v.Skill != skill {
			k.broken("%s: the history of %s of %q has a version of %s of %q", what, skill, tenant, v.Skill, v.Tenant)
		}
		got = append(got, v.ID)
	}
	k.same(what, got, ids)
}

func importNewest(k *kit) {
	one, two, never := content("one"), content("two"), bundle.Bundle{}
	k.skillIs("before any", alpha, "s", "", never)
	k.history("before any", alpha, "s", 0)
	k.must(k.addVersion(versionOf(alpha, id(5), "s", one), one, ""))
	k.skillIs("the first", alpha, "s", id(5), one)

	// The newest is the one that came last, whatever its id and its time say.
	v := versionOf(alpha, id(3), "s", two)
	v.Imported = at.Add(-time.Hour)
	k.must(k.addVersion(v, two, id(5)))
	k.skillIs("a later one with a smaller id and an earlier time", alpha, "s", id(3), two)
	k.wants(k.addVersion(versionOf(alpha, id(9), "s", one), one, id(5)), grant.ErrConflict, "a version behind one that is not the newest")
	k.wants(k.addVersion(deletionOf(alpha, id(9), "s"), never, id(5)), grant.ErrConflict, "a deletion behind one that is not the newest")
	k.skillIs("after what was refused", alpha, "s", id(3), two)

	// Back to the bytes of before: that is a version of its own.
	k.must(k.addVersion(versionOf(alpha, id(2), "s", one), one, id(3)))
	k.skillIs("the first content again", alpha, "s", id(2), one)
	k.history("the history", alpha, "s", 0, id(2), id(3), id(5))

	// Names are exact bytes, and a skill is no pattern.
	for _, name := range []string{"S", "%", "_", "s ", "é", "e\u0301"} {
		k.skillIs("a skill of another name", alpha, name, "", never)
		k.history("a skill of another name", alpha, name, 0)
	}
	for path, want := range map[string]bool{"scripts/a.py": true, "scripts/A.py": false, "scripts": false, "scripts/": false, "%": false, "": false, "assets/ünï/bytes.bin": true} {
		_, has, err := k.store.ImportedFile(k.Context(), alpha, "s", path)
		k.must(err)
		if has != want {
			k.broken("that there is a file %q is %v, want %v", path, has, want)
		}
	}
}

func importDeleted(k *kit) {
	one, two := content("one"), content("two")
	k.must(k.addVersion(versionOf(alpha, id(1), "s", one), one, ""))
	k.must(k.addVersion(deletionOf(alpha, id(2), "s"), bundle.Bundle{}, id(1)))
	k.skillIs("case 48: after it was deleted", alpha, "s", "", one)
	k.history("case 48: after it was deleted", alpha, "s", 0, id(2), id(1))
	b, err := k.store.Content(k.Context(), alpha, one.Digest())
	k.must(err)
	k.same("the content of a version that is no longer there", b.Files(), one.Files())
	_, err = k.store.Content(k.Context(), alpha, bundle.Digest{})
	k.wants(err, grant.ErrNotFound, "the content of a deletion")

	k.wants(k.addVersion(versionOf(alpha, id(3), "s", one), one, ""), grant.ErrConflict, "a version after none behind a deletion")
	k.must(k.addVersion(versionOf(alpha, id(3), "s", one), one, id(2)))
	k.skillIs("case 48: the same bytes again", alpha, "s", id(3), one)
	k.must(k.addVersion(deletionOf(alpha, id(4), "s"), nil, id(3)))
	k.must(k.addVersion(versionOf(alpha, id(5), "s", two), two, id(4)))
	k.skillIs("case 48: other bytes", alpha, "s", id(5), two)
	k.history("case 48: all of it", alpha, "s", 0, id(5), id(4), id(3), id(2), id(1))
}

func importList(k *kit) {
	c := content("list")
	var want []string // the newest first
	after := ""
	for i := range 12 {
		v := versionOf(alpha, id(100-i), "long", c) // ids fall, so that their order is not the answer
		k.must(k.addVersion(v, c, after))
		after, want = v.ID, append([]string{v.ID}, want...)
	}
	for limit, n := range map[int]int{0: 12, 1: 1, 5: 5, 12: 12, 500: 12} {
		k.history("with a limit", alpha, "long", limit, want[:n]...)
	}
	if _, err := k.store.Versions(k.Context(), alpha, "long", -1); err == nil {
		k.broken("a negative limit is no error")
	}

	for i, name := range []string{"é", "b", "Z", "a-1", "a", "gone", "a b"} {
		k.must(k.addVersion(versionOf(alpha, id(i), name, c), c, ""))
	}
	k.must(k.addVersion(deletionOf(alpha, id(50), "gone"), bundle.Bundle{}, id(5)))
	list, err := k.store.Skills(k.Context(), alpha)
	k.must(err)
	var got []string
	for _, v := range list {
		got = append(got, v.Skill+" "+v.ID)
	}
	k.same("the skills", got, []string{"Z " + id(2), "a " + id(4), "a b " + id(6), "a-1 " + id(3), "b " + id(1), "long " + id(89), "é " + id(0)})
	list, err = k.store.Skills(k.Context(), beta)
	k.must(err)
	k.same("the skills of one that has none", list, []admin.Version(nil))
}

func importBad(k *kit) {
	c, other, none := content("bad"), content("other"), bundle.Bundle{}
	empty, err := bundle.New(nil, nil, bundle.Limits{})
	k.must(err)
	good := versionOf(alpha, id(1), "s", c)
	for _, tt := range []struct {
		name    string
		content bundle.Bundle
		bend    func(*admin.Version)
	}{
		{"no id", c, func(v *admin.Version) { v.ID = "" }},
		{"no digest", c, func(v *admin.Version) { v.Digest = bundle.Digest{} }},
		{"no digest and no content", none, func(v *admin.Version) { v.Digest = bundle.Digest{} }},
		{"a digest and no content", none, func(*admin.Version) {}},
		{"the digest of another content", other, func(*admin.Version) {}},
		{"a content without a file", empty, func(v *admin.Version) { v.Digest = empty.Digest() }},
		{"a deletion with a digest", c, func(v *admin.Version) { v.Deleted = true }},
		{"a deletion with a content", c, func(v *admin.Version) { v.Digest, v.Deleted = bundle.Digest{}, true }},
		{"a deletion of a stored script", none, func(v *admin.Version) { v.Digest, v.Deleted, v.Stored = bundle.Digest{}, true, true }},
		{"a stored script of many files", c, func(v *admin.Version) { v.Stored = true }},
		{"no time", c, func(v *admin.Version) { v.Imported = time.Time{} }},
		{"no skill", c, func(v *admin.Version) { v.Skill = "" }},
		{"a skill that ends in a blank", c, func(v *admin.Version) { v.Skill = "s " }},
		{"no tenant", c, func(v *admin.Version) { v.Tenant = "" }},
		{"the host for a tenant", c, func(v *admin.Version) { v.Tenant = gate.HostTenant }},
	} {
		v := good
		tt.bend(&v)
		if err := k.addVersion(v, tt.content, ""); err == nil {
			k.broken("a version with %s was kept", tt.name)
		}
	}
	if err := k.addVersion(good, nil, ""); err == nil {
		k.broken("a version with a digest and no content at all was kept")
	}
	if n := k.size(); n != 0 {
		k.broken("%d entries were kept", n)
	}
	k.skillIs("after all of them", alpha, "s", "", none)
	k.must(k.addVersion(good, c, ""))
}

func importWhole(k *kit) {
	folder, single := content("whole"), bare("one.py")
	sample := versionOf(alpha, id(1), "ünï 'x'", folder)
	k.whole(sample, "Stored", "Deleted")
	stored := versionOf(alpha, id(2), "stored", single)
	stored.Stored = true
	plain := versionOf(alpha, id(3), "plain", folder)
	plain.Source, plain.Reason, plain.By = "", "", ""
	apart := versionOf(alpha, id(5), "apart", content("apart"))
	for _, tt := range []struct {
		v admin.Version
		c bundle.Bundle
	}{{sample, folder}, {stored, single}, {plain, folder}, {apart, content("apart")}} {
		want := tt.v
		want.Imported = kept(tt.v.Imported)
		once := &once{Bundle: tt.c, read: map[string]bool{}}
		k.must(k.addVersion(tt.v, once, ""))
		if once.again != "" {
			k.broken("the file %s was read twice", once.again)
		}
		k.filesAre("an imported skill", alpha, tt.c)
		got, b, err := k.store.Imported(k.Context(), alpha, want.Skill)
		k.must(err)
		k.same("the version", got, want)
		k.same("its files", b.Files(), tt.c.Files())
		k.same("its declaration", b.Declaration(), tt.c.Declaration())
		if got.Imported.Location() != time.UTC {
			k.broken("its time is in %s, not UTC", got.Imported.Location())
		}
		list, err := k.store.Versions(k.Context(), alpha, want.Skill, 0)
		k.must(err)
		k.same("in its history", list, []admin.Version{want})
	}
	deletion := deletionOf(alpha, id(4), "stored")
	k.must(k.addVersion(deletion, bundle.Bundle{}, id(2)))
	deletion.Imported = kept(deletion.Imported)
	list, err := k.store.Versions(k.Context(), alpha, "stored", 1)
	k.must(err)
	k.same("a deletion", list, []admin.Version{deletion})
}

func importShared(k *kit) {
	one, two := content("one"), content("two") // all files but SKILL.md are equal
	k.must(k.addVersion(versionOf(alpha, id(1), "s", one), one, ""))
	k.must(k.addVersion(versionOf(alpha, id(2), "twice", one), one, ""))
	k.must(k.addVersion(versionOf(alpha, id(3), "other", two), two, ""))
	k.must(k.addVersion(versionOf(beta, id(1), "s", one), one, ""))
	k.grant(id(1), script(beta, "scripts/a.py"), one)
	k.must(k.addVersion(deletionOf(beta, id(2), "s"), bundle.Bundle{}, id(1)))
	k.skillIs("one of two tenants", alpha, "s", id(1), one)
	k.skillIs("one of two skills", alpha, "twice", id(2), one)
	k.skillIs("the one with another SKILL.md", alpha, "other", id(3), two)
	k.skillIs("the other tenant's, deleted", beta, "s", "", one)
	for tenant, contents := range map[string][]bundle.Bundle{alpha: {one, two}, beta: {one}} {
		for _, c := range contents {
			b, err := k.store.Content(k.Context(), tenant, c.Digest())
			k.must(err)
			k.same("the files for "+tenant, b.Files(), c.Files())
		}
	}
	_, err := k.store.Content(k.Context(), beta, two.Digest())
	k.wants(err, grant.ErrNotFound, "a content that only another tenant's version names")
}
