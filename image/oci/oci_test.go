//go:build linux

package oci_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/image/oci"
	ic "github.com/tracon-go/tracon/internal/imagecase"
)

func newStore(t testing.TB) (*image.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "images")
	s := image.New(dir)
	t.Cleanup(func() {
		if _, err := s.Prune(func(bundle.Digest) bool { return false }); err != nil {
			t.Error(err)
		}
		nothing(t, dir)
	})
	return s, dir
}

// nothing holds that nothing is left in a store.
func nothing(t testing.TB, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
		t.Errorf("case 40: there is still %v", left)
	}
}

func packZstd(data []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	defer w.Close()
	return w.EncodeAll(data, nil)
}

func plain(data []byte) []byte { return data }

// base and top are two layers, and flat is what they come to in one.
var (
	base = ic.Tar(ic.Entry{Name: "usr/bin/run", Content: "#!run\n", Mode: 0o755}, ic.Entry{Name: "usr/share/old", Content: "old"}, ic.Entry{Name: "bin", Kind: tar.TypeSymlink, Target: "usr/bin"})
	top  = ic.Tar(ic.Entry{Name: "bin/more", Content: "more", Mode: 0o755}, ic.Entry{Name: "usr/share/.wh.old"})
	flat = ic.Tar(ic.Entry{Name: "usr/share/", Kind: tar.TypeDir}, ic.Entry{Name: "usr/bin/run", Content: "#!run\n", Mode: 0o755}, ic.Entry{Name: "usr/bin/more", Content: "more", Mode: 0o755},
		ic.Entry{Name: "bin", Kind: tar.TypeSymlink, Target: "usr/bin"})
)

func archive(t *testing.T, s *image.Store, data []byte, o oci.Options) *image.Import {
	t.Helper()
	made, err := oci.ImportArchive(t.Context(), s, bytes.NewReader(data), o)
	if err != nil {
		t.Fatal(err)
	}
	made.Image.Close()
	return made
}

