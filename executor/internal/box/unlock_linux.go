package box

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// unlock gives the owner of a folder that cannot be opened its rights back. A
// descriptor that only names the folder needs no right on it, is never that of a
// link's target, and leads back to exactly that folder through /proc.
func unlock(folder interface{ Fd() uintptr }, name string) error {
	fd, err := unix.Openat(int(folder.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o700)
}
