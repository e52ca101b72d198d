//go:build linux

package oci_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/image/oci"
	ic "github.com/tracon-go/tracon/internal/imagecase"
)

// TM-23: an archive with an image in layers is no tree of files: whatever its paths and
// links say, nothing is written but copies of a name of our own, and nothing is read but
// those.
func TestHostileArchives(t *testing.T) {
	p := ic.Pack(ic.Options{}, base, top)
	hex := strings.TrimPrefix(ic.Digest(p.Config), "sha256:")
	version := ic.Entry{Name: "oci-layout", Content: `{"imageLayoutVersion":"1.0.0"}`}
	index := func(d ic.Document) ic.Entry {
		return ic.Entry{Name: "index.json", Content: string(ic.Document{"schemaVersion": 2, "manifests": []any{d}}.JSON())}
	}
	described := ic.Describe(p.MediaType, p.Root)
	list := func(text string) ic.Entry { return ic.Entry{Name: "manifest.json", Content: text} }
	config := ic.Entry{Name: hex + ".json", Content: string(p.Config)}
	saved := func(config, layer string) ic.Entry {
		return list(fmt.Sprintf(`[{"Config":%q,"RepoTags":["a"],"Layers":[%q,"b/layer.tar"]}]`, config, layer))
	}
	one, two := ic.Entry{Name: "a/layer.tar", Content: string(base)}, ic.Entry{Name: "b/layer.tar", Content: string(top)}
	var many []ic.Entry
	for n := range 4097 {
		many = append(many, ic.Entry{Name: fmt.Sprintf("blobs/sha256/%d", n), Kind: tar.TypeDir})
	}
	for _, tc := range []struct {
		name    string
		entries []ic.Entry
		says    string
	}{
		{"nothing but a layout", []ic.Entry{version}, "no index.json"},
		{"another version", []ic.Entry{{Name: "oci-layout", Content: `{"imageLayoutVersion":"2.0.0"}`}, index(described)}, "version"},
		{"an index that is no JSON", []ic.Entry{version, {Name: "index.json", Content: "{"}}, "index.json"},
		{"an index with a name twice", []ic.Entry{version, {Name: "index.json", Content: `{"manifests":[],"manifests":[]}`}}, "index.json"},
		{"an index that is too large", []ic.Entry{version, {Name: "index.json", Content: strings.Repeat(" ", oci.MaxDocument+1)}}, "more than"},
		{"an index without images", []ic.Entry{version, {Name: "index.json", Content: `{"schemaVersion":2}`}}, "no image"},
		{"a manifest that is not there", []ic.Entry{version, index(described)}, "not there"},
		{"a manifest behind a link out", []ic.Entry{version, index(described), {Name: "blobs/sha256/" + strings.TrimPrefix(p.Digest(), "sha256:"), Kind: tar.TypeSymlink, Target: "/etc/passwd"}}, "not there"},
		{"a manifest behind a loop", []ic.Entry{version, index(described), {Name: "blobs/sha256/" + strings.TrimPrefix(p.Digest(), "sha256:"), Kind: tar.TypeSymlink, Target: strings.TrimPrefix(p.Digest(), "sha256:")}}, "not there"},
		{"a manifest that is a pipe", []ic.Entry{version, index(described), {Name: "blobs/sha256/" + strings.TrimPrefix(p.Digest(), "sha256:"), Kind: tar.TypeFifo}}, "no file"},
		{"a file twice", []ic.Entry{version, index(described), index(described)}, "twice"},
		{"a file and a link", []ic.Entry{version, {Name: "index.json", Kind: tar.TypeSymlink, Target: "x"}, index(described)}, "twice"},
		{"one file by two spellings", []ic.Entry{version, index(described), {Name: "./x/../index.json"}}, "twice"},
		{"a long path", []ic.Entry{version, {Name: "blobs/" + strings.Repeat("a", 600)}}, "512 bytes"},
		{"too many files", many, "4096 files"},

		{"no list", []ic.Entry{config, one, two}, "manifest.json"},
		{"a list of none", []ic.Entry{config, list("[]")}, "0 images"},
		{"a list of two", []ic.Entry{config, list(`[{"RepoTags":["a"]},{"RepoTags":["b"]}]`)}, "2 images"},
		{"a list that is none", []ic.Entry{config, list("{}")}, "manifest.json"},
		{"a configuration that is not there", []ic.Entry{config, saved("x.json", "a/layer.tar"), one, two}, "no "},
		{"a configuration of the host", []ic.Entry{config, saved("/etc/passwd", "a/layer.tar"), one, two}, "no "},
		{"another configuration", []ic.Entry{{Name: hex + ".json", Content: "{}"}, saved(hex+".json", "a/layer.tar"), one, two}, "is sha256:"},
		{"a layer that is not there", []ic.Entry{config, saved(hex+".json", "c/layer.tar"), one, two}, "no "},
		{"a layer of the host", []ic.Entry{config, saved(hex+".json", "../../etc/passwd"), one, two}, "no "},
		{"a layer behind a link out", []ic.Entry{config, saved(hex+".json", "c"), {Name: "c", Kind: tar.TypeSymlink, Target: "/etc/passwd"}, one, two}, "no "},
		{"another layer", []ic.Entry{config, saved(hex+".json", "a/layer.tar"), {Name: "a/layer.tar", Content: string(flat)}, two}, "and its image says"},
		{"a layer too few", []ic.Entry{config, list(`[{"Config":"` + hex + `.json","Layers":["a/layer.tar"]}]`), one}, "and there are 1"},
		{"no layers", []ic.Entry{config, list(`[{"Config":"` + hex + `.json"}]`)}, "0 layers"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, dir := newStore(t)
			made, err := oci.ImportArchive(t.Context(), s, bytes.NewReader(ic.Tar(tc.entries...)), oci.Options{})
			if err == nil {
				made.Image.Close()
			}
			if !errors.Is(err, image.ErrContent) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("err = %v, want ErrContent with %q", err, tc.says)
			}
			nothing(t, dir)
		})
	}
}

