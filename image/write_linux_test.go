package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What is written of an image is what was imported: the archive has the same digest, and
// lacks what nobody wants.
func TestWriteTar(t *testing.T) {
	s, _ := newStore(t)
	made := take(t, s, archive(t, small...))
	i, err := s.Image(made.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	write := func(ctx context.Context, wants func(string) bool) ([]byte, error) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		err := errors.Join(i.WriteTar(ctx, w, wants), w.Close())
		return b.Bytes(), err
	}
	whole, err := write(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := newStore(t)
	if again := take(t, other, whole); again.Digest.String() != smallDigest {
		t.Errorf("got %s, want %s", again.Digest, smallDigest)
	}
	part, err := write(t.Context(), func(p string) bool { return p != "usr/bin" && p != "empty" })
	if err != nil || bytes.Contains(part, []byte("again")) || bytes.Contains(part, []byte("empty")) || !bytes.Contains(part, []byte("usr/share/text")) {
		t.Errorf("a part: %v, %q", err, part)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := write(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A file that was altered at rest is told, and no link in its place is followed.
func TestWriteTarDamaged(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(file string) error
	}{
		{"a byte", func(f string) error { return os.WriteFile(f, []byte("tExt"), 0o444) }},
		{"longer", func(f string) error { return os.WriteFile(f, []byte("text and more"), 0o444) }},
		{"shorter", func(f string) error { return os.WriteFile(f, []byte("tex"), 0o444) }},
		{"missing", os.Remove},
		{"a link", func(f string) error {
			return errors.Join(os.WriteFile(filepath.Dir(f)+"/other", []byte("text"), 0o444), os.Remove(f), os.Symlink("other", f))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, dir := newStore(t)
			made := take(t, s, archive(t, small...))
			root := filepath.Join(dir, made.Digest.Hex(), rootName)
			if err := errors.Join(os.Chmod(root+"/usr/share", 0o755), os.Chmod(root+"/usr/share/text", 0o644), tc.change(root+"/usr/share/text")); err != nil {
				t.Fatal(err)
			}
			i, err := s.Image(made.Digest)
			if err != nil {
				t.Fatal(err)
			}
			defer i.Close()
			if err := i.WriteTar(t.Context(), tar.NewWriter(new(bytes.Buffer)), nil); !errors.Is(err, ErrDamaged) {
				t.Errorf("got %v", err)
			}
		})
	}
}
