package oci

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/image"
)

// A Source has the parts of images.
type Source interface {
	// Open opens what d describes. What it yields is compared with d, and may be
	// anything. An error of it, or of reading, that wraps ErrBroken is worth another try.
	Open(ctx context.Context, d Descriptor) (io.ReadCloser, error)
}

// ErrBroken is wrapped by the error of a source that broke off on its way.
var ErrBroken = errors.New("oci: it broke off")

// How often what breaks off is opened, and the pause before the second time; each
// further one is twice as long.
const (
	tries = 4
	pause = 500 * time.Millisecond
)

// Options say which image is meant and how large it may be.
type Options struct {
	// Platform is what the image must be made for; zero: linux and this machine's
	// processor.
	Platform Platform

	// Name is which of several images in a layout or an archive is meant; empty: the
	// only one.
	Name string

	// Limits are for what it becomes. What is fetched may have as many bytes as its
	// files may.
	Limits image.Limits

	// Progress, if not nil, is called with how many bytes have come.
	Progress func(done uint64)
}

func (o Options) platform() Platform {
	return Platform{cmp.Or(o.Platform.OS, "linux"), cmp.Or(o.Platform.Architecture, machine().Architecture), o.Platform.Variant}
}

func machine() Platform { p, _ := ParsePlatform(""); return p }

func (o Options) bytes() int64 { return cmp.Or(o.Limits.Bytes, image.DefaultBytes) }

// Parts are the parts of one image in a folder, each compared with what was said of it.
type Parts struct {
	// Manifest describes the image's manifest: its digest is the one by which registries
	// know the image for a platform.
	Manifest Descriptor

	// Name is what the image was called where it was found; it may be empty.
	Name string

	scratch *os.Root
	config  config
	about   Descriptor // the configuration
	layers  []Descriptor
	limits  image.Limits
}

// A fetcher copies into a folder what it then reads.
type fetcher struct {
	source  Source
	scratch *os.Root
	options Options
	done    int64
	have    map[string]int64 // sizes, by digest
}

// Fetch copies the parts of the image that root describes into the scratch folder, which
// is the caller's to remove: root is a manifest, or an index with one for the platform.
//
// # Errors
//
// One that wraps image.ErrContent for what is not as it was said, or is none that can be
// imported; what the source says; the cause of ctx.
func Fetch(ctx context.Context, source Source, root Descriptor, scratch *os.Root, o Options) (*Parts, error) {
	f := &fetcher{source: source, scratch: scratch, options: o, have: map[string]int64{}}
	d, err := f.choose(ctx, []Descriptor{root}, false, 0)
	if err != nil {
		return nil, err
	}
	return f.parts(ctx, d)
}

// blobName is the name of a part in the scratch folder.
func blobName(d Descriptor) string { return strings.TrimPrefix(d.Digest, "sha256:") }

