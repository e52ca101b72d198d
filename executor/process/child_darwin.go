package process

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithHost does nothing: the system has no such signal. The next start of an
// executor does not find such a process either; its posture says so.
func dieWithHost(*syscall.SysProcAttr) {}

// sealFiles makes every file that the host has open close when a program is
// started. Go opens its own so; this is for those that the host inherited, or
// that a C library opened.
func sealFiles() error {
	entries, err := os.ReadDir("/dev/fd")
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// aim returns the path: this system starts nothing by a descriptor.
func aim(_ *os.File, path string, _ []*os.File) (string, func(), error) {
	return path, func() {}, nil
}

// limit does nothing: a process cannot be limited from outside here, and core
// files are off unless somebody switches them on.
func limit(int) error { return nil }

// awaitEnd returns when the process has ended and leaves it unreaped.
func awaitEnd(pid int) {
	kq, err := unix.Kqueue()
	if err != nil {
		return // what waits behind reaps a moment earlier
	}
	defer unix.Close(kq)
	watch := unix.Kevent_t{Ident: uint64(pid), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT}
	for {
		n, err := unix.Kevent(kq, []unix.Kevent_t{watch}, make([]unix.Kevent_t, 1), nil)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
