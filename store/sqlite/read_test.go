package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/sqlite"
)

// TestOpenToReadRefuses: who reads makes nothing, and brings nothing to this version.
func TestOpenToReadRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(t *testing.T, path string)
		want error
	}{
		{"nothing", func(*testing.T, string) {}, store.ErrUnusable},
		{"an empty file", func(t *testing.T, path string) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, store.ErrUnusable},
		{"an older version", func(t *testing.T, path string) {
			version1(t, path, filepath.Join(t.TempDir(), "full.db"))
		}, store.ErrOlder},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tracon.db")
			tt.make(t, path)
			before := pictures(t, filepath.Dir(path))
			s, err := sqlite.OpenToRead(t.Context(), path, sqlite.Options{})
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("OpenToRead says %v, want %v", err, tt.want)
			}
			if d := cmp.Diff(before, pictures(t, filepath.Dir(path))); d != "" {
				t.Errorf("the folder was changed (-before +after):\n%s", d)
			}
		})
	}
}

// TestOpenToReadInUse: who reads a store that others write sees what they write, and
// cannot write itself.
func TestOpenToReadInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	writer := open(t, path)
	defer writer.Close()
	reader, err := sqlite.OpenToRead(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	appendTo(t, audit.NewLog(writer), "one")
	if n := verified(t, audit.NewLog(reader)); n != 1 {
		t.Errorf("the log has %d entries for who reads, want 1", n)
	}
	if _, err := audit.NewLog(reader).Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Refusal}); !errors.Is(err, store.ErrPoisoned) {
		t.Errorf("an entry written by who reads: %v, want store.ErrPoisoned", err)
	}
	if reader.Copied() {
		t.Error("a store that may be written was copied")
	}
}

// TestReadLeavesTheLog: B7, a copy that may be written is evidence too. What stands in
// its write-ahead log is read, and stays there: neither file changes, whether the index
// of the log was copied with them or not.
func TestReadLeavesTheLog(t *testing.T) {
	for _, tt := range []struct {
		name string
		ends []string
		copy bool
	}{
		{"a snapshot of the file and its log", []string{"", "-wal"}, true},
		{"and of the index of that", []string{"", "-wal", "-shm"}, false},
		{"of the file alone", []string{""}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from, folder := filepath.Join(t.TempDir(), "tracon.db"), t.TempDir()
			t.Setenv("TMPDIR", t.TempDir())
			writer := open(t, from)
			log := audit.NewLog(writer)
			for i := range 3 {
				appendTo(t, log, string(rune('a'+i)))
			}
			want := uint64(3)
			if len(tt.ends) == 1 {
				if err := writer.Close(); err != nil {
					t.Fatal(err)
				}
			} else {
				defer writer.Close()
			}
			kept := map[string][]byte{}
			for _, end := range tt.ends {
				data, err := os.ReadFile(from + end)
				if err != nil || len(data) == 0 {
					t.Fatalf("%q: %d bytes, %v", end, len(data), err)
				}
				kept["tracon.db"+end] = data
				if err := os.WriteFile(filepath.Join(folder, "tracon.db"+end), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			reader, err := sqlite.OpenToRead(t.Context(), filepath.Join(folder, "tracon.db"), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if n := verified(t, audit.NewLog(reader)); n != want || reader.Copied() != tt.copy {
				t.Errorf("it has %d entries, copied %v; want %d, %v", n, reader.Copied(), want, tt.copy)
			}
			if err := reader.Close(); err != nil {
				t.Error(err)
			}
			for _, name := range []string{"tracon.db", "tracon.db-wal"} {
				now, err := os.ReadFile(filepath.Join(folder, name))
				if kept[name] == nil && errors.Is(err, os.ErrNotExist) {
					continue
				}
				if err != nil || string(now) != string(kept[name]) {
					t.Errorf("%s was changed: %d bytes, %v; before %d", name, len(now), err, len(kept[name]))
				}
			}
		})
	}
}
