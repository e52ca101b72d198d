package daemon_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/fsck"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
)

// examined returns what fsck finds in h.
func examined(t *testing.T, h *daemon.House) (fsck.Report, []fsck.Finding) {
	t.Helper()
	var found []fsck.Finding
	report, err := h.Fsck(t.Context(), nil, func(f fsck.Finding) { found = append(found, f) })
	if err != nil {
		t.Fatalf("fsck: %v", err)
	}
	if report.Findings != uint64(len(found)) {
		t.Errorf("the report counts %d findings, and %d were told", report.Findings, len(found))
	}
	return report, found
}

// lived returns the database of a house in which something of everything has
// happened.
func lived(t *testing.T) string {
	t.Helper()
	h, dir := open(t, map[string]string{"s/SKILL.md": front, "s/a.sh": "echo a\n"})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	grantAll(t, h)
	runner, err := h.Start(ctx)
	must(err)
	for range 2 {
		_, err := runner.Run(ctx, gate.Call{Tenant: "t", Actor: "model", Skill: "s", Script: "a.sh"})
		must(err)
	}
	// Another content, which replaces the first one, and is revoked.
	write(t, filepath.Join(dir, "s/a.sh"), "echo b\n")
	ref := grant.Ref{Tenant: "t", Skill: "s", AllScripts: true}
	r, err := h.Admin.Review(ctx, ref)
	must(err)
	g, err := h.Admin.Grant(ctx, admin.Granting{Actor: "op", Ref: ref, Digest: r.Content.Digest(), MinTier: grant.Process, Replace: true})
	must(err)
	_, err = h.Admin.Revoke(ctx, "op", "t", g.ID, "no longer")
	must(err)
	for _, text := range []string{"one", "two"} {
		b, err := bundle.New([]bundle.File{{Path: "SKILL.md", Data: []byte(front + text)}}, nil, bundle.Limits{})
		must(err)
		_, err = h.Admin.Import(ctx, admin.Importing{Actor: "op", Tenant: "u", Skill: "imported", Content: b})
		must(err)
	}
	_, err = h.Admin.DeleteSkill(ctx, "op", "u", "imported", "no longer")
	must(err)
	_, err = h.Admin.SetPolicy(ctx, "op", "u", func(p *gate.Policy) error {
		p.Enabled, p.Environment = true, map[string]string{"SECRET": "value"}
		return nil
	})
	must(err)
	_, err = h.Admin.SetPolicy(ctx, "op", "u", func(p *gate.Policy) error { p.Enabled = false; return nil })
	must(err)
	for _, name := range []string{"python-3.12", "node-22"} {
		_, err = h.Admin.NameRuntime(ctx, admin.Naming{Actor: "op", Name: name, Digest: bundle.Sum([]byte(name))})
		must(err)
	}
	_, err = h.Admin.RemoveRuntime(ctx, "op", "node-22", "no longer")
	must(err)
	by := access.Principal{Actor: "op", Roles: []access.Role{access.Platform}}
	_, err = h.Admin.CreateTenant(ctx, by, access.Tenant{Name: "u", Quota: access.Quota{Keys: 5}})
	must(err)
	_, err = h.Admin.SetTenant(ctx, by, "u", func(t *access.Tenant) error { t.Off = true; return nil })
	must(err)
	key, _, err := h.Admin.CreateKey(ctx, admin.Keying{By: by, Tenant: "u", Name: "old", Roles: []access.Role{access.Reader}})
	must(err)
	key, _, err = h.Admin.RotateKey(ctx, admin.Rotation{By: by, Tenant: "u", ID: key.ID, Overlap: admin.DefaultOverlap})
	must(err)
	_, err = h.Admin.RevokeKey(ctx, by, "u", key.ID, "leaked")
	must(err)
	_, _, _, err = h.Admin.FirstKey(ctx)
	must(err)
	report, found := examined(t, h)
	want := fsck.Report{Tenants: 3, Grants: 2, Versions: 3, Keys: 3, Records: 2, Contents: 4}
	if report.Entries = 0; report != want || found != nil {
		t.Fatalf("of a sound house fsck says %+v and finds %v; want %+v and nothing", report, found, want)
	}
	db := filepath.Join(t.TempDir(), "copy.db")
	changed(t, filepath.Join(h.Config.Data, daemon.DatabaseFile), `VACUUM INTO '`+db+`'`)
	return db
}

