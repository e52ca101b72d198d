package sqlite_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
)

// A content that is read for a run is copied twice in all: by the driver, one file
// at a time, and into the bundle. Each more would be as large as the skill, for each
// call that waits.
func TestImportedCopies(t *testing.T) {
	const size, n = 256 << 10, 32
	var list []bundle.File
	for i := range n {
		data := make([]byte, size)
		data[0] = byte(i)
		list = append(list, bundle.File{Path: fmt.Sprint("f", i), Data: data})
	}
	c, err := bundle.New(list, nil, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, filepath.Join(t.TempDir(), "tracon.db"))
	defer s.Close()
	_, err = audit.NewLog(s).Commit(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Imported}, func(ctx context.Context, p audit.Pending) error {
		return s.AddVersion(ctx, version("1", "skill", c), c, "", p)
	})
	if err != nil {
		t.Fatal(err)
	}
	least := uint64(math.MaxUint64) // what else runs can only add
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, b, err := s.Imported(t.Context(), "acme", "skill"); err != nil || b.Digest() != c.Digest() {
			t.Fatal(b.Digest(), err)
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	if least < n*size || least > n*size*5/2 {
		t.Errorf("reading a skill of %d bytes allocates %d", n*size, least)
	}
}
