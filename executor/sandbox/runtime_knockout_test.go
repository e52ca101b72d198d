//go:build linux && (amd64 || arm64)

package sandbox

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
	"golang.org/x/sys/unix"
)

// twoImages returns a store with two images that differ.
func twoImages(t *testing.T) (s *image.Store, list [2]*image.Image) {
	t.Helper()
	s = image.New(filepath.Join(t.TempDir(), "images"))
	t.Cleanup(func() { // no mode lets an ordinary user remove its files as they are
		if _, err := s.Prune(func(bundle.Digest) bool { return false }); err != nil {
			t.Error(err)
		}
	})
	for n, text := range []string{"one", "two"} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, name := range []string{"usr/bin/sh", "usr/share/x", "etc/x"} {
			if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o755}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		made, err := s.ImportTar(t.Context(), &b, image.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { made.Image.Close() })
		list[n] = made.Image
	}
	return s, list
}

// A box that shows another image than its script's is refused before the script
// starts: that is seen from outside, by the folders alone too.
func TestAnotherImageIsSeen(t *testing.T) {
	s, list := twoImages(t)
	other := fmt.Sprintf("/proc/self/fd/%d", list[1].Root().Fd())
	path, err := os.Readlink(other)
	if err != nil {
		t.Fatal(err)
	}
	for dir := path; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if dir == path {
			continue
		}
		if err := os.Chmod(dir, 0o755); err != nil { // a box's first process goes there by its path
			t.Fatal(err)
		}
	}
	swap := func(s *setup) {
		s.alter = func(p *program) {
			if p.base != frameBase {
				return
			}
			p.call(unix.SYS_CHDIR, p.text(path))
			last := len(p.steps) - 1
			p.steps = append([]*step{p.steps[last]}, p.steps[:last]...)
		}
	}
	blind := func(s *setup) {
		swap(s)
		s.inspect = func(*expectation, int) (*posture, error) { return &posture{}, nil }
	}
	for _, tc := range []struct {
		name   string
		change func(*setup)
		says   string
	}{
		{"its own", func(*setup) {}, "exec format error"}, // it was let to start, and is no program
		{"another", swap, "not the interpreter"},
		{"another, and nothing else is looked at", blind, "not the runtime's"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, err := open(Config{Runtime: filepath.Join(t.TempDir(), "run"), Images: s}, func(*setup) {})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			tc.change(e.setup) // when all was proved
			_, err = e.run(t.Context(), job{
				extension: "sh", argv: []string{"sh"}, timeout: time.Minute, output: 1 << 10, limits: e.limit(8),
				interpreter: gate.Interpreter{Name: "one", Path: "/usr/bin/sh", Digest: bundle.Sum([]byte("one")), Image: list[0].Digest()},
			})
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}
