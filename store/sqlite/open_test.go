package sqlite_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/sqlite"
)

// fill makes a store at path with n entries, and closes it.
func fill(t testing.TB, path string, n int) {
	t.Helper()
	s := open(t, path)
	log := audit.NewLog(s)
	for i := range n {
		appendTo(t, log, fmt.Sprint("entry ", i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func appendTo(t testing.TB, log *audit.Log, subject string) {
	t.Helper()
	if _, err := log.Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Refusal, Subject: subject}); err != nil {
		t.Fatal(err)
	}
}

// pictures returns what is in folder, by name.
func pictures(t testing.TB, folder string) map[string]string {
	t.Helper()
	p := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(name)
		p[name] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOpenRefuses: bad input gets an error that names the thing and the remedy,
// and loses nothing.
func TestOpenRefuses(t *testing.T) {
	overwrite := func(t *testing.T, path string, at int64, b []byte) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt(b, at)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	change := func(query string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			fill(t, path, 3)
			db := raw(t, path)
			execSQL(t, db, query)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name string
		make func(t *testing.T, path string)
		want error
		says []string
	}{
		{"a text file", write(strings.Repeat("# notes\n", 200)), store.ErrCorrupt, []string{"not a database", "move it aside", "backup"}},
		{"a short text file", write("hello"), store.ErrCorrupt, []string{"not a database", "move it aside"}},
		{"a damaged head", func(t *testing.T, path string) {
			fill(t, path, 3)
			overwrite(t, path, 0, make([]byte, 100))
		}, store.ErrCorrupt, []string{"not a database", "backup"}},
		{"damaged table definitions", func(t *testing.T, path string) {
			fill(t, path, 3)
			overwrite(t, path, 100, []byte(strings.Repeat("\xff", 3000)))
		}, store.ErrCorrupt, []string{"damaged", "backup"}},
		{"cut to half a page", func(t *testing.T, path string) {
			fill(t, path, 3)
			if err := os.Truncate(path, 2048); err != nil {
				t.Fatal(err)
			}
		}, store.ErrCorrupt, []string{"damaged", "backup"}},
		{"the database of another program", func(t *testing.T, path string) {
			execSQL(t, raw(t, path), `CREATE TABLE invoice (id INTEGER PRIMARY KEY)`)
		}, store.ErrCorrupt, []string{"another program", "name another file"}},
		{"an older database without its version", change(`DROP TABLE schema_version`), store.ErrCorrupt, []string{"incomplete", "backup"}},
		{"a version that is no number", change(`UPDATE schema_version SET version_id = 'x'`), store.ErrCorrupt, []string{"version cannot be read", "backup"}},
		{"a newer version", change(`INSERT INTO schema_version (version_id, is_applied) VALUES (99, 1)`), store.ErrNewer, []string{"version 99", "newer program", "backup"}},
		{"a table that is not there", change(`DROP TABLE call_record`), store.ErrUnusable, []string{"call_record", "backup"}},
		{"a folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, store.ErrUnusable, []string{"not a regular file", "name another"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tracon.db")
			tt.make(t, path)
			before := pictures(t, filepath.Dir(path))
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err == nil {
				_ = s.Close()
				t.Fatalf("Open took %s", tt.name)
			}
			if !errors.Is(err, tt.want) || !errors.Is(err, store.ErrUnusable) {
				t.Errorf("the error is %v, want one that wraps %q", err, tt.want)
			}
			for _, word := range append(tt.says, path) {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the error does not say %q: %v", word, err)
				}
			}
			if d := cmp.Diff(before, pictures(t, filepath.Dir(path))); d != "" {
				t.Errorf("a refused file was changed, or something was left beside it (-before +after):\n%s", d)
			}
		})
	}
}

func TestOpenNeedsAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(t.TempDir(), "nowhere"), link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, path, says string }{
		{"no folder", filepath.Join(t.TempDir(), "none", "tracon.db"), "make it"},
		{"a file for a folder", filepath.Join(file, "tracon.db"), "not a folder"},
		{"a link to nowhere", link, link},
		{"below a file", filepath.Join(file, "sub", "tracon.db"), file},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := sqlite.Open(t.Context(), tt.path, sqlite.Options{})
			if !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error is %v, want one that says %q", err, tt.says)
			}
		})
	}
	if _, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "tracon.db"), sqlite.Options{Readers: -1}); err == nil {
		t.Error("Open took -1 readers")
	}
}

// TestOpenMakes: the file is its owner's alone, whatever its name, and an empty
// file is a new one.
func TestOpenMakes(t *testing.T) {
	for _, name := range []string{"tracon.db", "a ?b#c%20&d='ü';.db"} {
		folder := filepath.Join(t.TempDir(), "ö %41?#")
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, name)
		s := open(t, path)
		appendTo(t, audit.NewLog(s), "entry")
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			in, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(e.Name(), name) || in.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v, want 0600 and a name that begins with %s", e.Name(), in.Mode(), name)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if entries, _ := os.ReadDir(folder); len(entries) != 1 {
			t.Errorf("%d files are left after Close, want 1", len(entries))
		}
	}
	path := filepath.Join(t.TempDir(), "tracon.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fill(t, path, 1)
	fill(t, path, 1)
}

// TestDamageFurtherIn: what Open does not read is named when it is read.
func TestDamageFurtherIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	fill(t, path, 1500)
	in, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	page := []byte(strings.Repeat("\xa5", 4096))
	for at := in.Size() / 2 / 4096 * 4096; at < in.Size(); at += 4096 {
		if _, err := f.WriteAt(page, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	defer s.Close()
	log := audit.NewLog(s)
	if _, err := log.Verify(t.Context(), nil); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), path) {
		t.Errorf("Verify says %v, want an error that wraps %q and names %s", err, store.ErrCorrupt, path)
	}
	for range 2 {
		_, err := log.Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Refusal})
		if !errors.Is(err, store.ErrPoisoned) || !errors.Is(err, store.ErrCorrupt) || !errors.Is(err, audit.ErrUnavailable) {
			t.Errorf("Append says %v, want an error that wraps %q and %q", err, store.ErrPoisoned, store.ErrCorrupt)
		}
	}
	if tip, err := s.Tip(t.Context()); err != nil || tip.Size() != 1500 {
		t.Errorf("the tip, which is not damaged, has %d entries, error %v", tip.Size(), err)
	}
}
