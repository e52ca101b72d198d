//go:build linux

package calls

import "golang.org/x/sys/unix"

const (
	arch    = unix.AUDIT_ARCH_AARCH64
	foreign = 0 // there is no second table

	sysFstatat = unix.SYS_FSTATAT
)

var allowedHere, killedHere []uintptr

var watches = []uintptr{unix.SYS_INOTIFY_INIT1, unix.SYS_INOTIFY_ADD_WATCH}
