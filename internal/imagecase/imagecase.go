// Package imagecase packs container images as builders do, for tests: what a layout, an
// archive and a registry have of them, whole or as a liar would have it.
package imagecase

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Media types of what is packed.
const (
	TypeIndex    = "application/vnd.oci.image.index.v1+json"
	TypeManifest = "application/vnd.oci.image.manifest.v1+json"
	TypeConfig   = "application/vnd.oci.image.config.v1+json"
	TypeLayer    = "application/vnd.oci.image.layer.v1.tar"

	TypeDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	TypeDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	TypeDockerConfig   = "application/vnd.docker.container.image.v1+json"
	TypeDockerLayer    = "application/vnd.docker.image.rootfs.diff.tar.gzip"
)

// An Entry is an entry of a layer. The zero Kind is a file.
type Entry struct {
	Name, Content, Target string
	Kind                  byte
	Mode                  int64
}

// Tar packs the entries.
func Tar(entries ...Entry) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.Name, Typeflag: e.Kind, Linkname: e.Target, Mode: e.Mode, Size: int64(len(e.Content)), ModTime: time.Unix(1_700_000_000, 0)}
		if e.Kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		must(w.WriteHeader(h))
		_, err := io.WriteString(w, e.Content)
		must(err)
	}
	must(w.Close())
	return b.Bytes()
}

// TarFolder packs what lies in a folder.
func TarFolder(dir string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.AddFS(os.DirFS(dir))
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}

// Gzip compresses.
func Gzip(data []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	must(err)
	_, err = w.Write(data)
	must(err)
	must(w.Close())
	return b.Bytes()
}

// Digest is how a registry names the bytes.
func Digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// A Document is a JSON document as a test alters it.
type Document map[string]any

// JSON writes it.
func (d Document) JSON() []byte {
	b, err := json.Marshal(d)
	must(err)
	return b
}

// Describe describes the bytes.
func Describe(mediaType string, b []byte) Document {
	return Document{"mediaType": mediaType, "digest": Digest(b), "size": len(b)}
}

// Packed is an image, or an index of images, with all its parts.
type Packed struct {
	MediaType string
	Root      []byte            // the manifest or the index
	Blobs     map[string][]byte // all parts by digest, Root too
	Config    []byte
	Layers    [][]byte // compressed
	Platform  Document
}

// Digest returns that of the manifest or the index.
func (p Packed) Digest() string { return Digest(p.Root) }

// Options say how an image is packed. The zero Options pack as an OCI image for this
// machine, compressed with gzip.
type Options struct {
	Env, Entrypoint []string
	User            string
	Platform        string                     // zero: linux and this machine's
	Docker          bool                       // media types of Docker's
	Compress        func(layer []byte) []byte  // zero: Gzip
	Suffix          string                     // of a layer's media type; zero: +gzip
	Config          func(Document)             // alters the configuration, nil: nothing
	Manifest        func(Document)             // alters the manifest
	Layer           func(n int, desc Document) // alters what describes a layer
}

// Pack packs layers, which are plain tar archives.
func Pack(o Options, layers ...[]byte) Packed {
	if o.Compress == nil {
		o.Compress, o.Suffix = Gzip, "+gzip"
	}
	if o.Platform == "" {
		o.Platform = "linux/" + runtime.GOARCH
	}
	system, architecture, _ := strings.Cut(o.Platform, "/")
	architecture, variant, _ := strings.Cut(architecture, "/")
	p := Packed{MediaType: TypeManifest, Blobs: map[string][]byte{}, Platform: Document{"os": system, "architecture": architecture}}
	if variant != "" {
		p.Platform["variant"] = variant
	}
	typeConfig, typeLayer := TypeConfig, TypeLayer+o.Suffix
	if o.Docker {
		p.MediaType, typeConfig, typeLayer = TypeDockerManifest, TypeDockerConfig, TypeDockerLayer
	}
	ids, described := []string{}, []Document{}
	for n, l := range layers {
		packed := o.Compress(l)
		p.Layers = append(p.Layers, packed)
		p.Blobs[Digest(packed)] = packed
		ids = append(ids, Digest(l))
		d := Describe(typeLayer, packed)
		if o.Layer != nil {
			o.Layer(n, d)
		}
		described = append(described, d)
	}
	config := Document{
		"created": "2026-01-01T00:00:00Z", "os": system, "architecture": architecture, "history": []any{},
		"config": Document{"Env": o.Env, "User": o.User, "Entrypoint": o.Entrypoint}, "rootfs": Document{"type": "layers", "diff_ids": ids},
	}
	if o.Config != nil {
		o.Config(config)
	}
	p.Config = config.JSON()
	p.Blobs[Digest(p.Config)] = p.Config
	manifest := Document{"schemaVersion": 2, "mediaType": p.MediaType, "config": Describe(typeConfig, p.Config), "layers": described}
	if o.Manifest != nil {
		o.Manifest(manifest)
	}
	p.Root = manifest.JSON()
	p.Blobs[p.Digest()] = p.Root
	return p
}

