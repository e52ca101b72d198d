package sqlite_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/store/sqlite"
)

// folderOf returns a skill of n files of 4 KiB, no two alike, and none like those
// of another seed.
func folderOf(b *testing.B, n, seed int) bundle.Bundle {
	b.Helper()
	list := make([]bundle.File, n)
	for i := range list {
		data := make([]byte, 4<<10)
		binary.LittleEndian.PutUint64(data, uint64(seed)<<32|uint64(i))
		list[i] = bundle.File{Path: fmt.Sprintf("assets/%02d/file-%04d.bin", i%40, i), Data: data}
	}
	c, err := bundle.New(list, nil, bundle.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func importInto(b *testing.B, s *sqlite.Store, id, skill string, c bundle.Bundle) {
	b.Helper()
	_, err := audit.NewLog(s).Commit(b.Context(), audit.Entry{Tenant: "acme", Kind: audit.Imported}, func(ctx context.Context, p audit.Pending) error {
		return s.AddVersion(ctx, version(id, skill, c), c, "", p)
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkImport keeps a new skill whose files were never seen, with its entry,
// durably. A skill of 2,000 files must take less than a second.
func BenchmarkImport(b *testing.B) {
	for _, n := range []int{5, 2000} {
		b.Run(fmt.Sprint("files=", n), func(b *testing.B) {
			s := bench(b)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				c := folderOf(b, n, i)
				b.StartTimer()
				importInto(b, s, fmt.Sprint(i), fmt.Sprint("skill-", i), c)
			}
		})
	}
}

// BenchmarkImported reads what the gate "content" reads of an imported skill for
// each call: every byte, hashed again.
func BenchmarkImported(b *testing.B) {
	for _, n := range []int{5, 2000} {
		b.Run(fmt.Sprint("files=", n), func(b *testing.B) {
			s := bench(b)
			c := folderOf(b, n, 0)
			importInto(b, s, "1", "skill", c)
			_, size := c.Size()
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := s.Imported(context.Background(), "acme", "skill"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkImportedFile looks for a name as the gate "name" does for each call.
func BenchmarkImportedFile(b *testing.B) {
	s := bench(b)
	importInto(b, s, "1", "skill", folderOf(b, 2000, 0))
	b.ReportAllocs()
	for b.Loop() {
		_, has, err := s.ImportedFile(context.Background(), "acme", "skill", "assets/07/file-0007.bin")
		if err != nil || !has {
			b.Fatal(has, err)
		}
	}
}