// What is more than the limits, breaks off or was stopped leaves nothing and says so.
func TestArchiveBounds(t *testing.T) {
	data := ic.Saved(false, map[string]ic.Packed{"a": ic.Pack(ic.Options{}, base, top)}, map[string][][]byte{"a": {base, top}})
	s, dir := newStore(t)
	if _, err := oci.ImportArchive(t.Context(), s, bytes.NewReader(data), oci.Options{Limits: image.Limits{Bytes: 1000}}); !errors.Is(err, image.ErrContent) || !strings.Contains(err.Error(), "more than 1000 bytes") {
		t.Errorf("above the limit: %v", err)
	}
	for _, cut := range []int{1, 600, len(data) / 2} {
		if _, err := oci.ImportArchive(t.Context(), s, bytes.NewReader(data[:cut]), oci.Options{}); !errors.Is(err, image.ErrContent) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	broken := errors.New("the line is gone")
	if _, err := oci.ImportArchive(t.Context(), s, io.MultiReader(bytes.NewReader(data[:len(data)/2]), iotest.ErrReader(iotest.ErrTimeout)), oci.Options{}); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("a reader that fails: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	if _, err := oci.ImportArchive(ctx, s, bytes.NewReader(data), oci.Options{}); !errors.Is(err, broken) {
		t.Errorf("stopped: %v, want the cause", err)
	}
	nothing(t, dir)
}

// A layout in a folder is read below it alone, and what is no file is not waited for.
func TestHostileFolder(t *testing.T) {
	p := ic.Pack(ic.Options{}, base)
	layer := filepath.Join("blobs", "sha256", strings.TrimPrefix(ic.Digest(p.Layers[0]), "sha256:"))
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, p.Layers[0], 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(at string) error{
		"a link out":  func(at string) error { return os.Symlink(secret, at) },
		"a pipe":      func(at string) error { return syscall.Mkfifo(at, 0o600) },
		"a folder":    func(at string) error { return os.Mkdir(at, 0o700) },
		"not there":   func(string) error { return nil },
		"other bytes": func(at string) error { return os.WriteFile(at, []byte("other"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := newStore(t)
			from := layout(t, map[string]ic.Packed{"": p})
			if !oci.IsLayout(from) || oci.IsLayout(filepath.Join(from, "blobs")) {
				t.Error("which folder is a layout is not seen")
			}
			at := filepath.Join(from, layer)
			if err := errors.Join(os.Remove(at), put(at)); err != nil {
				t.Fatal(err)
			}
			if made, err := oci.ImportLayout(t.Context(), s, from, oci.Options{}); err == nil {
				made.Image.Close()
				t.Error("it was imported")
			}
			nothing(t, dir)
		})
	}
}

// TM-23: whatever an archive is, what comes of it is an image that verifies or an error,
// and nothing is left of an error.
func FuzzArchive(f *testing.F) {
	p := ic.Pack(ic.Options{Env: []string{"PATH=/x"}}, base, top)
	f.Add(flat)
	f.Add(ic.Saved(true, map[string]ic.Packed{"a": p}, map[string][][]byte{"a": {base, top}}))
	dir := f.TempDir()
	if err := ic.Layout(dir, map[string]ic.Packed{"": p}); err != nil {
		f.Fatal(err)
	}
	packed, err := ic.TarFolder(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	s, at := newStore(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		made, err := oci.ImportArchive(t.Context(), s, bytes.NewReader(data), oci.Options{Limits: image.Limits{Entries: 100, Bytes: 1 << 20}})
		if err != nil {
			if left, _ := os.ReadDir(at); len(left) > 0 {
				t.Errorf("there is still %v", left)
			}
			return
		}
		if err := made.Image.Verify(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if err := errors.Join(made.Image.Close(), s.Remove(made.Digest)); err != nil {
			t.Error(err)
		}
	})
}

// TM-23: whatever a manifest and a configuration are, what comes of them is an image or
// an error that names what is wrong.
func FuzzManifest(f *testing.F) {
	p := ic.Pack(ic.Options{}, base, top)
	f.Add(p.Root, p.Config)
	i := ic.Index(ic.TypeIndex, p)
	f.Add(i.Root, p.Config)
	s, _ := newStore(f)
	f.Fuzz(func(t *testing.T, manifest, config []byte) {
		parts := memory{}
		for d, b := range p.Blobs {
			parts[d] = b
		}
		parts[ic.Digest(manifest)], parts[ic.Digest(config)] = manifest, config
		for _, kind := range oci.MediaTypes() {
			made, err := fetch(t.Context(), s, parts, oci.Descriptor{MediaType: kind, Digest: ic.Digest(manifest), Size: int64(len(manifest))}, oci.Options{Limits: image.Limits{Entries: 100, Bytes: 1 << 20}})
			if err != nil {
				if !errors.Is(err, image.ErrContent) {
					t.Error(err)
				}
				continue
			}
			if err := errors.Join(made.Image.Close(), s.Remove(made.Digest)); err != nil {
				t.Error(err)
			}
		}
	})
}
