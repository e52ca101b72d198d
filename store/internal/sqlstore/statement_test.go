package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	"github.com/tracon-go/tracon/store"
)

var dialect = Dialect{Name: "sqlite", Goose: goose.DialectSQLite3}

func database(t *testing.T) *sql.DB {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if err := Migrate(t.Context(), db, dialect); err != nil {
		t.Fatal(err)
	}
	return db
}

// TestStatementsUseIndexes: no statement walks through a table or sorts, so none
// grows slower with the rows that it is not about.
func TestStatementsUseIndexes(t *testing.T) {
	db := database(t)
	for s, text := range texts {
		if text == "" {
			t.Errorf("statement %d has no text", s)
		}
		if s := statement(s); !slices.Contains(writing, s) && !slices.Contains(reading, s) {
			t.Errorf("nobody prepares %q", text)
		}
		if strings.Contains(text, "SAVEPOINT") {
			continue
		}
		var args []any
		for i := 1; strings.Contains(text, fmt.Sprint("$", i)); i++ {
			args = append(args, i)
		}
		rows, err := db.Query("EXPLAIN QUERY PLAN "+text, args...)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			// Of a query for one row or none, "one" is the answer itself.
			if strings.HasPrefix(detail, "SCAN ") && detail != "SCAN CONSTANT ROW" && detail != "SCAN one" || strings.Contains(detail, "TEMP B-TREE") {
				t.Errorf("%s\n\tplan: %s", text, detail)
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMigrate: migrating again does nothing, and tables of a newer version are
// refused and left alone.
func TestMigrate(t *testing.T) {
	db := database(t)
	if err := Migrate(t.Context(), db, dialect); err != nil {
		t.Fatal(err)
	}
	has, want, err := Version(t.Context(), db, dialect)
	if err != nil || has != want || want == 0 {
		t.Fatalf("the tables have version %d, the program %d, error %v", has, want, err)
	}
	if _, err := db.Exec(`INSERT INTO schema_version (version_id, is_applied) VALUES ($1, 1)`, want+1); err != nil {
		t.Fatal(err)
	}
	if err := Migrate(t.Context(), db, dialect); !errors.Is(err, store.ErrNewer) {
		t.Errorf("Migrate says %v, want %q", err, store.ErrNewer)
	}
	if has, _, err := Version(t.Context(), db, dialect); !errors.Is(err, store.ErrNewer) || has != want+1 {
		t.Errorf("Version says %d and %v, want %d and %q", has, err, want+1, store.ErrNewer)
	}
}
