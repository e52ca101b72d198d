//go:build unix && !linux

package box

import "golang.org/x/sys/unix"

// unlock gives the owner of a folder that cannot be opened its rights back.
func unlock(folder interface{ Fd() uintptr }, name string) error {
	return unix.Fchmodat(int(folder.Fd()), name, 0o700, unix.AT_SYMLINK_NOFOLLOW)
}
