//go:build unix

package box

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// openAt opens the entry name of the folder, which is one path element, and
// follows no link.
func openAt(folder *os.File, name string, flags int, mode uint32) (*os.File, error) {
	for {
		fd, err := unix.Openat(int(folder.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		if err == nil {
			return os.NewFile(uintptr(fd), name), nil
		}
		if err != unix.EINTR {
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

func openDir(folder *os.File, name string) (*os.File, error) {
	return openAt(folder, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

// makeDir creates a folder that only the user of this process may enter.
func makeDir(folder *os.File, name string) (*os.File, error) {
	if err := mkdir(folder, name); err != nil {
		return nil, err
	}
	return openDir(folder, name)
}

func mkdir(folder *os.File, name string) error {
	if err := unix.Mkdirat(int(folder.Fd()), name, 0o700); err != nil {
		return &os.PathError{Op: "mkdir", Path: name, Err: err}
	}
	return nil
}

func modified(st unix.Stat_t) time.Time { return time.Unix(st.Mtim.Unix()) }
