package oci

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/image"
)

// Bounds of an archive with an image in layers.
const (
	maxParts = 4096 // files and folders in it
	maxPath  = 512  // bytes of a file's name in it
)

// packed is how the first file of an archive is called that holds an image in layers,
// whoever wrote it: no root file system has these at its top.
var packed = regexp.MustCompile(`^(oci-layout|index\.json|manifest\.json|repositories|blobs(/sha256(/.*)?)?|[0-9a-f]{64}(\.json|/.*)?)$`)

// ImportArchive makes an image of an archive and keeps it in the store: the tar archive
// of a root file system, or one with an image in layers, an OCI layout or what docker
// save writes, each plain or compressed with gzip or zstd. O says which is meant of
// several images in layers.
//
// # Errors
//
// As for [image.Store.ImportTar], [Fetch] and [Parts.Unpack].
func ImportArchive(ctx context.Context, s *image.Store, r io.Reader, o Options) (*image.Import, error) {
	plain, end, err := decompress(&stopped{ctx, r})
	if err != nil {
		return nil, caused(ctx, err)
	}
	defer end()
	buffered := bufio.NewReaderSize(plain, 16<<10)
	if !inLayers(buffered) {
		return s.ImportTar(ctx, buffered, o.Limits)
	}
	return within(s, func(scratch *os.Root) (*image.Import, error) {
		a := &archive{scratch: scratch, files: map[string]string{}, links: map[string]string{}}
		if err := a.spool(ctx, buffered, o.bytes()); err != nil {
			return nil, caused(ctx, err)
		}
		if _, ok := a.files[layoutFile]; ok {
			return importLayout(ctx, s, a, scratch, o)
		}
		return a.importSaved(ctx, s, o)
	})
}

// inLayers reports whether an archive holds an image in layers, by its first entry but
// the root's.
func inLayers(r *bufio.Reader) bool {
	head, _ := r.Peek(r.Size())
	t := tar.NewReader(bytes.NewReader(head))
	for {
		h, err := t.Next()
		if err != nil {
			return false
		}
		name := path.Clean("/" + h.Name)[1:]
		if name != "" && h.Typeflag != tar.TypeXGlobalHeader {
			return packed.MatchString(name)
		}
	}
}

// An archive is the files of a tar archive, each copied into the scratch folder under a
// name that says nothing.
type archive struct {
	scratch *os.Root
	files   map[string]string // by the name in the archive
	links   map[string]string // and what leads to them
}

func (a *archive) open(name string) (io.ReadCloser, error) {
	at := a.at(name)
	if at == "" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return a.scratch.Open(at)
}

// at returns where the file lies in the scratch folder: "" where there is none.
func (a *archive) at(name string) string {
	for range 8 { // docker save once wrote links to a layer that it had written before
		to, ok := a.links[name]
		if !ok {
			break
		}
		name = to
	}
	return a.files[name]
}

// spool copies what the archive holds.
func (a *archive) spool(ctx context.Context, r io.Reader, most int64) error {
	left := most
	t := tar.NewReader(io.LimitReader(r, most+maxParts*4096))
	for n := 0; ; n++ {
		h, err := t.Next()
		switch {
		case err == io.EOF:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return bad("it is no tar archive that can be read: %w", err)
		case n == maxParts:
			return bad("it has more than %d files", maxParts)
		}
		name := path.Clean("/" + h.Name)[1:]
		switch {
		case len(h.Name) > maxPath || len(h.Linkname) > maxPath:
			return bad("a path of more than %d bytes: %.60q…", maxPath, h.Name)
		case h.Typeflag == tar.TypeDir, h.Typeflag == tar.TypeXGlobalHeader:
			continue
		case a.files[name] != "" || a.links[name] != "":
			return bad("the path %q comes twice", name)
		case h.Typeflag == tar.TypeSymlink:
			a.links[name] = path.Join("/", path.Dir(name), h.Linkname)[1:]
			continue
		case h.Typeflag == tar.TypeLink:
			a.links[name] = path.Clean("/" + h.Linkname)[1:]
			continue
		case h.Typeflag != tar.TypeReg:
			return bad("%q is no file", name)
		case h.Size > left:
			return bad("it has more than %d bytes", most)
		}
		left -= h.Size
		a.files[name] = fmt.Sprintf("part-%d", n)
		if err := copyTo(a.scratch, a.files[name], t); err != nil {
			return err
		}
	}
}

func copyTo(dir *os.Root, name string, r io.Reader) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	var read error
	if _, err = io.Copy(f, readError{r, &read}); read != nil {
		err = bad("it ends within a file: %w", read)
	}
	return errors.Join(err, f.Close())
}

// readError remembers that it was reading that failed.
type readError struct {
	io.Reader
	err *error
}

func (r readError) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		*r.err = err
	}
	return n, err
}

// A saved image is one of those that docker save wrote.
type saved struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// importSaved makes an image of what docker save wrote: the digests are those that the
// configuration says of the layers, and for the configuration its own.
func (a *archive) importSaved(ctx context.Context, s *image.Store, o Options) (*image.Import, error) {
	var list []saved
	if err := readFile(a, "manifest.json", &list); err != nil {
		return nil, err
	}
	one, err := chooseSaved(list, o.Name)
	if err != nil {
		return nil, err
	}
	d, err := a.describe(one.Config)
	if err != nil {
		return nil, err
	}
	if hex := strings.TrimSuffix(path.Base(one.Config), ".json"); len(hex) == 64 && "sha256:"+hex != d.Digest {
		return nil, bad("the configuration %s is %s", one.Config, d.Digest)
	}
	if len(one.Layers) == 0 || len(one.Layers) > MaxLayers {
		return nil, bad("it has %d layers; an image has 1 to %d", len(one.Layers), MaxLayers)
	}
	p := &Parts{Manifest: d, about: d, scratch: a.scratch, limits: o.Limits}
	if len(one.RepoTags) > 0 {
		p.Name = one.RepoTags[0]
	}
	if err := readFile(a, one.Config, &p.config); err != nil {
		return nil, err
	}
	for _, name := range one.Layers {
		l, err := a.describe(name)
		if err != nil {
			return nil, err
		}
		p.layers = append(p.layers, l)
	}
	if err := p.check(o.platform()); err != nil {
		return nil, err
	}
	return p.Unpack(ctx, s)
}

func chooseSaved(list []saved, wanted string) (saved, error) {
	var names []string
	for _, one := range list {
		names = append(names, one.RepoTags...)
		for _, tag := range one.RepoTags {
			if tag == wanted {
				return one, nil
			}
		}
	}
	switch {
	case wanted != "":
		return saved{}, bad("it has no image of the name %q; there is %.500q", wanted, names)
	case len(list) != 1:
		return saved{}, bad("it has %d images; name one of %.500q", len(list), names)
	}
	return list[0], nil
}

// describe computes what describes a file of the archive, and moves it to where the
// parts of an image lie.
func (a *archive) describe(name string) (Descriptor, error) {
	r, err := a.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Descriptor{}, bad("there is no %.200q in it", name)
	}
	if err != nil {
		return Descriptor{}, err
	}
	h := sha256.New()
	n, err := io.Copy(h, r)
	if err := errors.Join(err, r.Close()); err != nil {
		return Descriptor{}, err
	}
	d := Descriptor{Digest: bundle.Digest(h.Sum(nil)).String(), Size: n}
	if err := a.scratch.Link(a.at(name), blobName(d)); !errors.Is(err, fs.ErrExist) {
		return d, err
	}
	return d, nil
}