func layout(t *testing.T, images map[string]ic.Packed) string {
	t.Helper()
	dir := t.TempDir()
	if err := ic.Layout(dir, images); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TM-23: the same tree has the same digest however it comes: as a folder, in one archive
// or in layers, in a layout or as docker saves it, plain or compressed.
func TestSameDigestHoweverItComes(t *testing.T) {
	s, _ := newStore(t)
	want := archive(t, s, flat, oci.Options{}).Digest
	check := func(name string, made *image.Import, source string) {
		t.Helper()
		if made.Digest != want || made.Tree != want {
			t.Errorf("%s: %s, want %s", name, made.Digest, want)
		}
		if made.Source != source {
			t.Errorf("%s: from %q, want %q", name, made.Source, source)
		}
	}
	check("an archive with gzip", archive(t, s, ic.Gzip(flat), oci.Options{}), "")
	check("an archive with zstd", archive(t, s, packZstd(flat), oci.Options{}), "")
	for _, tc := range []struct {
		name    string
		options ic.Options
	}{
		{"OCI", ic.Options{}},
		{"Docker", ic.Options{Docker: true}},
		{"zstd", ic.Options{Compress: packZstd, Suffix: "+zstd"}},
		{"plain", ic.Options{Compress: plain}},
		{"compressed otherwise than it says", ic.Options{Compress: packZstd, Suffix: "+gzip"}},
		{"with what is not taken", ic.Options{Env: []string{"PYTHONPATH=/x", "PATH=" + image.SearchPath}, User: "app", Entrypoint: []string{"/evil"}}},
	} {
		p := ic.Pack(tc.options, base, top)
		dir := layout(t, map[string]ic.Packed{"": p})
		made, err := oci.ImportLayout(t.Context(), s, dir, oci.Options{})
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		made.Image.Close()
		check("a layout: "+tc.name, made, p.Digest())
		packed, err := ic.TarFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		check("a layout in an archive: "+tc.name, archive(t, s, packed, oci.Options{}), p.Digest())
		check("a layout in an archive with gzip: "+tc.name, archive(t, s, ic.Gzip(packed), oci.Options{}), p.Digest())
		if tc.options.User != "" && (made.Left != 3 || !strings.Contains(strings.Join(made.Skipped, "\n"), "PYTHONPATH") || !strings.Contains(strings.Join(made.Skipped, "\n"), "entrypoint") || !strings.Contains(strings.Join(made.Skipped, "\n"), "its user")) {
			t.Errorf("left out %q", made.Skipped)
		}
	}
	p := ic.Pack(ic.Options{}, base, top)
	for _, again := range []bool{false, true} {
		data := ic.Saved(again, map[string]ic.Packed{"app:1": p}, map[string][][]byte{"app:1": {base, top}})
		check("as docker saves it", archive(t, s, data, oci.Options{}), "app:1@"+ic.Digest(p.Config))
	}
	// A layer that comes twice is a link in what old versions wrote.
	twice := ic.Pack(ic.Options{}, base, top, top)
	data := ic.Saved(true, map[string]ic.Packed{"app:1": twice}, map[string][][]byte{"app:1": {base, top, top}})
	if made := archive(t, s, data, oci.Options{}); made.Digest != want {
		t.Errorf("with a layer twice: %s", made.Digest)
	}
	if list, err := s.List(); err != nil || len(list) != 1 {
		t.Errorf("there are %v, %v; want one image", list, err)
	}
}

// Of several images the one for the platform, or of the name, is taken; where that is
// not clear, nothing is, and what there is is named.
func TestChoice(t *testing.T) {
	other := "s390x"
	one := func(o ic.Options, name string) ic.Packed {
		return ic.Pack(o, ic.Tar(ic.Entry{Name: "name", Content: name}))
	}
	here, there := one(ic.Options{}, "here"), one(ic.Options{Platform: "linux/" + other}, "there")
	v6, v7 := one(ic.Options{Platform: "linux/arm/v6"}, "v6"), one(ic.Options{Platform: "linux/arm/v7"}, "v7")
	about := ic.Pack(ic.Options{Platform: "unknown/unknown"}, base)
	index := ic.Index(ic.TypeIndex, there, here, v6, v7, about)
	list := ic.Index(ic.TypeDockerList, there, here)
	nested := ic.Index(ic.TypeIndex, ic.Index(ic.TypeIndex, index))
	deep := ic.Index(ic.TypeIndex, ic.Index(ic.TypeIndex, nested))
	platform := func(text string) oci.Platform {
		p, err := oci.ParsePlatform(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, tc := range []struct {
		name    string
		images  map[string]ic.Packed
		options oci.Options
		want    string // the digest of the manifest, or what the error says
	}{
		{"the machine's", map[string]ic.Packed{"": index}, oci.Options{}, here.Digest()},
		{"Docker's list", map[string]ic.Packed{"": list}, oci.Options{}, here.Digest()},
		{"asked for", map[string]ic.Packed{"": index}, oci.Options{Platform: platform("linux/" + other)}, there.Digest()},
		{"a variant", map[string]ic.Packed{"": index}, oci.Options{Platform: platform("linux/arm/v7")}, v7.Digest()},
		{"a variant that is not said", map[string]ic.Packed{"": index}, oci.Options{Platform: platform("linux/arm")}, "linux/arm/v6, linux/arm/v7"},
		{"none", map[string]ic.Packed{"": list}, oci.Options{Platform: platform("linux/riscv64")}, "no image for linux/riscv64; there is linux/s390x, linux/" + runtime.GOARCH},
		{"nested", map[string]ic.Packed{"": nested}, oci.Options{}, here.Digest()},
		{"nested too deeply", map[string]ic.Packed{"": deep}, oci.Options{}, "nested too deeply"},
		{"one of several names", map[string]ic.Packed{"a": here, "b": one(ic.Options{}, "b")}, oci.Options{Name: "a"}, "a@" + here.Digest()},
		{"several names and none said", map[string]ic.Packed{"a": here, "b": one(ic.Options{}, "b")}, oci.Options{}, "name one of"},
		{"a name that is not there", map[string]ic.Packed{"a": here}, oci.Options{Name: "c"}, `no image of the name "c"`},
		{"for another machine, and nothing says so", map[string]ic.Packed{"": there}, oci.Options{}, "is made for"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, dir := newStore(t)
			made, err := oci.ImportLayout(t.Context(), s, layout(t, tc.images), tc.options)
			if err == nil {
				made.Image.Close()
				if made.Source != tc.want {
					t.Errorf("took %s, want %s", made.Source, tc.want)
				}
				return
			}
			if !errors.Is(err, image.ErrContent) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want %q", err, tc.want)
			}
			nothing(t, dir)
		})
	}
	for _, text := range []string{"linux", "windows/amd64", "linux/", "linux/arm/v7/x", "linux/arm/", "/"} {
		if p, err := oci.ParsePlatform(text); err == nil {
			t.Errorf("%q is the platform %s", text, p)
		}
	}
}

// memory is a source of parts, as a liar may have them.
type memory map[string][]byte

func (m memory) Open(_ context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(m[d.Digest])), nil
}

