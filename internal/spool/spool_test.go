package spool_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/spool"
)

// B1: what was put aside is the bundle of the same files, byte for byte, and each
// can be read as often as one likes, by many at once.
func TestSpoolIsBundle(t *testing.T) {
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		var files []bundle.File
		for i, data := range rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 8), 0, 12).Draw(t, "files") {
			files = append(files, bundle.File{Path: fmt.Sprintf("d%d/f%d", i%3, i), Data: data})
		}
		decl := rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "declaration")
		want, err := bundle.New(files, decl, bundle.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		s := spool.New(folder, bundle.Limits{})
		defer s.Close()
		var buf []byte // used again for each file, as a reader does
		for _, f := range rapid.Permutation(files).Draw(t, "order") {
			buf = append(buf[:0], f.Data...)
			if err := s.Add(f.Path, buf); err != nil {
				t.Fatal(err)
			}
			clear(buf)
		}
		c, err := s.Content(decl)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Listing().Digest(); got != want.Digest() {
			t.Fatalf("the digest is %s, want %s", got, want.Digest())
		}
		var wg sync.WaitGroup
		loaded := make([]bundle.Bundle, 2)
		for i := range loaded {
			wg.Go(func() {
				var err error
				if loaded[i], err = bundle.Load(c); err != nil {
					t.Errorf("Load: %v", err)
				}
			})
		}
		wg.Wait()
		for _, got := range loaded {
			if d := cmp.Diff(want.Files(), got.Files()); d != "" {
				t.Errorf("the files (-want +got):\n%s", d)
			}
		}
		if _, err := c.ReadFile("never"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file that is not there: err = %v", err)
		}
	})
}

// Nobody else reads what is put aside, and nothing is left of it, even when the
// process dies: the file has no name.
func TestSpoolLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	entries := func() (n int) {
		t.Helper()
		list, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	s := spool.New(folder, bundle.Limits{})
	for i := range 3 {
		if err := s.Add(fmt.Sprint("f", i), []byte("data")); err != nil {
			t.Fatal(err)
		}
		if n := entries(); n != 0 && runtime.GOOS != "windows" {
			t.Errorf("while it is in use the folder has %d entries", n)
		}
	}
	c, err := s.Content(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if n := entries(); n != 0 {
		t.Errorf("after it was closed the folder has %d entries", n)
	}
	if data, err := c.ReadFile("f1"); err == nil {
		t.Errorf("after it was closed a file has %d bytes and no error", len(data))
	}
	empty := spool.New(filepath.Join(folder, "never"), bundle.Limits{})
	if err := errors.Join(empty.Add("e", nil), empty.Close()); err != nil {
		t.Errorf("without a byte to keep: %v", err)
	}
}

// Limits hold file by file, before a byte is written; what cannot be in a bundle is
// a fault of the content, and a folder that cannot be written is none.
func TestSpoolRefuses(t *testing.T) {
	limits := bundle.Limits{FileBytes: 4, TotalBytes: 6, Files: 3}
	for _, tt := range []struct {
		name  string
		files []string // paths, each with its own size as data
		last  []byte
		want  error
	}{
		{"what fits", []string{"a"}, []byte("1234"), nil},
		{"a file too large", []string{"a"}, []byte("12345"), bundle.ErrLimit},
		{"too much in all", []string{"a", "b", "c"}, []byte("12345"), bundle.ErrLimit},
		{"too many files", []string{"a", "b", "c", "d"}, nil, bundle.ErrLimit},
		{"a bad path", []string{"../a"}, nil, bundle.ErrPath},
		{"a name twice", []string{"a", "a"}, nil, bundle.ErrPath},
		{"twins", []string{"a", "A"}, nil, bundle.ErrTwins},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := spool.New(t.TempDir(), limits)
			defer s.Close()
			var err error
			for i, path := range tt.files {
				data := []byte{byte(i)}
				if i == len(tt.files)-1 {
					data = tt.last
				}
				if err = s.Add(path, data); err != nil {
					break
				}
			}
			if err == nil {
				_, err = s.Content(nil)
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("err = %v, want %v", err, tt.want)
			}
		})
	}
	s := spool.New(filepath.Join(t.TempDir(), "never"), bundle.Limits{})
	defer s.Close()
	if err := s.Add("a", bytes.Repeat([]byte("x"), 10)); err == nil || errors.Is(err, bundle.ErrContent) {
		t.Errorf("in a folder that is not there: err = %v", err)
	}
	if c, err := s.Content(nil); err == nil || c != nil {
		t.Errorf("and then: %v, err = %v", c, err)
	}
}
