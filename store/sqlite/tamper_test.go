package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/sqlite"
	"github.com/tracon-go/tracon/toolcall"
)

// TestTampered: case 47, rows that are half-written or bent are an error, and
// never a setting, a grant or a record that says something else.
func TestTampered(t *testing.T) {
	host := func(s *sqlite.Store) error { _, err := s.Host(context.Background()); return err }
	policy := func(s *sqlite.Store) error { _, err := s.Policy(context.Background(), "acme"); return err }
	newest := func(s *sqlite.Store) error {
		_, err := s.Grant(context.Background(), grant.Ref{Tenant: "acme", Skill: "skill", Script: "a.py"})
		return err
	}
	content := func(s *sqlite.Store) error { _, err := s.Content(context.Background(), "acme", digest(t)); return err }
	imported := func(s *sqlite.Store) error {
		_, _, err := s.Imported(context.Background(), "acme", "skill")
		return err
	}
	importedFile := func(s *sqlite.Store) error {
		_, _, err := s.ImportedFile(context.Background(), "acme", "skill", "a.py")
		return err
	}
	skills := func(s *sqlite.Store) error { _, err := s.Skills(context.Background(), "acme"); return err }
	versions := func(s *sqlite.Store) error {
		_, err := s.Versions(context.Background(), "acme", "skill", 0)
		return err
	}
	calls := func(s *sqlite.Store) error {
		_, err := s.Calls(context.Background(), "acme", toolcall.Filter{})
		return err
	}
	verify := func(s *sqlite.Store) error {
		_, err := audit.NewLog(s).Verify(context.Background(), nil)
		return err
	}
	key := func(s *sqlite.Store) error { _, err := s.KeyByID(context.Background(), "aaaaaaaaaaaaaaaa"); return err }
	keys := func(s *sqlite.Store) error {
		_, err := s.Keys(context.Background(), "acme", access.KeyFilter{})
		return err
	}
	tenant := func(s *sqlite.Store) error { _, _, err := s.TenantAt(context.Background(), "acme"); return err }
	begin := func(s *sqlite.Store) error {
		_, err := s.Begin(context.Background(), idempotency.Claim{Tenant: "acme", Key: "key", Body: bundle.Sum([]byte("body")), Run: "run", At: time.Now()})
		return err
	}
	write := func(s *sqlite.Store) error {
		_, err := audit.NewLog(s).Append(context.Background(), audit.Entry{Tenant: "acme", Kind: audit.Refusal})
		return err
	}
	for _, tt := range []struct {
		name  string
		query string
		read  func(*sqlite.Store) error
		want  error
	}{
		{"host: cut", `UPDATE host_setting SET setting = substr(setting, 1, 10)`, host, store.ErrCorrupt},
		{"host: empty", `UPDATE host_setting SET setting = ''`, host, store.ErrCorrupt},
		{"host: unknown member", `UPDATE host_setting SET setting = '{"enabled":true,"open":true}'`, host, store.ErrCorrupt},
		{"host: two values", `UPDATE host_setting SET setting = setting || setting`, host, store.ErrCorrupt},
		{"policy: cut", `UPDATE policy SET setting = substr(setting, 1, 10)`, policy, store.ErrCorrupt},
		{"policy: unknown member", `UPDATE policy SET setting = '{"enabled":true,"everything":true}'`, policy, store.ErrCorrupt},
		{"policy: another type", `UPDATE policy SET setting = '{"enabled":"yes"}'`, policy, store.ErrCorrupt},
		{"grant: short pin", `PRAGMA foreign_keys = 0; UPDATE grants SET pin = substr(pin, 1, 31)`, newest, store.ErrCorrupt},
		{"grant: zero pin", `PRAGMA foreign_keys = 0; UPDATE grants SET pin = zeroblob(32)`, newest, store.ErrCorrupt},
		{"grant: no tier", `UPDATE grants SET min_tier = ''`, newest, store.ErrCorrupt},
		{"grant: another tier", `UPDATE grants SET min_tier = 'none'`, newest, store.ErrCorrupt},
		{"content: another declaration", `UPDATE content SET declaration = x'41'`, content, store.ErrCorrupt},
		{"content: a file gone", `DELETE FROM content_file WHERE path = 'b.py'`, content, store.ErrCorrupt},
		{"content: a file more", `INSERT INTO content_file (content, path, blob, size) SELECT content, 'c.py', blob, size FROM content_file LIMIT 1`, content, store.ErrCorrupt},
		{"content: two files swapped", `UPDATE content_file SET blob = (SELECT blob FROM content_file WHERE path = 'b.py') WHERE path = 'a.py'`, content, store.ErrCorrupt},
		{"content: another name", `UPDATE content_file SET path = '../a.py' WHERE path = 'a.py'`, content, store.ErrCorrupt},
		{"content: gone", `PRAGMA foreign_keys = 0; DELETE FROM content`, content, store.ErrCorrupt},
		{"imported content: two files swapped", `UPDATE content_file SET blob = (SELECT blob FROM content_file WHERE path = 'b.py') WHERE path = 'a.py'`, imported, store.ErrCorrupt},
		{"imported content: a file gone", `DELETE FROM content_file WHERE path = 'b.py'`, imported, store.ErrCorrupt},
		{"imported content: gone", `PRAGMA foreign_keys = 0; DELETE FROM content`, imported, store.ErrCorrupt},
		{"version: short digest", `PRAGMA foreign_keys = 0; UPDATE skill_version SET digest = substr(digest, 1, 31)`, imported, store.ErrCorrupt},
		{"version: empty digest", `PRAGMA foreign_keys = 0; UPDATE skill_version SET digest = x''`, importedFile, store.ErrCorrupt},
		{"version: zero digest", `PRAGMA foreign_keys = 0; UPDATE skill_version SET digest = zeroblob(32)`, importedFile, store.ErrCorrupt},
		{"version: another digest", `PRAGMA foreign_keys = 0; UPDATE skill_version SET digest = randomblob(32)`, imported, store.ErrCorrupt},
		{"version: no digest", `PRAGMA ignore_check_constraints = 1; UPDATE skill_version SET digest = NULL`, skills, store.ErrCorrupt},
		{"version: a deletion with a digest", `PRAGMA ignore_check_constraints = 1; UPDATE skill_version SET deleted = 1`, importedFile, store.ErrCorrupt},
		{"version: no id", `UPDATE skill_version SET id = ''`, versions, store.ErrCorrupt},
		{"call: cut", `UPDATE call_record SET rest = substr(rest, 1, 20)`, calls, store.ErrCorrupt},
		{"call: short digest", `UPDATE call_record SET digest = x'00'`, calls, store.ErrCorrupt},
		{"key: cut", `UPDATE api_key SET rest = substr(rest, 1, 20)`, key, store.ErrCorrupt},
		{"key: a byte changed", `UPDATE api_key SET rest = replace(rest, '"reader"', '"admin"')`, key, store.ErrCorrupt},
		{"key: no role, without its sum", `UPDATE api_key SET rest = replace(substr(rest, 1, instr(rest, char(10)) - 1), '["reader"]', '[]')`, key, store.ErrCorrupt},
		{"key: no hash, without its sum", `UPDATE api_key SET rest = replace(substr(rest, 1, instr(rest, char(10)) - 1), '"hash":"', '"hash":"0')`, key, store.ErrCorrupt},
		{"key: another tenant's", `UPDATE api_key SET tenant = 'other'`, key, store.ErrCorrupt},
		{"key: the platform's", `UPDATE api_key SET tenant = ''`, key, store.ErrCorrupt},
		{"key: a name of another key", `UPDATE api_key SET id = 'cccccccccccccccc'`, keys, store.ErrCorrupt},
		{"tenant: cut", `UPDATE tenant_setting SET setting = substr(setting, 1, 20)`, tenant, store.ErrCorrupt},
		{"tenant: on again", `UPDATE tenant_setting SET setting = replace(setting, '"off":true', '"off":false')`, policy, store.ErrCorrupt},
		{"tenant: of another name, without its sum", `UPDATE tenant_setting SET setting = replace(substr(setting, 1, instr(setting, char(10)) - 1), '"acme"', '"acne"')`, tenant, store.ErrCorrupt},
		{"tenant: unknown member", `UPDATE tenant_setting SET setting = '{"name":"acme","free":true}'`, tenant, store.ErrCorrupt},
		{"idempotency key: another run", `UPDATE idempotency_key SET run = 'other'`, begin, store.ErrCorrupt},
		{"idempotency key: another process", `UPDATE idempotency_key SET instance = 'other'`, begin, store.ErrCorrupt},
		{"idempotency key: done", `UPDATE idempotency_key SET done = 1`, begin, store.ErrCorrupt},
		{"idempotency key: another answer", `UPDATE idempotency_key SET answer = x'41'`, begin, store.ErrCorrupt},
		{"idempotency key: half a body", `UPDATE idempotency_key SET body = x'00'`, begin, store.ErrCorrupt},
		{"log: a leaf changed", `UPDATE leaf SET bytes = CAST(replace(CAST(bytes AS TEXT), 'acme', 'acne') AS BLOB) WHERE idx = 2`, verify, audit.ErrBroken},
		{"log: a leaf gone", `DELETE FROM leaf WHERE idx = 1`, verify, audit.ErrBroken},
		{"log: a hash cut", `UPDATE leaf SET hash = x'00' WHERE idx = 1`, verify, audit.ErrBroken},
		{"log: the tail gone", `DELETE FROM leaf WHERE idx = (SELECT MAX(idx) FROM leaf)`, verify, audit.ErrBroken},
		{"log: another size", `UPDATE log_head SET size = size + 1`, verify, audit.ErrBroken},
		{"log: half an edge", `UPDATE log_head SET edge = substr(edge, 1, length(edge) - 8)`, write, store.ErrCorrupt},
		{"log: no head", `DELETE FROM log_head`, write, store.ErrCorrupt},
		{"log: a head of before", `UPDATE log_head SET size = 1, edge = (SELECT hash FROM leaf WHERE idx = 0)`, write, store.ErrCorrupt},
		{"log: a history of before", `UPDATE tenant_head SET seq = 1 WHERE tenant = 'acme'`, write, store.ErrCorrupt},
		{"log: half a hash", `UPDATE tenant_head SET hash = x'00' WHERE tenant = 'acme'`, write, store.ErrCorrupt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tracon.db")
			populated(t, path)
			s := open(t, path)
			defer s.Close()
			if err := tt.read(s); err != nil {
				t.Fatalf("before it: %v", err)
			}
			db := raw(t, path)
			execSQL(t, db, tt.query)
			if err := tt.read(s); !errors.Is(err, tt.want) {
				t.Errorf("the error is %v, want one that wraps %q", err, tt.want)
			} else if errors.Is(err, bundle.ErrContent) {
				t.Errorf("the error %v would be taken for a refusal of the content", err)
			}
		})
	}
}