func root(p ic.Packed) oci.Descriptor {
	return oci.Descriptor{MediaType: p.MediaType, Digest: p.Digest(), Size: int64(len(p.Root))}
}

// fetch fetches and unpacks, as whoever pulls does.
func fetch(ctx context.Context, s *image.Store, source oci.Source, d oci.Descriptor, o oci.Options) (*image.Import, error) {
	scratch, remove, err := s.Scratch()
	if err != nil {
		return nil, err
	}
	parts, err := oci.Fetch(ctx, source, d, scratch, o)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	made, err := parts.Unpack(ctx, s)
	return made, errors.Join(err, remove())
}

// TM-23: what is not as it was said to be is refused before it is used, whichever part
// it is, and nothing is left.
func TestTampered(t *testing.T) {
	other := ic.Tar(ic.Entry{Name: "evil", Content: "x"})
	change := func(f func(p ic.Packed) []byte, what func(p ic.Packed) string) func(ic.Packed) ic.Packed {
		return func(p ic.Packed) ic.Packed {
			p.Blobs = maps.Clone(p.Blobs)
			p.Blobs[what(p)] = f(p)
			return p
		}
	}
	layer := func(p ic.Packed) string { return ic.Digest(p.Layers[1]) }
	flip := func(b []byte) []byte {
		b = bytes.Clone(b)
		b[len(b)/2] ^= 1
		return b
	}
	same := func(p ic.Packed) ic.Packed { return p }
	for _, tc := range []struct {
		name    string
		options ic.Options
		change  func(ic.Packed) ic.Packed
		says    string
	}{
		{"a layer with a bit altered", ic.Options{}, change(func(p ic.Packed) []byte { return flip(p.Layers[1]) }, layer), "altered"},
		{"a layer that breaks off", ic.Options{}, change(func(p ic.Packed) []byte { return p.Layers[1][:10] }, layer), "another size"},
		{"a layer with more behind it", ic.Options{}, change(func(p ic.Packed) []byte { return append(bytes.Clone(p.Layers[1]), 'x') }, layer), "another size"},
		{"another layer", ic.Options{}, change(func(ic.Packed) []byte { return ic.Gzip(other) }, layer), "another size"},
		{"no layer", ic.Options{}, change(func(ic.Packed) []byte { return nil }, layer), "another size"},
		{"a swapped manifest", ic.Options{}, change(func(ic.Packed) []byte { return ic.Pack(ic.Options{}, other).Root }, ic.Packed.Digest), "another size"},
		{"an altered manifest", ic.Options{}, change(func(p ic.Packed) []byte { return bytes.Replace(p.Root, []byte(`"size"`), []byte(`"sizE"`), 1) }, ic.Packed.Digest), "altered"},
		{"an altered configuration", ic.Options{}, change(func(p ic.Packed) []byte { return flip(p.Config) }, func(p ic.Packed) string { return ic.Digest(p.Config) }), "altered"},
		{"a size that is too small", ic.Options{Layer: func(_ int, d ic.Document) { d["size"] = 3 }}, same, "another size"},
		{"a size that is too large", ic.Options{Layer: func(_ int, d ic.Document) { d["size"] = 1 << 20 }}, same, "another size"},
		{"a size that nobody has", ic.Options{Layer: func(_ int, d ic.Document) { d["size"] = int64(1) << 60 }}, same, "too many"},
		{"a negative size", ic.Options{Layer: func(_ int, d ic.Document) { d["size"] = -1 }}, same, "too many"},
		{"a size that is no number", ic.Options{Layer: func(_ int, d ic.Document) { d["size"] = "1" }}, same, "size"},
		{"a digest of another kind", ic.Options{Layer: func(_ int, d ic.Document) { d["digest"] = "sha512:" + strings.Repeat("0", 128) }}, same, "none by SHA-256"},
		{"a digest that is a path", ic.Options{Layer: func(_ int, d ic.Document) { d["digest"] = "sha256:../../../etc/passwd" }}, same, "none by SHA-256"},
		{"a layer that lies elsewhere", ic.Options{Layer: func(_ int, d ic.Document) { d["urls"] = []string{"https://elsewhere.example.org/x"} }}, same, "not taken"},
		{"a layer of another type", ic.Options{Layer: func(_ int, d ic.Document) {
			d["mediaType"] = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"
		}}, same, "not taken"},
		{"layers in another order", ic.Options{Manifest: func(m ic.Document) { slices.Reverse(m["layers"].([]ic.Document)) }}, same, "and its image says"},
		{"other contents than the configuration's", ic.Options{Config: func(c ic.Document) {
			c["rootfs"] = ic.Document{"type": "layers", "diff_ids": []string{ic.Digest(base), ic.Digest(other)}}
		}}, same, "and its image says"},
		{"fewer contents than layers", ic.Options{Config: func(c ic.Document) {
			c["rootfs"] = ic.Document{"type": "layers", "diff_ids": []string{ic.Digest(base)}}
		}}, same, "tells of 1 layers"},
		{"no contents", ic.Options{Config: func(c ic.Document) { delete(c, "rootfs") }}, same, "tells of 0 layers"},
		{"a configuration for another machine", ic.Options{Config: func(c ic.Document) { c["architecture"] = "vax" }}, same, "is made for"},
		{"a configuration for another system", ic.Options{Config: func(c ic.Document) { c["os"] = "windows" }}, same, "is made for"},
		{"what is no image", ic.Options{Manifest: func(m ic.Document) {
			m["config"].(ic.Document)["mediaType"] = "application/vnd.cncf.helm.config.v1+json"
		}}, same, "no container image"},
		{"another type within", ic.Options{Manifest: func(m ic.Document) { m["mediaType"] = ic.TypeIndex }}, same, "no manifest"},
		{"another version of the form", ic.Options{Manifest: func(m ic.Document) { m["schemaVersion"] = 1 }}, same, "no manifest"},
		{"no layers", ic.Options{Manifest: func(m ic.Document) { m["layers"] = []any{} }}, same, "0 layers"},
		{"too many layers", ic.Options{Manifest: func(m ic.Document) {
			m["layers"] = slices.Repeat(m["layers"].([]ic.Document), 100)
		}}, same, "200 layers"},
		{"names in another case", ic.Options{Manifest: func(m ic.Document) { m["Layers"] = m["layers"]; delete(m, "layers") }}, same, "0 layers"},
		{"a manifest that is too large", ic.Options{Manifest: func(m ic.Document) { m["x"] = strings.Repeat("x", oci.MaxDocument) }}, same, "too many"},
		{"an entry that leaves the root", ic.Options{}, func(ic.Packed) ic.Packed {
			return ic.Pack(ic.Options{}, base, ic.Tar(ic.Entry{Name: "../x"}))
		}, "leaves the root"},
		{"a layer that is no archive", ic.Options{}, func(ic.Packed) ic.Packed { return ic.Pack(ic.Options{}, []byte(strings.Repeat("text ", 400))) }, "no tar archive"},
		{"a layer that breaks off within", ic.Options{}, func(ic.Packed) ic.Packed { return ic.Pack(ic.Options{}, base[:len(base)-1024]) }, "breaks off"},
		{"a gzip that breaks off", ic.Options{}, func(ic.Packed) ic.Packed {
			return ic.Pack(ic.Options{Compress: func(b []byte) []byte { return ic.Gzip(b)[:40] }}, base)
		}, "no tar archive"},
		{"a zstd that breaks off", ic.Options{}, func(ic.Packed) ic.Packed {
			return ic.Pack(ic.Options{Compress: func(b []byte) []byte { return packZstd(b)[:40] }}, base)
		}, "no tar archive"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, dir := newStore(t)
			p := tc.change(ic.Pack(tc.options, base, top))
			made, err := fetch(t.Context(), s, memory(p.Blobs), root(p), oci.Options{})
			if err == nil {
				made.Image.Close()
			}
			if !errors.Is(err, image.ErrContent) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("err = %v, want ErrContent with %q", err, tc.says)
			}
			nothing(t, dir)
		})
	}
	// A name that comes twice is two documents to two readers.
	p := ic.Pack(ic.Options{}, base)
	p.Root = append([]byte(`{"layers":[],`), p.Root[1:]...)
	p.Blobs[p.Digest()] = p.Root
	s, _ := newStore(t)
	if _, err := fetch(t.Context(), s, memory(p.Blobs), root(p), oci.Options{}); !errors.Is(err, image.ErrContent) || !strings.Contains(err.Error(), "layers") {
		t.Errorf("a name twice: %v", err)
	}
}

