//go:build !linux

package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/tracon-go/tracon/bundle"
)

// errPlatform is what every method answers here: a root file system has names
// and modes that other platforms do not keep.
var errPlatform = fmt.Errorf("image: runtimes are kept on Linux: %w", errors.ErrUnsupported)

// A Store keeps images in a folder, on Linux. Here it has none.
type Store struct{}

// New returns a store without images.
func New(string) *Store { return &Store{} }

// Dir returns "": there is none.
func (*Store) Dir() string { return "" }

// ImportTar fails with an error that wraps errors.ErrUnsupported.
func (*Store) ImportTar(context.Context, io.Reader, Limits) (*Import, error) { return nil, errPlatform }

// ImportFolder fails with an error that wraps errors.ErrUnsupported.
func (*Store) ImportFolder(context.Context, string, Limits) (*Import, error) { return nil, errPlatform }

// ImportLayers fails with an error that wraps errors.ErrUnsupported.
func (*Store) ImportLayers(context.Context, []Layer, []string, Limits) (*Import, error) {
	return nil, errPlatform
}

// Scratch fails with an error that wraps errors.ErrUnsupported.
func (*Store) Scratch() (*os.Root, func() error, error) { return nil, nil, errPlatform }

// Image fails with an error that wraps errors.ErrUnsupported.
func (*Store) Image(bundle.Digest) (*Image, error) { return nil, errPlatform }

// List returns none.
func (*Store) List() ([]bundle.Digest, error) { return nil, nil }

// Info fails with an error that wraps errors.ErrUnsupported.
func (*Store) Info(bundle.Digest) (Info, error) { return Info{}, errPlatform }

// Verify fails with an error that wraps errors.ErrUnsupported.
func (*Store) Verify(context.Context, bundle.Digest) error { return errPlatform }

// Remove fails with an error that wraps errors.ErrUnsupported.
func (*Store) Remove(bundle.Digest) error { return errPlatform }

// Prune removes none.
func (*Store) Prune(func(bundle.Digest) bool) ([]bundle.Digest, error) { return nil, nil }

// An Image is an image that was opened. There is none here.
type Image struct{}

// Digest returns the zero digest.
func (*Image) Digest() bundle.Digest { return bundle.Digest{} }

// Environment returns none.
func (*Image) Environment() map[string]string { return nil }

// Root returns nil.
func (*Image) Root() *os.File { return nil }

// Verify fails with an error that wraps errors.ErrUnsupported.
func (*Image) Verify(context.Context, func(done uint64)) error { return errPlatform }

// Close does nothing.
func (*Image) Close() error { return nil }

// Open fails with fs.ErrNotExist.
func (*Image) Open(name string) (*os.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