// Index packs images in one index, each for its platform; named ones get a name.
func Index(mediaType string, images ...Packed) Packed {
	p := Packed{MediaType: mediaType, Blobs: map[string][]byte{}}
	var list []Document
	for _, i := range images {
		for d, b := range i.Blobs {
			p.Blobs[d] = b
		}
		d := Describe(i.MediaType, i.Root)
		if i.Platform != nil {
			d["platform"] = i.Platform
		}
		list = append(list, d)
	}
	p.Root = Document{"schemaVersion": 2, "mediaType": mediaType, "manifests": list}.JSON()
	p.Blobs[p.Digest()] = p.Root
	return p
}

// Layout writes images into a folder, each under its name.
func Layout(dir string, images map[string]Packed) error {
	at := filepath.Join(dir, "blobs", "sha256")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	list := []Document{}
	for name, i := range images {
		for d, b := range i.Blobs {
			if err := os.WriteFile(filepath.Join(at, strings.TrimPrefix(d, "sha256:")), b, 0o644); err != nil {
				return err
			}
		}
		d := Describe(i.MediaType, i.Root)
		if name != "" {
			d["annotations"] = Document{"org.opencontainers.image.ref.name": name}
		}
		list = append(list, d)
	}
	if err := os.WriteFile(filepath.Join(dir, "index.json"), Document{"schemaVersion": 2, "manifests": list}.JSON(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
}

// Saved returns what docker save writes of images, each under its tag: its layers are
// plain. Again says that a layer which comes again is a link, as old versions wrote it.
func Saved(again bool, images map[string]Packed, layers map[string][][]byte) []byte {
	var entries []Entry
	list := []Document{}
	wrote := map[string]string{}
	for tag, i := range images {
		one := Document{"Config": strings.TrimPrefix(Digest(i.Config), "sha256:") + ".json", "RepoTags": []string{tag}}
		entries = append(entries, Entry{Name: one["Config"].(string), Content: string(i.Config), Mode: 0o644})
		names := []string{}
		for n, l := range layers[tag] {
			dir := strings.TrimPrefix(Digest([]byte(fmt.Sprint(tag, n))), "sha256:")
			names = append(names, dir+"/layer.tar")
			entries = append(entries, Entry{Name: dir + "/", Kind: tar.TypeDir, Mode: 0o755}, Entry{Name: dir + "/VERSION", Content: "1.0", Mode: 0o644})
			if before := wrote[Digest(l)]; before != "" && again {
				entries = append(entries, Entry{Name: dir + "/layer.tar", Kind: tar.TypeSymlink, Target: "../" + before})
				continue
			}
			wrote[Digest(l)] = dir + "/layer.tar"
			entries = append(entries, Entry{Name: dir + "/layer.tar", Content: string(l), Mode: 0o644})
		}
		one["Layers"] = names
		list = append(list, one)
	}
	b, err := json.Marshal(list)
	must(err)
	return Tar(append(entries, Entry{Name: "manifest.json", Content: string(b), Mode: 0o644})...)
}

func must(err error) {
	if err != nil {
		panic(err) // into memory, of what the test itself made
	}
}
