package ownfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tracon-go/tracon/internal/ownfile"
)

// A file is whole, private and replaced in one step; nothing is left beside it.
func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := ownfile.MakeFolder(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "f")
	for _, text := range []string{"one", "", strings.Repeat("x", 1<<20), "two"} {
		if err := ownfile.Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := ownfile.ReadPrivate(path, 1<<20)
		if err != nil || string(got) != text {
			t.Errorf("got %d bytes, %v; want %d", len(got), err, len(text))
		}
	}
	if _, err := ownfile.Read(path, 2); err == nil {
		t.Error("a file over the limit is read")
	}
	if err := ownfile.Write(filepath.Join(dir, "none", "f"), nil); err == nil {
		t.Error("a file in no folder is written")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("in the folder are %v, %v", left, err)
	}
	for range 2 {
		if err := ownfile.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// Fail closed: a secret that others may read is refused, and so is one behind a link.
func TestReadPrivateRefuses(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it has no such bits
	}
	path := filepath.Join(t.TempDir(), "f")
	if err := ownfile.Write(path, []byte("secret")); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := ownfile.ReadPrivate(path, 100); !errors.Is(err, ownfile.ErrPrivate) {
			t.Errorf("mode %o: got %v, want ErrPrivate", mode, err)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, path+".link"); err != nil {
		t.Fatal(err)
	}
	if _, err := ownfile.ReadPrivate(path+".link", 100); !errors.Is(err, ownfile.ErrKind) {
		t.Errorf("a link: got %v, want ErrKind", err)
	}
	dir := filepath.Dir(path)
	for mode, bad := range map[os.FileMode]bool{0o700: false, 0o755: false, 0o770: true, 0o702: true, 0o777: true} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := ownfile.CheckFolder(dir); bad != errors.Is(err, ownfile.ErrPrivate) {
			t.Errorf("a folder of mode %o: got %v", mode, err)
		}
	}
}

// One holds the lock at a time, in one process too.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var inside atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				l, err := ownfile.WaitLock(context.Background(), path)
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) > 1 {
					t.Error("two are inside")
				}
				runtime.Gosched()
				inside.Add(-1)
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	held, err := ownfile.TryLock(path)
	if err != nil || held == nil {
		t.Fatalf("a free lock: %v, %v", held, err)
	}
	if l, err := ownfile.TryLock(path); l != nil || err != nil {
		t.Errorf("a held lock: %v, %v", l, err)
	}
	gaveUp := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gaveUp)
	if _, err := ownfile.WaitLock(ctx, path); !errors.Is(err, gaveUp) {
		t.Errorf("waiting: got %v, want the cause", err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
}
