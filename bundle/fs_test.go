package bundle_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/tracon-go/tracon/bundle"
)

func TestFS(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []bundle.File
	}{
		{"empty", nil},
		{"one file", []bundle.File{file("a", "1")}},
		{"folders", []bundle.File{file("SKILL.md", "# x\n"), file("scripts/run.py", "print(1)"), file("scripts/lib/a.py", ""), file("a-b", ""), file("a/b", "2"), file("a.b", "")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := mustNew(t, "d", tt.files...)
			if err := fstest.TestFS(b.FS(), b.Paths()...); err != nil {
				t.Error(err)
			}
			var walked []string
			err := fs.WalkDir(b.FS(), ".", func(p string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					walked = append(walked, p)
				}
				return err
			})
			slices.Sort(walked)
			if err != nil || !slices.Equal(walked, b.Paths()) {
				t.Errorf("walked %q (%v), want %q", walked, err, b.Paths())
			}
		})
	}
}

func TestFSOfTheZeroBundle(t *testing.T) {
	if err := fstest.TestFS(bundle.Bundle{}.FS()); err != nil {
		t.Error(err)
	}
}

// The file system opens exact names of the bundle and nothing else.
func TestFSOpensNothingElse(t *testing.T) {
	fsys := mustNew(t, "", file("a/b", "")).FS()
	for _, name := range []string{"", "/", "/a/b", "../a/b", "a/../a/b", "a/b/", "a/b/c", "A/b", "a//b", "c"} {
		if f, err := fsys.Open(name); err == nil || f != nil {
			t.Errorf("Open(%q) opens something", name)
		} else if pe, ok := errors.AsType[*fs.PathError](err); !ok || pe.Path != name {
			t.Errorf("Open(%q): got %v, want a PathError of the name", name, err)
		}
	}
}
