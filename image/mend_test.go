//go:build linux

package image

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tracon-go/tracon/bundle"
)

// What was altered at rest is replaced by an import of the same, and not while
// somebody has it.
func TestMended(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(dir string) error
	}{
		{"a byte", func(d string) error {
			f := d + "/root/usr/bin/run"
			info, err := os.Stat(f)
			return errors.Join(err, os.Chmod(f, 0o755), os.WriteFile(f, []byte("#!bad\n"), 0o755), os.Chmod(f, 0o555), os.Chtimes(f, info.ModTime(), info.ModTime()))
		}},
		{"a file that nobody may read", func(d string) error { return os.Chmod(d+"/root/usr/bin/run", 0) }},
		{"a folder that nobody may read", func(d string) error { return os.Chmod(d+"/root/usr", 0) }},
		{"a root that can be written to", func(d string) error { return os.Chmod(d+"/root", 0o755) }},
		{"a root that nobody may read", func(d string) error { return os.Chmod(d+"/root", 0) }},
		{"a file more", func(d string) error {
			return errors.Join(os.Chmod(d+"/root/empty", 0o755), os.WriteFile(d+"/root/empty/more", nil, 0o444), os.Chmod(d+"/root/empty", 0o555))
		}},
		{"no root", func(d string) error {
			return errors.Join(os.Chmod(d+"/root", 0o755), os.Rename(d+"/root", d+"/other"))
		}},
		{"no manifest", func(d string) error { return os.Remove(d + "/manifest") }},
		{"another manifest", func(d string) error {
			return errors.Join(os.Chmod(d+"/manifest", 0o600), os.WriteFile(d+"/manifest", []byte(manifestDomain), 0o400))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, dir := newStore(t)
			data := archive(t, small...)
			made := take(t, s, data)
			if err := tc.change(filepath.Join(dir, made.Digest.Hex())); err != nil {
				t.Fatal(err)
			}
			if err := s.Verify(t.Context(), made.Digest); !errors.Is(err, ErrDamaged) {
				t.Errorf("verifying says %v, want ErrDamaged", err)
			}
			if _, err := s.ImportTar(t.Context(), bytes.NewReader(data), Limits{}); !errors.Is(err, ErrInUse) || !errors.Is(err, ErrDamaged) {
				t.Errorf("while it is held an import says %v, want ErrInUse and ErrDamaged", err)
			}
			made.Image.Close()
			again := take(t, s, data)
			if err := s.Verify(t.Context(), again.Digest); err != nil || !cmp.Equal(again.Info, made.Info) {
				t.Errorf("imported again it is %+v, %v", again.Info, err)
			}
			again.Image.Close()
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("there are %v, %v; want one image", left, err)
			}
		})
	}
}

// Whether an image is wanted is asked when nobody else can have it any more: a
// name that somebody gave it until then keeps it.
func TestPruneAsksLast(t *testing.T) {
	s, _ := newStore(t)
	data := archive(t, small...)
	made := take(t, s, data)
	made.Image.Close()
	prune := func(t *testing.T, keep func(asked int) bool) (asked int, gone []bundle.Digest) {
		t.Helper()
		gone, err := s.Prune(func(bundle.Digest) bool { asked++; return keep(asked) })
		if err != nil {
			t.Error(err)
		}
		return asked, gone
	}
	// Named between the two questions, and let go of.
	asked, gone := prune(t, func(asked int) bool {
		if asked == 1 {
			return false
		}
		if _, err := s.Image(made.Digest); !errors.Is(err, ErrInUse) {
			t.Errorf("when it is asked last, opening says %v, want ErrInUse", err)
		}
		if err := s.Verify(t.Context(), made.Digest); !errors.Is(err, ErrInUse) {
			t.Errorf("when it is asked last, verifying says %v, want ErrInUse", err)
		}
		return true
	})
	if asked != 2 || len(gone) > 0 {
		t.Errorf("asked %d times and removed %v, want 2 and none", asked, gone)
	}
	// Imported again between the two, and not named yet.
	var importer *Import
	asked, gone = prune(t, func(int) bool { importer = take(t, s, data); return false })
	if asked != 1 || len(gone) > 0 {
		t.Errorf("with an importer: asked %d times and removed %v, want 1 and none", asked, gone)
	}
	importer.Image.Close()
	if asked, gone = prune(t, func(int) bool { return false }); asked != 2 || len(gone) != 1 {
		t.Errorf("asked %d times and removed %v, want 2 and the image", asked, gone)
	}
}
