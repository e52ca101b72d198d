//go:build unix

package ownfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tracon-go/tracon/internal/ownfile"
)

// B7: whatever somebody puts where a file of the program's own stands, be it a link
// to another file or a pipe without another end, is refused at once: nothing is
// read from it, written to it or waited for.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(path string) error{
		"a link":            func(path string) error { return os.Symlink(victim, path) },
		"a link to nothing": func(path string) error { return os.Symlink(filepath.Join(dir, "made"), path) },
		"a pipe":            func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a folder":          func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		path := filepath.Join(dir, name)
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		_, read := ownfile.Read(path, 100)
		_, private := ownfile.ReadPrivate(path, 100)
		_, there := ownfile.TryLockThere(path)
		_, lock := ownfile.TryLock(path)
		for what, err := range map[string]error{"Read": read, "ReadPrivate": private, "TryLockThere": there, "TryLock": lock, "Append": ownfile.Append(path, []byte("x"))} {
			if err == nil || !errors.Is(err, ownfile.ErrKind) && name != "a folder" {
				t.Errorf("%s of %s: got %v, want ErrKind", what, name, err)
			}
		}
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "kept" {
		t.Errorf("what the link leads to holds %q, %v", text, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "made")); err == nil {
		t.Error("a file was made behind a link")
	}
}

// What stands in a file stays when something is added; Probe leaves nothing where
// it can be removed, and tells of a folder to which nothing can be added.
func TestAppend(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	want := ""
	for _, text := range []string{"one", "", strings.Repeat("x", 1<<16)} {
		if err := ownfile.Append(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		want += text
		if got, err := ownfile.ReadPrivate(path, 1<<20); err != nil || string(got) != want {
			t.Errorf("it holds %d bytes, %v; want %d", len(got), err, len(want))
		}
	}
	if err := ownfile.Probe(dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("in the folder are %v, %v", left, err)
	}
	for _, bad := range []string{path, filepath.Join(dir, "none")} {
		if err := ownfile.Probe(bad); err == nil {
			t.Errorf("something was added to %s", bad)
		}
	}
}