// I2, I3, I5, I6, I7: whatever somebody writes around Tracon is found, with the
// invariant that it breaks and words for it.
func TestFsckFinds(t *testing.T) {
	db := lived(t)
	const (
		first  = `(SELECT MIN(n) FROM grants)`
		second = `(SELECT MAX(n) FROM grants)`
		swap   = `UPDATE %t SET n = -1 WHERE n = (SELECT MIN(n) FROM %t WHERE n > 0);
			UPDATE %t SET n = (SELECT MIN(n) FROM %t WHERE n > 0) - 1 WHERE n = (SELECT MAX(n) FROM %t);
			UPDATE %t SET n = 1000 WHERE n = -1`
		grants   = `tenant, skill, script, all_scripts, pin, reason, source, granted_by, granted, expires, revoked, revoked_by, min_tier`
		versions = `tenant, skill, digest, stored, source, reason, imported_by, imported, deleted`
	)
	for _, tt := range []struct {
		name, query string
		invariant   string
		says        string
	}{
		{"a grant is gone", `DELETE FROM grants WHERE n = ` + first, "I6", "is not kept"},
		{"a grant was put in", `INSERT INTO grants (id, ` + grants + `) SELECT 'made-up', ` + grants + ` FROM grants WHERE n = ` + first, "I6", "no entry of the log tells of it"},
		{"a grant pins other content", `UPDATE grants SET sum = NULL, pin = (SELECT pin FROM grants WHERE n = ` + second + `) WHERE n = ` + first, "I6", "digest"},
		{"a grant asks for less", `UPDATE grants SET sum = NULL, min_tier = 'vm' WHERE n = ` + first, "I6", "tier"},
		{"a grant ends later", `UPDATE grants SET sum = NULL, expires = granted + 1000000 WHERE n = ` + first, "I6", "end"},
		{"a grant is of another script", `UPDATE grants SET sum = NULL, script = 'b.sh', all_scripts = 0 WHERE n = ` + first, "I6", "reference"},
		{"a grant of another tenant", `UPDATE grants SET sum = NULL, tenant = 'u' WHERE n = ` + first, "I6", "no entry of the log tells of it"},
		{"I7: a revoked grant is in force again", `UPDATE grants SET sum = NULL, revoked = NULL, revoked_by = ''`, "I7", "was revoked, and is not revoked now"},
		{"a grant is revoked without an entry", `UPDATE grants SET sum = NULL, revoked = granted WHERE n = ` + first, "I6", "kept as revoked"},
		{"the old grant is the newest again", strings.ReplaceAll(swap, "%t", "grants"), "I6", "its place"},
		{"a version is gone", `DELETE FROM skill_version WHERE deleted = 1`, "I6", "is not kept"},
		{"a version was put in", `INSERT INTO skill_version (id, ` + versions + `) SELECT 'made-up', ` + versions + ` FROM skill_version LIMIT 1`, "I6", "no entry of the log tells of it"},
		{"a version of other content", `UPDATE skill_version SET sum = NULL, digest = (SELECT pin FROM grants LIMIT 1) WHERE n = 1`, "I6", "digest"},
		{"the old version is the newest again", strings.ReplaceAll(swap, "%t", "skill_version"), "I6", "its place"},
		{"a policy was opened", `UPDATE policy SET setting = replace(bare(setting), '"enabled":false', '"enabled":true') WHERE tenant = 'u'`, "I6", "policy is not the one"},
		{"I7: the old policy holds again", `UPDATE policy SET revision = 1, setting = replace(bare(setting), '"enabled":false', '"enabled":true') WHERE tenant = 'u'`, "I7", "changed 2 times"},
		{"a policy was put in", `INSERT INTO policy SELECT 'stranger', revision, bare(setting) FROM policy WHERE tenant = 't'`, "I7", "changed 0 times"},
		{"a policy that is none", `UPDATE policy SET setting = '{' WHERE tenant = 'u'`, "I6", "damaged"},
		{"the host has another interpreter", `UPDATE host_setting SET setting = replace(bare(setting), '"path":"', '"path":"/x')`, "I6", "setting of the host"},
		{"the host has another runtime", `UPDATE host_setting SET setting = replace(bare(setting), 'python-3.12', 'python-3.13')`, "I6", "runtimes of the host"},
		{"the host's setting without its entries", `DELETE FROM leaf WHERE tenant = '@host'; DELETE FROM tenant_head WHERE tenant = '@host'`, "I7", "changed 0 times"},
		{"a key is gone", `DELETE FROM api_key WHERE tenant = ''`, "I6", "is not kept"},
		{"a key was put in", `INSERT INTO api_key (id, tenant, rest) SELECT 'madeupmadeupmade', tenant, bare(rest) FROM api_key WHERE n = 1`, "I6", "key madeupmadeupmade is kept"},
		{"a key of the platform was put in", `INSERT INTO api_key (id, tenant, rest) SELECT 'madeupmadeupmade', tenant, bare(rest) FROM api_key WHERE tenant = ''`, "I6", "key madeupmadeupmade is kept"},
		{"a key may do more", `UPDATE api_key SET rest = replace(bare(rest), '"reader"', '"admin"')`, "I6", "roles"},
		{"a key is of another tenant", `UPDATE api_key SET rest = bare(rest), tenant = 't' WHERE tenant = 'u'`, "I6", "is kept, and no entry"},
		{"a key ends later", `UPDATE api_key SET rest = replace(bare(rest), '"expires":', '"expires":1') WHERE n = 1`, "I6", "end"},
		{"I7: a revoked key lets in again", `UPDATE api_key SET rest = replace(bare(rest), '"revoked":', '"expires":')`, "I7", "was revoked, and is not revoked now"},
		{"I7: a replaced key stands for itself again", `UPDATE api_key SET rest = replace(bare(rest), '"replacedBy":', '"revokedBy":')`, "I7", "was replaced, and is not replaced now"},
		{"on the disk: a key's hash", `UPDATE api_key SET rest = replace(rest, '"hash":"', '"hash":"0')`, "I6", "was changed where it is kept"},
		{"a tenant is on again", `UPDATE tenant_setting SET setting = replace(bare(setting), '"off":true,', '')`, "I6", "setting of the tenant"},
		{"a tenant is gone", `DELETE FROM tenant_setting`, "I7", "changed 2 times"},
		{"a tenant was put in", `INSERT INTO tenant_setting SELECT 'stranger', 1, replace(bare(setting), '"name":"u"', '"name":"stranger"') FROM tenant_setting`, "I7", "changed 0 times"},
		{"a record says another ending", `UPDATE call_record SET rest = replace(bare(rest), '"ending":"exited"', '"ending":"signaled"')`, "I6", "signaled"},
		{"a record is gone", `DELETE FROM call_record WHERE id = (SELECT MIN(id) FROM call_record)`, "I6", "is gone, and no entry tells that its time was over"},
		{"a record was put in", `INSERT INTO call_record SELECT tenant, 'made-up', skill, digest, bare(rest) FROM call_record LIMIT 1`, "I6", "a record of call made-up"},
		{"a record of another admission", `UPDATE call_record SET rest = replace(bare(rest), '"admissionIndex":', '"admissionIndex":10') WHERE id = (SELECT MIN(id) FROM call_record)`, "I6", "a record of call"},
		{"a record of another tenant", `UPDATE call_record SET rest = bare(rest), tenant = 'u'`, "I6", "a record of call"},
		{"a record that is none", `UPDATE call_record SET rest = '{'`, "I6", "damaged"},
		{"an entry is gone", `DELETE FROM leaf WHERE idx = 3`, "I3", "is missing"},
		{"an entry was changed", `UPDATE leaf SET bytes = CAST(replace(CAST(bytes AS TEXT), 'op', 'po') AS BLOB) WHERE idx = 1`, "I3", "were changed"},
		{"the end of a history was rolled back", `UPDATE tenant_head SET seq = seq - 1 WHERE tenant = 'u'`, "I2", "ends with number"},
		{"the end of a history is no hash", `UPDATE tenant_head SET hash = x'00' WHERE tenant = 'u'`, "I2", "damaged"},
		{"the root was changed", `UPDATE log_head SET edge = randomblob(length(edge))`, "I3", "root"},
		{"on the disk: a grant's reason", `UPDATE grants SET reason = reason || 'x'`, "I6", "was changed where it is kept"},
		{"on the disk: a version's source", `UPDATE skill_version SET source = source || 'x'`, "I6", "was changed where it is kept"},
		{"on the disk: a variable's value", `UPDATE policy SET setting = replace(setting, 'value', 'velue')`, "I6", "was changed where it is kept"},
		{"on the disk: the size of an output", `UPDATE call_record SET rest = replace(rest, '"stdoutBytes":2', '"stdoutBytes":3')`, "I6", "was changed where it is kept"},
		{"on the disk: the size of a file", `UPDATE content_file SET size = size + 1`, "content", "was changed where it is kept"},
		{"a content is hidden", `UPDATE content SET erased = 1 WHERE digest = (SELECT digest FROM skill_version WHERE deleted = 0 LIMIT 1)`, "content", "no entry tells that it was erased"},
		{"a file was changed", `UPDATE blob SET data = CAST(data || 'x' AS BLOB)`, "content", "was changed"},
		{"a file is gone", `DELETE FROM content_file`, "content", "was changed"},
		{"a content is gone", `DELETE FROM content WHERE digest = (SELECT pin FROM grants LIMIT 1)`, "engine", "names what is not in content"},
		{"an index has not what its table has", `PRAGMA writable_schema = 1;
			UPDATE sqlite_schema SET sql = replace(sql, '(digest, tenant)', '(tenant, digest)') WHERE name = 'skill_version_by_digest'`, "engine", "skill_version_by_digest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Who writes around Tracon leaves out the sums, as rows of before do.
			h := copied(t, db, regexp.MustCompile(`bare\((\w+)\)`).ReplaceAllString(tt.query, "substr($1, 1, instr($1, char(10)) - 1)"))
			_, found := examined(t, h)
			if !slices.ContainsFunc(found, func(f fsck.Finding) bool {
				return f.Invariant == tt.invariant && strings.Contains(f.What, tt.says) && f.Remedy != ""
			}) {
				text, _ := json.MarshalIndent(found, "", " ")
				t.Errorf("fsck finds %s; want %s with %q", text, tt.invariant, tt.says)
			}
		})
	}
	t.Run("nothing was changed", func(t *testing.T) {
		if _, found := examined(t, copied(t, db, "")); found != nil {
			t.Errorf("fsck finds %v in a copy", found)
		}
	})
}

