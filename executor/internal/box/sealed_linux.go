package box

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Sealed returns a file in memory that holds what write writes, and that nobody
// can change any more: neither through this descriptor nor through any other. It
// is a program where kind is unix.MFD_EXEC; otherwise it never will be.
func Sealed(name string, kind int, write func(f *os.File) error) (*os.File, error) {
	if kind == 0 {
		kind = unix.MFD_NOEXEC_SEAL
	}
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|kind)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	err = write(f)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Input returns what a script reads on standard input: a sealed piece of memory.
// It has no writer, so a script that never reads it blocks nobody. For no data it
// is the null device.
func Input(data []byte) (*os.File, error) {
	if len(data) == 0 {
		return os.Open(os.DevNull)
	}
	return Sealed("stdin", 0, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}