// TM-23 (CVE-2021-41190): one digest means one image. What is a manifest to one reader and
// an index to another is neither, whichever the registry says it is, and in whatever case
// of letters: there are readers that take no notice of it.
func TestTwoDocumentsInOne(t *testing.T) {
	inner := ic.Pack(ic.Options{}, top)
	listed := []ic.Document{ic.Describe(ic.TypeManifest, inner.Root)}
	manifest := func(member string) ic.Packed {
		return ic.Pack(ic.Options{Manifest: func(m ic.Document) {
			delete(m, "mediaType")
			if member != "" {
				m[member] = listed
			}
		}}, base, top)
	}
	index := func(member string) ic.Packed {
		p := ic.Packed{Blobs: maps.Clone(inner.Blobs)}
		d := ic.Document{"schemaVersion": 2, "manifests": listed}
		if member != "" {
			d[member] = nil
		}
		p.Root = d.JSON()
		p.Blobs[p.Digest()] = p.Root
		return p
	}
	take := func(p ic.Packed, as string) error {
		p.MediaType = as
		maps.Copy(p.Blobs, inner.Blobs)
		s, dir := newStore(t)
		made, err := fetch(t.Context(), s, memory(p.Blobs), root(p), oci.Options{})
		if err == nil {
			return made.Image.Close()
		}
		nothing(t, dir)
		return err
	}
	for name, p := range map[string]ic.Packed{
		"with manifests": manifest("manifests"), "with Manifests": manifest("Manifests"),
		"with config": index("config"), "with layers": index("layers"), "with Layers": index("Layers"),
	} {
		for _, as := range []string{ic.TypeManifest, ic.TypeDockerManifest, ic.TypeIndex, ic.TypeDockerList} {
			if err := take(p, as); !errors.Is(err, image.ErrContent) || !strings.Contains(err.Error(), "a manifest and an index") {
				t.Errorf("%s, as %s: err = %v, want ErrContent", name, as, err)
			}
		}
	}
	if err := errors.Join(take(manifest(""), ic.TypeManifest), take(index(""), ic.TypeIndex)); err != nil {
		t.Errorf("what says of no type that it is one, and is one: %v", err)
	}
}

