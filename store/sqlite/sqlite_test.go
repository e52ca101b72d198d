package sqlite_test

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/sqlite"
	"github.com/tracon-go/tracon/store/storetest"
)

func TestStore(t *testing.T) {
	paths := map[store.Store]string{}
	storetest.Run(t, storetest.Setup{
		Open: func(t testing.TB) store.Store {
			path := filepath.Join(t.TempDir(), "tracon.db")
			s := open(t, path)
			paths[s] = path
			return s
		},
		Reopen: func(t testing.TB, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again := open(t, paths[s])
			paths[again] = paths[s]
			return again
		},
		Damage: func(t testing.TB, s store.Store, digest bundle.Digest) {
			db := raw(t, paths[s])
			n := execSQL(t, db, `UPDATE blob SET data = CAST(data || 'x' AS BLOB)
				WHERE digest = (SELECT blob FROM content_file WHERE content = $1 AND path = 'scripts/a.py')`, digest[:])
			if n != 1 {
				t.Fatalf("%d files were damaged, want 1", n)
			}
		},
	})
}

// open opens the store at path. The caller closes it.
func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// raw opens the database itself, as somebody else's program would.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: "_busy_timeout=10000"}).String())
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func execSQL(t testing.TB, db *sql.DB, query string, args ...any) int64 {
	t.Helper()
	r, err := db.Exec(query, args...)
	if err != nil {
		t.Fatal(err)
	}
	n, err := r.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	return n
}
