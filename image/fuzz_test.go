//go:build linux

package image

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/tracon-go/tracon/bundle"
)

// No archive writes outside the root, and what is accepted verifies.
func FuzzTar(f *testing.F) {
	f.Add(archive(f, small...))
	f.Add(archive(f, item{name: "a", target: "/etc", kind: '2'}, item{name: "a/x", content: "x"}))
	f.Add(archive(f, item{name: "../x", content: "x"}))
	f.Add(archive(f, item{name: "a", target: "../../x", kind: '1'}))
	outside := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		dir, err := os.MkdirTemp(outside, "")
		if err != nil {
			t.Fatal(err)
		}
		store, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		defer removeAll(store, ".")
		if err := store.Mkdir(rootName, 0o700); err != nil {
			t.Fatal(err)
		}
		root, err := store.OpenRoot(rootName)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		u := newUnpacker(root, Limits{Entries: 100, Bytes: 1 << 20})
		err = u.readTar(t.Context(), bytes.NewReader(data))
		if beside, lerr := list(store, "."); lerr != nil || len(beside) != 1 {
			t.Errorf("beside the root there is %q, %v", beside, lerr)
		}
		if err != nil {
			return
		}
		if err := u.finish(); err != nil {
			t.Fatal(err)
		}
		got := &tree{nodes: map[string]node{}}
		if err := got.look(t.Context(), root, ".", nil); err != nil {
			t.Fatal(err)
		}
		if p, differs := u.tree.differs(got); differs {
			t.Errorf("what was accepted is not what is there: %q", p)
		}
		if parsed, err := parseManifest(u.tree.manifest()); err != nil || u.tree.entries < len(parsed.nodes) {
			t.Errorf("its manifest: %v", err)
		}
	})
}

// A manifest that is read is the one that would be written.
func FuzzManifest(f *testing.F) {
	t := newTree(Limits{})
	t.nodes["a"] = node{kind: folder}
	t.nodes["a/b"] = node{kind: file, exec: true, size: 1, sum: bundle.Sum([]byte("x"))}
	t.nodes["l"] = node{kind: link, target: "/a"}
	f.Add(t.manifest())
	f.Add([]byte(manifestDomain))
	f.Fuzz(func(t *testing.T, b []byte) {
		parsed, err := parseManifest(b)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
			return
		}
		if got := parsed.manifest(); !bytes.Equal(got, b) {
			t.Errorf("read %q, would write %q", b, got)
		}
	})
}
