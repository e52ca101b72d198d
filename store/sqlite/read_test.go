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
