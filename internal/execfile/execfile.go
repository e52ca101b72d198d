// Package execfile writes programs that are executed at once.
//
// A process that another goroutine forks while a file is open for writing holds
// it open too, until it executes its own program; whoever executes the file
// meanwhile gets "text file busy". Write keeps forks away while it writes.
package execfile

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Write makes the file at path, which must not exist, readable and executable by
// everybody, with the bytes of r. No process that is forked by os/exec, or by
// others who take syscall.ForkLock, inherits it. It is safe for concurrent use.
func Write(path string, r io.Reader) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
