//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A procFolder is what the kernel tells of one process: its folder below /proc.
// It is read by system calls alone: each run is looked at with some 30 of them, and
// files of package os, which ask whether they can be waited for, take twice as long.
type procFolder struct {
	fd  int
	buf []byte
}

// openProc opens the folder of a process. Its number is that of the process for
// as long as nobody has waited for it; the folder of another one that gets the
// number later is not this one.
func openProc(pid int) (*procFolder, error) {
	name := "/proc/" + strconv.Itoa(pid)
	fd, err := unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return &procFolder{fd, make([]byte, 16<<10)}, nil
}

func (d *procFolder) close() { unix.Close(d.fd) }

// whole calls f with more and more space until what it returns fits in.
func (d *procFolder) whole(op, name string, f func() (int, error)) (string, error) {
	for {
		n, err := f()
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return "", &os.PathError{Op: op, Path: name, Err: err}
		}
		if n < len(d.buf) {
			return string(d.buf[:n]), nil
		}
		d.buf = make([]byte, 2*len(d.buf))
	}
}

// link returns where a link leads.
func (d *procFolder) link(name string) (string, error) {
	return d.whole("readlink", name, func() (int, error) { return unix.Readlinkat(d.fd, name, d.buf) })
}

func (d *procFolder) open(name string, flags int) (int, error) {
	fd, err := unix.Openat(d.fd, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// read returns the text of a file.
func (d *procFolder) read(name string) (string, error) {
	fd, err := d.open(name, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return d.whole("read", name, func() (n int, err error) {
		for n < len(d.buf) {
			more, err := unix.Pread(fd, d.buf[n:], int64(n))
			if more <= 0 || err != nil {
				return n, err
			}
			n += more
		}
		return n, nil
	})
}

// list returns the names in a folder.
func (d *procFolder) list(name string) (names []string, err error) {
	fd, err := d.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for {
		n, err := unix.ReadDirent(fd, d.buf)
		if err != nil {
			return nil, &os.PathError{Op: "readdir", Path: name, Err: err}
		}
		if n <= 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(d.buf[:n], -1, names)
	}
}

// stat looks at the file that a link leads to.
func (d *procFolder) stat(name string, st *unix.Stat_t) error {
	if err := unix.Fstatat(d.fd, name, st, 0); err != nil {
		return &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return nil
}

// same reports whether the process has the file of f open as this descriptor.
func (d *procFolder) same(fd int, f *os.File) (bool, error) {
	var got, want unix.Stat_t
	if err := d.stat("fd/"+strconv.Itoa(fd), &got); err != nil {
		return false, err
	}
	if err := unix.Fstat(int(f.Fd()), &want); err != nil {
		return false, os.NewSyscallError("fstat", err)
	}
	return got.Dev == want.Dev && got.Ino == want.Ino, nil
}
