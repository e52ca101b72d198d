package admin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

func files(t *testing.T, pathsAndData ...string) bundle.Bundle {
	t.Helper()
	var list []bundle.File
	for i := 0; i < len(pathsAndData); i += 2 {
		list = append(list, bundle.File{Path: pathsAndData[i], Data: []byte(pathsAndData[i+1])})
	}
	b, err := bundle.New(list, nil, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (d desk) importing(t *testing.T, i admin.Importing) admin.Version {
	t.Helper()
	if i.Actor == "" {
		i.Actor = "op"
	}
	v, err := d.Import(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (d desk) history(t *testing.T, tenant, skill string) string {
	t.Helper()
	list, err := d.Versions(t.Context(), tenant, skill, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, v := range list {
		ids = append(ids, v.ID)
	}
	return strings.Join(ids, " ")
}

// An import, a deletion and the import after it are each a version with its
// entry, in the tenant's own history; what is the newest already is not kept again.
func TestImportHistory(t *testing.T) {
	d := newDesk(t)
	one, two := files(t, "SKILL.md", "# 1", "a.py", "1"), files(t, "SKILL.md", "# 2")
	i := admin.Importing{Tenant: "t", Skill: "imported", Content: one, Source: "/home/ann/imported", Reason: "asked for"}
	first := d.importing(t, i)
	if first.Digest != one.Digest() || first.By != "op" || first.Source != i.Source || first.Reason != i.Reason || first.Imported.IsZero() || first.Deleted {
		t.Errorf("the version is %+v", first)
	}
	if again := d.importing(t, i); again != first {
		t.Errorf("the same again is %+v, want the version that is there, %+v", again, first)
	}
	i.Content = two
	second := d.importing(t, i)
	gone, err := d.DeleteSkill(t.Context(), "op", "t", "imported", "over")
	if err != nil || !gone.Deleted || !gone.Digest.IsZero() || gone.Reason != "over" {
		t.Errorf("the deletion is %+v, %v", gone, err)
	}
	if list, err := d.Skills(t.Context(), "t"); err != nil || len(list) != 0 {
		t.Errorf("after it the skills are %v, %v", list, err)
	}
	if _, err := d.DeleteSkill(t.Context(), "op", "t", "imported", ""); !errors.Is(err, grant.ErrNotFound) {
		t.Errorf("deleted twice: err = %v", err)
	}
	third := d.importing(t, i) // case 48: what was there before it was deleted
	if third.ID == second.ID || third.Digest != two.Digest() {
		t.Errorf("imported again it is %+v", third)
	}
	if list, err := d.Skills(t.Context(), "t"); err != nil || len(list) != 1 || list[0] != third {
		t.Errorf("the skills are %v, %v", list, err)
	}
	if got, want := d.history(t, "t", "imported"), strings.Join([]string{third.ID, gone.ID, second.ID, first.ID}, " "); got != want {
		t.Errorf("the history is %s, want %s", got, want)
	}
	if got, want := d.kinds(t), "import import delete import"; got != want {
		t.Errorf("log has %q, want %q", got, want)
	}
	n := 0
	for leaf, err := range d.log.Entries(t.Context(), "t", 0) {
		if err != nil {
			t.Fatal(err)
		}
		v, after := []admin.Version{first, second, gone, third}[n], []admin.Version{{}, first, second, gone}[n]
		e := leaf.Entry
		digest := v.Digest.String()
		if v.Deleted {
			digest = ""
		}
		if e.Subject != "imported" || e.Actor != "op" || e.Fact("version") != v.ID || e.Fact("replaces") != after.ID || e.Fact("digest") != digest {
			t.Errorf("entry %d is %+v, want that of version %s", n, e, v.ID)
		}
		if strings.Contains(string(leaf.Bytes), "/home/ann") {
			t.Errorf("entry %d has a path of somebody's machine", n)
		}
		n++
	}
	if n != 4 {
		t.Errorf("the tenant's history has %d entries, want 4", n)
	}
}

// A stored script and a folder of the same bytes are two versions.
func TestImportStored(t *testing.T) {
	d := newDesk(t)
	one := files(t, "one.py", "1")
	folder := d.importing(t, admin.Importing{Tenant: "t", Skill: "s", Content: one})
	stored := d.importing(t, admin.Importing{Tenant: "t", Skill: "s", Content: one, Stored: true})
	if folder.ID == stored.ID || !stored.Stored || folder.Stored {
		t.Errorf("the versions are %+v and %+v", folder, stored)
	}
}

// Zero is closed, case 8: what cannot be a skill of the tenant leaves no trace.
func TestImportRefused(t *testing.T) {
	good := func(t *testing.T) bundle.Bundle { return files(t, "SKILL.md", "#", "scripts/a.py", "1") }
	tests := []struct {
		name   string
		change func(t *testing.T, i *admin.Importing)
		is     error
	}{
		{"no content", func(t *testing.T, i *admin.Importing) { i.Content = bundle.Bundle{} }, bundle.ErrContent},
		{"no content at all", func(t *testing.T, i *admin.Importing) { i.Content = nil }, bundle.ErrContent},
		{"no file", func(t *testing.T, i *admin.Importing) { i.Content = files(t) }, bundle.ErrContent},
		{"over the host's limits", func(t *testing.T, i *admin.Importing) {
			i.Content = files(t, "SKILL.md", strings.Repeat("x", 2000))
		}, bundle.ErrLimit},
		{"a stored script of two files", func(t *testing.T, i *admin.Importing) { i.Stored = true }, bundle.ErrContent},
		{"R14: a stored script in a folder", func(t *testing.T, i *admin.Importing) { i.Stored, i.Content = true, files(t, "scripts/a.py", "") }, bundle.ErrContent},
		{"blank tenant", func(t *testing.T, i *admin.Importing) { i.Tenant = "" }, grant.ErrRef},
		{"the host", func(t *testing.T, i *admin.Importing) { i.Tenant = gate.HostTenant }, grant.ErrRef},
		{"blank skill", func(t *testing.T, i *admin.Importing) { i.Skill = "" }, grant.ErrRef},
		{"a skill with a control character", func(t *testing.T, i *admin.Importing) { i.Skill = "a\x1b[2J" }, grant.ErrRef},
		{"a name that differs by case", func(t *testing.T, i *admin.Importing) { i.Skill = "CAFÉ" }, bundle.ErrTwins},
		{"a name that differs by normal form", func(t *testing.T, i *admin.Importing) { i.Skill = "cafe\u0301" }, bundle.ErrTwins},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			if _, err := d.SetHost(t.Context(), "op", func(h *gate.Host) error { h.Content.FileBytes = 1000; return nil }); err != nil {
				t.Fatal(err)
			}
			d.importing(t, admin.Importing{Tenant: "t", Skill: "café", Content: good(t)})
			before := d.kinds(t)
			i := admin.Importing{Actor: "op", Tenant: "t", Skill: "new", Content: good(t)}
			tt.change(t, &i)
			v, err := d.Import(t.Context(), i)
			if !errors.Is(err, tt.is) || v.ID != "" {
				t.Errorf("got %+v and error %v, want %v", v, err, tt.is)
			}
			if d.kinds(t) != before {
				t.Errorf("log has %q, want %q", d.kinds(t), before)
			}
			if list, err := d.Skills(t.Context(), "t"); err != nil || len(list) != 1 {
				t.Errorf("the skills are %v, %v", list, err)
			}
		})
	}
	// Only for the tenant that has it, and only while it has it.
	d := newDesk(t)
	d.importing(t, admin.Importing{Tenant: "t", Skill: "café", Content: good(t)})
	d.importing(t, admin.Importing{Tenant: "u", Skill: "CAFÉ", Content: good(t)})
	if _, err := d.DeleteSkill(t.Context(), "op", "t", "café", ""); err != nil {
		t.Fatal(err)
	}
	d.importing(t, admin.Importing{Tenant: "t", Skill: "CAFÉ", Content: good(t)})
	if _, err := d.Import(t.Context(), admin.Importing{Tenant: "t", Skill: "café", Content: good(t)}); !errors.Is(err, bundle.ErrTwins) {
		t.Errorf("back again beside its twin: err = %v", err)
	}
}

// R9: what one tenant imports or deletes is no other's.
func TestImportTenants(t *testing.T) {
	d := newDesk(t)
	c := files(t, "SKILL.md", "#")
	v := d.importing(t, admin.Importing{Tenant: "t", Skill: "s", Content: c})
	if _, err := d.DeleteSkill(t.Context(), "op", "u", "s", ""); !errors.Is(err, grant.ErrNotFound) {
		t.Errorf("another tenant deletes it: err = %v", err)
	}
	if list, err := d.Skills(t.Context(), "u"); err != nil || len(list) != 0 {
		t.Errorf("another tenant has %v, %v", list, err)
	}
	if list, err := d.Skills(t.Context(), "t"); err != nil || fmt.Sprint(list) != fmt.Sprint([]admin.Version{v}) {
		t.Errorf("its tenant has %v, %v", list, err)
	}
}

// What strangers wrote cannot keep an import from its entry.
func TestImportLongTexts(t *testing.T) {
	d := newDesk(t)
	long := strings.Repeat("é\xff", 9000)
	v := d.importing(t, admin.Importing{Actor: long, Tenant: "t", Skill: "s", Content: files(t, "SKILL.md", ""), Source: long, Reason: long})
	for _, text := range []string{v.By, v.Source, v.Reason} {
		if len(text) > audit.MaxText || !strings.HasSuffix(text, "…") {
			t.Errorf("a text of %d bytes was kept", len(text))
		}
	}
}
