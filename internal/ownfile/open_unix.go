//go:build unix

package ownfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// open opens path itself, not what it links to, and waits for nobody at its other end.
func open(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, how|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		err = errors.Join(ErrKind, err) // a link; a pipe that nobody reads, a socket
	}
	return f, err
}

// shared reports whether others may read or write what has that mode.
func shared(mode fs.FileMode) bool { return mode.Perm()&0o077 != 0 }

// changeable reports whether others may change what is in a folder of that mode.
func changeable(mode fs.FileMode) bool { return mode.Perm()&0o022 != 0 }

// owner returns the user to whom it belongs.
func owner(in fs.FileInfo) (uid int, ok bool) {
	st, ok := in.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