// TM-23: what is small when it is compressed does not get to be large, whatever
// compresses it, and no program is made to take memory without end.
func TestBombs(t *testing.T) {
	of := func(n int) []byte { return ic.Tar(ic.Entry{Name: "zeros", Content: strings.Repeat("\x00", n)}) }
	zeros := of(24 << 20)
	// The beginning of a frame that wants a window of 256 MiB, and an empty last block.
	wide := func([]byte) []byte { return []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x90, 0x01, 0x00, 0x00} }
	for _, tc := range []struct {
		name    string
		layer   []byte
		options ic.Options
		limits  image.Limits
		says    string
	}{
		{"gzip", zeros, ic.Options{}, image.Limits{}, "times as large"},
		{"zstd", zeros, ic.Options{Compress: packZstd, Suffix: "+zstd"}, image.Limits{}, "times as large"},
		{"gzip, above the limit", of(2 << 20), ic.Options{}, image.Limits{Bytes: 1 << 20}, "1048576 bytes"},
		{"a window that takes memory", base, ic.Options{Compress: wide, Suffix: "+zstd"}, image.Limits{}, "window"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, dir := newStore(t)
			p := ic.Pack(tc.options, tc.layer)
			_, err := fetch(t.Context(), s, memory(p.Blobs), root(p), oci.Options{Limits: tc.limits})
			if !errors.Is(err, image.ErrContent) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("err = %v, want ErrContent with %q", err, tc.says)
			}
			nothing(t, dir)
		})
	}
	// What was described as much is not fetched at all.
	p := ic.Pack(ic.Options{Layer: func(n int, d ic.Document) { d["size"] = 3 << 30 }}, base, top)
	s, _ := newStore(t)
	if _, err := fetch(t.Context(), s, memory(p.Blobs), root(p), oci.Options{Limits: image.Limits{Bytes: 2 << 30}}); !errors.Is(err, image.ErrContent) || !strings.Contains(err.Error(), "too many") {
		t.Errorf("err = %v, want ErrContent", err)
	}
}

