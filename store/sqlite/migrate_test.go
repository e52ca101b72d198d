package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store/sqlite"
	"github.com/tracon-go/tracon/toolcall"
)

// tables1 are those of version 1 that hold what was written.
var tables1 = []string{"leaf", "log_head", "tenant_head", "content", "blob", "content_file", "grants", "host_setting", "policy", "call_record"}

// version1 makes at path the database that the program of version 1 left: its
// migration alone was run, and its tables hold rows that a store at full wrote,
// one of everything.
func version1(t *testing.T, path, full string) {
	t.Helper()
	write(t, full, func(s *sqlite.Store) []written { return oneOfAll1(t, s) })
	db := raw(t, path)
	p, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("../internal/sqlstore/migrations/sqlite"), goose.WithTableName("schema_version"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	execSQL(t, db, `PRAGMA application_id = 1416782179; PRAGMA journal_mode = WAL`)
	execSQL(t, db, `ATTACH DATABASE $1 AS store`, full)
	for _, table := range tables1 {
		var columns string
		if err := db.QueryRow(`SELECT group_concat(name) FROM pragma_table_info($1)`, table).Scan(&columns); err != nil {
			t.Fatal(err)
		}
		execSQL(t, db, `DELETE FROM `+table+`; INSERT INTO `+table+` (`+columns+`) SELECT `+columns+` FROM store.`+table)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// rows returns every row of the tables of version 1, as text.
func rows(t *testing.T, path string) map[string][]string {
	t.Helper()
	db := raw(t, path)
	defer db.Close()
	all := map[string][]string{}
	for _, table := range tables1 {
		var names string // of version 1
		if err := db.QueryRow(`SELECT group_concat(name) FROM pragma_table_info($1) WHERE name NOT IN ('sum', 'erased')`, table).Scan(&names); err != nil {
			t.Fatal(err)
		}
		r, err := db.Query(`SELECT ` + names + ` FROM ` + table + ` ORDER BY 1, 2`)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := r.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for r.Next() {
			values := make([]sql.RawBytes, len(columns))
			into := make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := r.Scan(into...); err != nil {
				t.Fatal(err)
			}
			all[table] = append(all[table], fmt.Sprintf("%q", values))
		}
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestMigrateFromVersion1: a database that the first version wrote is opened and
// loses nothing, and skills can be imported into it.
func TestMigrateFromVersion1(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	version1(t, path, filepath.Join(t.TempDir(), "full.db"))
	before := rows(t, path)
	for _, table := range tables1 {
		if len(before[table]) == 0 {
			t.Fatalf("there is no row in %s to be kept", table)
		}
	}
	s := open(t, path)
	log := audit.NewLog(s)
	n := verified(t, log)
	look := func(s *sqlite.Store) {
		t.Helper()
		if h, err := s.Host(t.Context()); err != nil || !h.Enabled {
			t.Errorf("the host's settings are %+v, %v", h, err)
		}
		if p, err := s.Policy(t.Context(), "acme"); err != nil || !p.Enabled {
			t.Errorf("the policy is %+v, %v", p, err)
		}
		if g, err := s.Grant(t.Context(), grant.Ref{Tenant: "acme", Skill: "skill", Script: "a.py"}); err != nil || g.Pin != digest(t) {
			t.Errorf("the grant is %+v, %v", g, err)
		}
		if b, err := s.Content(t.Context(), "acme", digest(t)); err != nil || b.Digest() != digest(t) {
			t.Errorf("the content is %s, %v", b.Digest(), err)
		}
		if calls, err := s.Calls(t.Context(), "acme", toolcall.Filter{}); err != nil || len(calls) != 1 {
			t.Errorf("the calls are %v, %v", calls, err)
		}
	}
	look(s)
	if skills, err := s.Skills(t.Context(), "acme"); err != nil || len(skills) != 0 {
		t.Errorf("the skills are %v, %v; want none", skills, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, rows(t, path)); d != "" {
		t.Errorf("rows were changed (-before +after):\n%s", d)
	}

	s = open(t, path)
	defer s.Close()
	c := tampered(t)
	_, err := audit.NewLog(s).Commit(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Imported}, func(ctx context.Context, p audit.Pending) error {
		return s.AddVersion(ctx, version("1", "skill", c), c, "", p)
	})
	if err != nil {
		t.Fatal(err)
	}
	if v, b, err := s.Imported(t.Context(), "acme", "skill"); err != nil || v.ID != "1" || b.Digest() != c.Digest() {
		t.Errorf("the imported skill is %+v of %s, %v", v, b.Digest(), err)
	}
	look(s)
	if m := verified(t, audit.NewLog(s)); m != n+1 {
		t.Errorf("the log has %d entries, want %d", m, n+1)
	}
}

// TestContentIsKeptOnce: B11, equal contents and equal files of different ones
// take their room once, whoever imports or grants them.
func TestContentIsKeptOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	populated(t, path)
	s := open(t, path)
	defer s.Close()
	log := audit.NewLog(s)
	c := tampered(t)
	for _, tenant := range []string{"acme", "other"} {
		for i, skill := range []string{"one", "two"} {
			v := version(fmt.Sprint(10+i), skill, c)
			v.Tenant = tenant
			_, err := log.Commit(t.Context(), audit.Entry{Tenant: tenant, Kind: audit.Imported}, func(ctx context.Context, p audit.Pending) error {
				return s.AddVersion(ctx, v, c, "", p)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	db := raw(t, path)
	for table, want := range map[string]int{"content": 1, "blob": 2, "content_file": 2, "skill_version": 5, "grants": 1} {
		var n int
		if err := db.QueryRow(`SELECT COUNT(*) FROM ` + table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
}

// Case 47: what an older version let in, and none would now, is whole as it is kept, and is
// not called damaged; the gate's limits are today's and refuse it.
func TestNamesOfAnOlderVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	populated(t, path)
	s := open(t, path)
	defer s.Close()
	build := bundle.NewBuilder(bundle.Limits{Kept: true})
	for _, name := range []string{"SKILL.md", "line\u2028sep.txt", "a.md", "\uff41.md"} {
		if err := build.Add(name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	c, err := build.Bundle(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = audit.NewLog(s).Commit(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Imported}, func(ctx context.Context, p audit.Pending) error {
		return s.AddVersion(ctx, version("20", "old", c), c, "", p)
	})
	if err != nil {
		t.Fatal(err)
	}
	_, b, err := s.Imported(t.Context(), "acme", "old")
	if err != nil || b.Digest() != c.Digest() {
		t.Errorf("it is read as %s, %v; want %s", b.Digest(), err, c.Digest())
	}
	if err := b.Within(bundle.Limits{}); !errors.Is(err, bundle.ErrPath) {
		t.Errorf("within today's limits: %v", err)
	}
	if err := b.Within(bundle.Limits{Kept: true}); err != nil {
		t.Errorf("within those of its time: %v", err)
	}
}
