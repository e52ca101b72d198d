package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/skill"
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

// noSkills is a folder of skills in which there is none.
var noSkills = map[string]string{"README.md": ""}

func importSkill(t *testing.T, h *daemon.House, tenant string, b bundle.Bundle, stored bool) {
	t.Helper()
	if _, err := h.Admin.Import(t.Context(), admin.Importing{Actor: "op", Tenant: tenant, Skill: "s", Content: b, Stored: stored}); err != nil {
		t.Fatal(err)
	}
}

// grantTo grants the tenant's skill as it is now.
func grantTo(t *testing.T, h *daemon.House, tenant string) bundle.Digest {
	t.Helper()
	ref := grant.Ref{Tenant: tenant, Skill: "s", AllScripts: true}
	r, err := h.Admin.Review(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Admin.Grant(t.Context(), admin.Granting{Actor: "op", Ref: ref, Digest: r.Content.Digest(), MinTier: grant.Process, Replace: true}); err != nil {
		t.Fatal(err)
	}
	return r.Content.Digest()
}

// says ends the test when the run of a.sh does not print text, or, where gate is
// named, is not refused by it.
func says(t *testing.T, what string, runner *tracon.Runner, tenant, script, text string, refusedBy gate.Name) {
	t.Helper()
	out, err := runner.Run(t.Context(), gate.Call{Tenant: tenant, Skill: "s", Script: script})
	d, denied := errors.AsType[*gate.Denial](err)
	switch {
	case refusedBy == "" && err == nil && out.Stdout == text:
	case refusedBy != "" && denied && d.Gate == refusedBy:
	default:
		t.Fatalf("%s: out = %q, err = %v; want %q, refused by %q", what, out.Stdout, err, text, refusedBy)
	}
}

func start(t *testing.T, h *daemon.House) *tracon.Runner {
	t.Helper()
	r, err := h.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// again opens the same installation once more, as another process does.
func again(t *testing.T, h *daemon.House) *daemon.House {
	t.Helper()
	other, err := daemon.Open(t.Context(), h.Config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return other
}

func enable(t *testing.T, h *daemon.House, tenant string) {
	t.Helper()
	if _, err := h.Admin.SetPolicy(t.Context(), "op", tenant, func(p *gate.Policy) error {
		p.Enabled, p.Interpreters = true, []string{"sh"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Case 48: a skill is deleted and imported again with the same bytes, or with
// others: the pin binds content, so the same bytes run and the others don't.
func TestImportedAgain(t *testing.T) {
	h, _ := open(t, noSkills)
	runner := start(t, h)
	one, two := files(t, "SKILL.md", front, "a.sh", "echo one\n"), files(t, "SKILL.md", front, "a.sh", "echo two\n")
	says(t, "before the import", runner, "t", "a.sh", "", gate.NameGate)
	importSkill(t, h, "t", one, false)
	says(t, "an import grants nothing", runner, "t", "a.sh", "", gate.GrantGate)
	if d := grantTo(t, h, "t"); d != one.Digest() {
		t.Fatalf("the admin grants %s, want what was imported, %s", d, one.Digest())
	}
	says(t, "granted", runner, "t", "a.sh", "one\n", "")
	if _, err := h.Admin.DeleteSkill(t.Context(), "op", "t", "s", ""); err != nil {
		t.Fatal(err)
	}
	says(t, "deleted", runner, "t", "a.sh", "", gate.NameGate)
	importSkill(t, h, "t", two, false)
	says(t, "imported with other bytes", runner, "t", "a.sh", "", gate.PinGate)
	importSkill(t, h, "t", one, false)
	says(t, "imported with the same bytes", runner, "t", "a.sh", "one\n", "")
}

// Of two skills of one name the imported one is the tenant's that imported it; the
// other tenants have that in the folder, and no script is found in both.
func TestImportedBeforeFolders(t *testing.T) {
	h, _ := open(t, map[string]string{"s/SKILL.md": front, "s/a.sh": "echo folder\n", "s/folder.sh": "echo folder\n"})
	enable(t, h, "u")
	runner := start(t, h)
	importSkill(t, h, "t", files(t, "SKILL.md", front, "a.sh", "echo imported\n", "imported.sh", "echo imported\n"), false)
	if grantTo(t, h, "t") == grantTo(t, h, "u") {
		t.Fatal("both tenants have the same skill")
	}
	says(t, "the tenant that imported it", runner, "t", "a.sh", "imported\n", "")
	says(t, "a script of its own", runner, "t", "imported.sh", "imported\n", "")
	says(t, "a script that the folder alone has", runner, "t", "folder.sh", "", gate.NameGate)
	says(t, "another tenant", runner, "u", "a.sh", "folder\n", "")
	says(t, "another tenant, a script that was imported", runner, "u", "imported.sh", "", gate.NameGate)
	if _, err := h.Admin.DeleteSkill(t.Context(), "op", "t", "s", ""); err != nil {
		t.Fatal(err)
	}
	says(t, "after it was deleted, the folder's is not what was granted", runner, "t", "a.sh", "", gate.PinGate)
}

// Who names a folder means the bytes in it, for the gates, the admin and the
// declaration alike; the name by itself means the imported one, as before.
func TestNamedFolderBeforeImported(t *testing.T) {
	h, dir := open(t, map[string]string{"s/SKILL.md": front, "s/a.sh": "echo folder\n", "s/folder.sh": "echo folder\n"})
	imported := files(t, "SKILL.md", front, "a.sh", "echo imported\n")
	importSkill(t, h, "t", imported, false)

	byPath := again(t, h)
	name, err := byPath.SkillName(filepath.Join(dir, "s"))
	if err != nil || name != "s" {
		t.Fatalf("SkillName = %q, %v", name, err)
	}
	d := grantTo(t, byPath, "t")
	if d == imported.Digest() {
		t.Fatal("the imported skill was granted in place of the folder")
	}
	if b, err := byPath.Read(t.Context(), "t", "s"); err != nil || b.Digest() != d {
		t.Errorf("Read gives %s, %v; want %s", b.Digest(), err, d)
	}
	if _, err := byPath.Declare(t.Context(), "t", "s", "folder.sh"); err != nil {
		t.Error(err)
	}
	says(t, "the folder by its path", start(t, byPath), "t", "a.sh", "folder\n", "")

	byName := again(t, h)
	if name, err := byName.SkillName("s"); err != nil || name != "s" {
		t.Fatalf("SkillName = %q, %v", name, err)
	}
	if b, err := byName.Read(t.Context(), "t", "s"); err != nil || b.Digest() != imported.Digest() {
		t.Errorf("Read gives %s, %v; want what was imported, %s", b.Digest(), err, imported.Digest())
	}
	says(t, "the imported one by its name is not what was granted", start(t, byName), "t", "a.sh", "", gate.PinGate)
	says(t, "and in the first process the name still means it", start(t, h), "t", "a.sh", "", gate.PinGate)
}

// R14: a stored script runs by its plain name, with its arguments on standard input.
func TestStoredScript(t *testing.T) {
	h, _ := open(t, noSkills)
	b, err := skill.Stored("a.sh", []byte("cat\n"), gate.Declaration{})
	if err != nil {
		t.Fatal(err)
	}
	importSkill(t, h, "t", b, true)
	if origin, err := h.Contents.Find(t.Context(), "t", "s", "a.sh"); err != nil || origin != gate.StoredScript {
		t.Errorf("its origin is %v, %v", origin, err)
	}
	grantTo(t, h, "t")
	runner := start(t, h)
	out, err := runner.Run(t.Context(), gate.Call{Tenant: "t", Skill: "s", Script: "a.sh", Arguments: json.RawMessage(`{"value": 1.0}`)})
	if err != nil || out.Stdout != `{"value":1.0}` {
		t.Errorf("out = %q, err = %v", out.Stdout, err)
	}
	says(t, "another name", runner, "t", "SKILL.md", "", gate.NameGate)
}