// What was written as an archive for another machine is the same image there, for whatever
// platform: who reads it says for which, in the words by which it was chosen here.
func TestWriteArchive(t *testing.T) {
	for _, tc := range []struct {
		name, packed string
		platform     oci.Platform
	}{
		{"this machine's", "", oci.Platform{}},
		{"another", "linux/s390x", oci.Platform{OS: "linux", Architecture: "s390x"}},
		{"a variant that the image itself does not say", "linux/arm/v7", oci.Platform{OS: "linux", Architecture: "arm", Variant: "v7"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, _ := newStore(t)
			p := ic.Index(ic.TypeIndex, ic.Pack(ic.Options{Env: []string{"PATH=/opt/bin"}, Platform: tc.packed}, base, top, top))
			scratch, remove, err := s.Scratch()
			if err != nil {
				t.Fatal(err)
			}
			o := oci.Options{Platform: tc.platform}
			parts, err := oci.Fetch(t.Context(), memory(p.Blobs), root(p), scratch, o)
			if err != nil {
				t.Fatal(err)
			}
			parts.Name = "registry.example.org/app:1"
			var b bytes.Buffer
			if err := parts.WriteArchive(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			here, err := parts.Unpack(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			here.Image.Close()
			if err := remove(); err != nil {
				t.Error(err)
			}
			there := archive(t, s, b.Bytes(), o)
			if there.Digest != here.Digest || there.Source != here.Source || here.Source != "registry.example.org/app:1@"+parts.Manifest.Digest || here.Environment["PATH"] != "/opt/bin" {
				t.Errorf("there %s from %s, here %s from %s", there.Digest, there.Source, here.Digest, here.Source)
			}
		})
	}
}
