package oci

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/image"
)

// What a layer may become: so many times as large as it was, and this much in any case.
// What a compiler or a package manager writes shrinks to a tenth at the utmost; a
// thousandth is what gzip makes of zeros.
const (
	MaxRatio = 200
	anyway   = 16 << 20
)

// maxWindow is how much memory a layer compressed with zstd may ask for: what the
// highest level of its program takes without a word.
const maxWindow = 128 << 20

// Unpack makes an image of the parts and keeps it in the store.
//
// # Errors
//
// Those of [image.Store.ImportLayers].
func (p *Parts) Unpack(ctx context.Context, s *image.Store) (*image.Import, error) {
	var layers []image.Layer
	for i, d := range p.layers {
		want, err := Descriptor{Digest: p.config.RootFS.DiffIDs[i]}.digest()
		if err != nil {
			return nil, err
		}
		layers = append(layers, func() (io.ReadCloser, error) { return openLayer(p.scratch, d, want) })
	}
	made, err := s.ImportLayers(ctx, layers, p.config.Config.Env, p.limits)
	if err != nil {
		return nil, err
	}
	made.Source = p.Source()
	for _, left := range p.leftOut() {
		made.Left++
		made.Skipped = append(made.Skipped, left)
	}
	return made, nil
}

// leftOut says what of the configuration no run sees.
func (p *Parts) leftOut() (list []string) {
	c := p.config.Config
	if c.User != "" {
		list = append(list, "its user: scripts run as nobody of the host's and own nothing")
	}
	if len(c.Entrypoint)+len(c.Cmd) > 0 {
		list = append(list, "its entrypoint and command: what runs is the interpreter of the allow-list")
	}
	return list
}

// A layer is the tar archive of a layer, while it is read.
type layer struct {
	io.Reader
	name  string
	close []func() error
	hash  hash.Hash
	want  bundle.Digest
	left  int64 // bytes that it may still become
}

func openLayer(scratch *os.Root, d Descriptor, want bundle.Digest) (*layer, error) {
	f, err := scratch.Open(blobName(d))
	if err != nil {
		return nil, err
	}
	r, end, err := decompress(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &layer{r, d.Digest, []func() error{end, f.Close}, sha256.New(), want, d.Size*MaxRatio + anyway}, nil
}

// Read reads on. At the end it compares the whole with what the image says of it.
func (l *layer) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	l.hash.Write(p[:n])
	if l.left -= int64(n); l.left < 0 {
		return 0, bad("the layer %s becomes more than %d times as large as it was", l.name, MaxRatio)
	}
	if err == io.EOF && n == 0 {
		if got := bundle.Digest(l.hash.Sum(nil)); got != l.want {
			return 0, bad("the layer %s has the content %s, and its image says %s", l.name, got, l.want)
		}
	}
	if err == io.EOF && n > 0 {
		err = nil
	}
	return n, err
}

// Close lets go of it.
func (l *layer) Close() error {
	var errs []error
	for _, c := range l.close {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// decompress returns what r has, decompressed where it is compressed with gzip or zstd,
// which is seen at its beginning. End lets go of what that takes.
func decompress(r io.Reader) (plain io.Reader, end func() error, err error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	head, _ := buffered.Peek(4)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, nil, bad("%w", err)
		}
		return z, z.Close, nil
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, bad("%w", err)
		}
		return z, func() error { z.Close(); return nil }, nil
	}
	return buffered, func() error { return nil }, nil
}
