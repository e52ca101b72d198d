//go:build unix

package sqlite

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// writable says why this user may not write to path, or nil. It asks and opens
// nothing; see create.
func writable(path string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}
