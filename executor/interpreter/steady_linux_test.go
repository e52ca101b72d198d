package interpreter

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracon-go/tracon/bundle"
)

// R11: a file that was given a second name while it was read is read again, and has the
// digest of its bytes; one that changes each time it is read has none.
func TestSteady(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes int // how many of the readings are disturbed
		steady  bool
	}{
		{"at rest", 0, true}, {"disturbed once", 1, true}, {"all but the last time", readings - 1, true}, {"each time", readings, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "x")
			if err := os.WriteFile(path, []byte("the bytes"), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			n := 0
			id, d, err := steady(f, func(f *os.File) (bundle.Digest, error) {
				if n++; n <= tt.changes {
					if err := os.WriteFile(path, fmt.Appendf(nil, "other bytes, %0*d", n, n), 0o600); err != nil {
						t.Error(err)
					}
				}
				return hash(f)
			})
			if err != nil || (id != identity{}) != tt.steady {
				t.Fatalf("got %v, %v", id, err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if want := bundle.Sum(text); tt.steady && d != want || !tt.steady && d != (bundle.Digest{}) {
				t.Errorf("got %v, want %v", d, want)
			}
		})
	}
}
