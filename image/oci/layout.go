package oci

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/internal/strictjson"
)

// The files of a layout.
const (
	layoutFile = "oci-layout"
	indexFile  = "index.json"
	blobs      = "blobs/sha256/"
)

// IsLayout reports whether the folder is an OCI layout.
func IsLayout(dir string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	info, err := root.Lstat(layoutFile)
	return err == nil && info.Mode().IsRegular()
}

// ImportLayout makes an image of the one in the OCI layout in the folder dir that o
// means, and keeps it in the store.
//
// # Errors
//
// As for [Fetch] and [Parts.Unpack].
func ImportLayout(ctx context.Context, s *image.Store, dir string, o Options) (*image.Import, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return within(s, func(scratch *os.Root) (*image.Import, error) {
		return importLayout(ctx, s, folder{root}, scratch, o)
	})
}

// within calls f with a scratch folder, and removes it.
func within(s *image.Store, f func(scratch *os.Root) (*image.Import, error)) (made *image.Import, err error) {
	scratch, remove, err := s.Scratch()
	if err != nil {
		return nil, err
	}
	defer func() {
		if rerr := remove(); rerr != nil && made != nil {
			made, err = nil, errors.Join(err, rerr, made.Image.Close())
		}
	}()
	return f(scratch)
}

// A place has the files of a layout.
type place interface {
	open(name string) (io.ReadCloser, error)
}

type folder struct{ *os.Root }

func (f folder) open(name string) (io.ReadCloser, error) {
	file, err := f.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is not waited for
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(bad("%q is no file", name), err, file.Close())
	}
	return file, nil
}

// blobsOf is the source of a layout's parts.
type blobsOf struct{ place }

// Open implements [Source].
func (b blobsOf) Open(_ context.Context, d Descriptor) (io.ReadCloser, error) {
	r, err := b.open(blobs + blobName(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, bad("%s is described, and not there", d.Digest)
	}
	return r, err
}

func importLayout(ctx context.Context, s *image.Store, at place, scratch *os.Root, o Options) (*image.Import, error) {
	var layout struct {
		Version string `json:"imageLayoutVersion"`
	}
	var in index
	if err := errors.Join(readFile(at, layoutFile, &layout), readFile(at, indexFile, &in)); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(layout.Version, "1.") {
		return nil, bad("it is an OCI layout of the version %.20q; 1.0.0 is known here", layout.Version)
	}
	f := &fetcher{source: blobsOf{at}, scratch: scratch, options: o, have: map[string]int64{}}
	d, err := f.choose(ctx, in.Manifests, true, 0)
	if err != nil {
		return nil, err
	}
	p, err := f.parts(ctx, d)
	if err != nil {
		return nil, err
	}
	return p.Unpack(ctx, s)
}

// readFile reads a document that has no digest.
func readFile(at place, name string, v any) error {
	r, err := at.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return bad("there is no %s in it", name)
	}
	if err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	if len(b) > MaxDocument {
		return bad("%s has more than %d bytes", name, MaxDocument)
	}
	if err := strictjson.UnmarshalKnown(b, v); err != nil {
		return bad("%s: %w", name, err)
	}
	return nil
}
