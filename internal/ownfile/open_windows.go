package ownfile

import (
	"errors"
	"io/fs"
	"os"
)

// open opens path itself, not what it links to.
func open(path string, how int) (*os.File, error) {
	if in, err := os.Lstat(path); err == nil && !in.Mode().IsRegular() {
		return nil, errors.Join(ErrKind, &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid})
	}
	return os.OpenFile(path, how, 0o600)
}

// Windows has no such bits.
func shared(fs.FileMode) bool     { return false }
func changeable(fs.FileMode) bool { return false }

// Windows has owners of another kind.
func owner(fs.FileInfo) (uid int, ok bool) { return 0, false }
