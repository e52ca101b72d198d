package postgres_test

import (
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/pgserver"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/postgres"
	"github.com/tracon-go/tracon/store/storetest"
)

func TestStore(t *testing.T) {
	addresses := map[store.Store]string{}
	storetest.Run(t, storetest.Setup{
		Open: func(t testing.TB) store.Store {
			address := pgserver.New(t)
			s := open(t, address)
			addresses[s] = address
			return s
		},
		Reopen: func(t testing.TB, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again := open(t, addresses[s])
			addresses[again] = addresses[s]
			return again
		},
		Damage: func(t testing.TB, s store.Store, digest bundle.Digest) {
			n := execSQL(t, raw(t, addresses[s]), `UPDATE blob SET data = data || '\x00'
				WHERE digest = (SELECT blob FROM content_file WHERE content = $1 AND path = 'scripts/a.py')`, digest[:])
			if n != 1 {
				t.Fatalf("%d files were damaged, want 1", n)
			}
		},
	})
}

// open opens the store at address. The caller closes it.
func open(t testing.TB, address string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), address, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// raw opens the database itself, as somebody else's program would.
func raw(t testing.TB, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", address)
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