func digest(t testing.TB) bundle.Digest { return tampered(t).Digest() }

func tampered(t testing.TB) bundle.Bundle {
	c, err := bundle.New([]bundle.File{{Path: "a.py", Data: []byte("a")}, {Path: "b.py", Data: []byte("b")}}, nil, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type written struct {
	tenant string
	do     func(context.Context, audit.Pending) error
}

// populated makes a store at path with one of everything.
func populated(t testing.TB, path string) {
	t.Helper()
	write(t, path, func(s *sqlite.Store) []written {
		return append(oneOfAll1(t, s), written{"acme", func(ctx context.Context, p audit.Pending) error {
			return s.AddVersion(ctx, version("1", "skill", tampered(t)), tampered(t), "", p)
		}}, written{"acme", func(ctx context.Context, p audit.Pending) error {
			return s.AddKey(ctx, access.Key{ID: "aaaaaaaaaaaaaaaa", Tenant: "acme", Name: "ci", Roles: []access.Role{access.Reader}, Created: time.Now(), CreatedBy: "op", Hash: access.Hash{1}}, "", p)
		}}, written{"acme", func(ctx context.Context, p audit.Pending) error {
			return s.SetTenant(ctx, access.Tenant{Name: "acme", Created: time.Now(), By: "op", Off: true}, 0, p)
		}})
	})
}

// oneOfAll1 writes one of everything that the first version of the tables holds.
func oneOfAll1(t testing.TB, s *sqlite.Store) []written {
	c := tampered(t)
	return []written{
		{gate.HostTenant, func(ctx context.Context, p audit.Pending) error {
			return s.SetHost(ctx, gate.Host{Enabled: true}, 0, p)
		}},
		{"acme", func(ctx context.Context, p audit.Pending) error {
			return s.SetPolicy(ctx, "acme", gate.Policy{Enabled: true}, 0, p)
		}},
		{"acme", func(ctx context.Context, p audit.Pending) error {
			g := grant.Grant{ID: "1", Ref: grant.Ref{Tenant: "acme", Skill: "skill", Script: "a.py"}, Pin: c.Digest(), Granted: time.Now(), MinTier: grant.Process}
			return s.AddGrant(ctx, g, c, "", p)
		}},
		{"acme", func(ctx context.Context, p audit.Pending) error {
			return s.AddCall(ctx, toolcall.Record{ID: "1", Tenant: "acme"}, p)
		}},
	}
}

func version(id, skill string, c bundle.Bundle) admin.Version {
	return admin.Version{ID: id, Tenant: "acme", Skill: skill, Digest: c.Digest(), Imported: time.Now()}
}

// write makes a store at path with what changes write.
func write(t testing.TB, path string, changes func(*sqlite.Store) []written) {
	t.Helper()
	s := open(t, path)
	log := audit.NewLog(s)
	for _, change := range changes(s) {
		if _, err := log.Commit(t.Context(), audit.Entry{Tenant: change.tenant, Kind: audit.Host}, change.do); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMovedAside: a file that was moved or replaced under the open store takes
// no more changes: they would be acknowledged and lost.
func TestMovedAside(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(path string) error
	}{
		{"moved", func(path string) error { return os.Rename(path, path+".old") }},
		{"removed", os.Remove},
		{"replaced", func(path string) error {
			if err := os.Rename(path, path+".old"); err != nil {
				return err
			}
			return os.WriteFile(path, nil, 0o600)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tracon.db")
			s := open(t, path)
			defer s.Close()
			log := audit.NewLog(s)
			appendTo(t, log, "before")
			if err := tt.do(path); err != nil {
				t.Fatal(err)
			}
			_, err := log.Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Refusal})
			if !errors.Is(err, store.ErrPoisoned) || !strings.Contains(err.Error(), "moved or replaced") {
				t.Errorf("Append says %v, want an error that says that the file was moved", err)
			}
			if n := verified(t, log); n != 1 {
				t.Errorf("the log has %d entries, want 1", n)
			}
		})
	}
}