// copied opens a house over a copy of db after query was done on it.
func copied(t *testing.T, db, query string) *daemon.House {
	t.Helper()
	dir := t.TempDir()
	data, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, daemon.DatabaseFile)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	changed(t, path, query)
	env := map[string]string{"HOME": dir, "TRACON_RUNTIME": filepath.Join(dir, "run")}
	c, err := config.Load(config.Source{Flags: map[string]string{"data": dir}, Getenv: func(k string) string { return env[k] }, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	h, err := daemon.Open(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// changed does query on the database at path, as somebody else's program would.
func changed(t *testing.T, path, query string) {
	t.Helper()
	raw, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String())
	if err != nil {
		t.Fatal(err)
	}
	_, err = raw.Exec(query)
	if err := errors.Join(err, raw.Close()); err != nil {
		t.Fatal(err)
	}
}

// I5, I8: a call without an ending is told when its host is dead, and counted when
// it lives; what a dead host left is told.
func TestFsckAfterADeadHost(t *testing.T) {
	h, _ := open(t, map[string]string{"s/SKILL.md": front, "s/a.sh": "echo a\n"})
	if _, err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	instances := filepath.Join(h.Config.Data, daemon.InstancesFolder)
	files, err := filepath.Glob(filepath.Join(instances, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the instances are %v, error %v", files, err)
	}
	admit := func(instance string) {
		if _, err := h.Log.Append(t.Context(), audit.Entry{Tenant: "t", Kind: audit.Admission, Run: "run of " + instance, Facts: audit.Facts("instance", instance)}); err != nil {
			t.Fatal(err)
		}
	}
	admit(strings.TrimSuffix(filepath.Base(files[0]), ".json"))
	if report, found := examined(t, h); report.Running != 1 || found != nil {
		t.Errorf("beside a living host fsck counts %d calls under way and finds %v; want 1 and nothing", report.Running, found)
	}
	const dead = "01900000-0000-7000-8000-000000000001"
	admit(dead)
	write(t, filepath.Join(instances, dead+".json"), "{}")
	write(t, filepath.Join(h.Config.Runtime, "instance-"+strings.Repeat("A", 26), "skill", "a.sh"), "")
	_, found := examined(t, h)
	var got []string
	for _, f := range found {
		got = append(got, f.Invariant)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"I5", "I8", "I8"}) {
		t.Errorf("beside a dead host fsck finds %v; want its call, its file and its folder", found)
	}
}
