//go:build unix && !linux

package box

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Stdin returns a file that holds data, open for reading alone and without a
// name. It has no writer, so a script that never reads it blocks nobody. For no
// data it is the null device.
func (r *Run) Stdin(data []byte) (*os.File, error) {
	if len(data) == 0 {
		return os.Open(os.DevNull)
	}
	const name = "stdin"
	w, err := openAt(r.folder, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o400)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(data)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	f, err := openAt(r.folder, name, unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Unlinkat(int(r.folder.Fd()), name, 0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