// take copies what d describes into the scratch folder.
func (f *fetcher) take(ctx context.Context, d Descriptor, most int64) error {
	want, err := d.digest()
	if err != nil {
		return err
	}
	if d.Size < 0 || d.Size > most || d.Size > f.options.bytes()-f.done {
		return bad("%s has %d bytes by its description, which is too many", d.Digest, d.Size)
	}
	if size, ok := f.have[d.Digest]; ok {
		if size != d.Size {
			return bad("%s is described with %d bytes and with %d", d.Digest, size, d.Size)
		}
		return nil
	}
	for n, wait := 1, pause; ; n, wait = n+1, 2*wait {
		err := f.copy(ctx, d, want)
		if err == nil || n == tries || !errors.Is(err, ErrBroken) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

func (f *fetcher) copy(ctx context.Context, d Descriptor, want bundle.Digest) (err error) {
	r, err := f.source.Open(ctx, d)
	if err != nil {
		return caused(ctx, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	to, err := f.scratch.OpenFile(blobName(d), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, h, &counter{f: f}), &stopped{ctx, io.LimitReader(r, d.Size+1)})
	if err := errors.Join(err, to.Close()); err != nil {
		f.done -= n
		return caused(ctx, err)
	}
	switch got := bundle.Digest(h.Sum(nil)); {
	case n != d.Size:
		return bad("%s has another size than the %d bytes of its description", d.Digest, d.Size)
	case got != want:
		return bad("it was altered on its way: what came as %s is %s", d.Digest, got)
	}
	f.have[d.Digest] = d.Size
	return nil
}

// caused returns who stopped it, where somebody did.
func caused(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// A counter counts what comes.
type counter struct{ f *fetcher }

func (c *counter) Write(p []byte) (int, error) {
	c.f.done += int64(len(p))
	if c.f.options.Progress != nil {
		c.f.options.Progress(uint64(c.f.done))
	}
	return len(p), nil
}

// stopped reads until ctx is done.
type stopped struct {
	ctx context.Context
	r   io.Reader
}

func (s *stopped) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.r.Read(p)
}

// parts fetches the manifest's parts.
func (f *fetcher) parts(ctx context.Context, d Descriptor) (*Parts, error) {
	var m manifest
	if err := f.document(ctx, d, &m); err != nil {
		return nil, err
	}
	switch {
	case m.SchemaVersion != 2 || m.MediaType != "" && m.MediaType != d.MediaType:
		return nil, bad("%s is no manifest of the type %s", d.Digest, d.MediaType)
	case m.Config.MediaType != typeConfig && m.Config.MediaType != typeDockerConf:
		return nil, bad("%s describes no container image: its configuration is of the type %.90q", d.Digest, m.Config.MediaType)
	case len(m.Layers) == 0 || len(m.Layers) > MaxLayers:
		return nil, bad("%s has %d layers; an image has 1 to %d", d.Digest, len(m.Layers), MaxLayers)
	}
	p := &Parts{Manifest: d, Name: name(d), scratch: f.scratch, about: m.Config, layers: m.Layers, limits: f.options.Limits}
	if err := f.document(ctx, m.Config, &p.config); err != nil {
		return nil, err
	}
	if err := p.check(f.options.platform()); err != nil {
		return nil, err
	}
	for _, l := range m.Layers {
		if !layerTypes[l.MediaType] || len(l.URLs) > 0 {
			return nil, bad("the layer %.90q is of the type %.90q, which is not taken", l.Digest, l.MediaType)
		}
		if err := f.take(ctx, l, f.options.bytes()); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// document fetches a document and reads it.
func (f *fetcher) document(ctx context.Context, d Descriptor, v any) error {
	if err := f.take(ctx, d, MaxDocument); err != nil {
		return err
	}
	return readDocument(f.scratch, d, v)
}

// check holds that the configuration is that of the layers, and of the platform.
func (p *Parts) check(want Platform) error {
	c := p.config
	switch {
	case c.OS != want.OS || c.Architecture != want.Architecture:
		return bad("%s is made for %.60q, and %s was asked for", p.Manifest.Digest, c.Platform.String(), want)
	case c.RootFS.Type != "layers" || len(c.RootFS.DiffIDs) != len(p.layers):
		return bad("its configuration tells of %d layers of the type %.60q, and there are %d", len(c.RootFS.DiffIDs), c.RootFS.Type, len(p.layers))
	}
	for _, id := range c.RootFS.DiffIDs {
		if _, err := (Descriptor{Digest: id}).digest(); err != nil {
			return err
		}
	}
	return nil
}

// Source is where the image is from, as an entry of the log has it: what it is called
// there, and its manifest's digest.
func (p *Parts) Source() string {
	switch _, named, _ := strings.Cut(p.Name, "@"); {
	case p.Name == "":
		return p.Manifest.Digest
	case named == p.Manifest.Digest:
		return p.Name
	case named != "": // an index
		return fmt.Sprintf("%s, for %s %s", p.Name, p.config.Platform, p.Manifest.Digest)
	}
	return p.Name + "@" + p.Manifest.Digest
}
