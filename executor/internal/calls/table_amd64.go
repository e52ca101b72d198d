//go:build linux

package calls

import "golang.org/x/sys/unix"

const (
	arch    = unix.AUDIT_ARCH_X86_64
	foreign = 0x4000_0000 // the system calls of x32 from here on

	sysFstatat = unix.SYS_NEWFSTATAT
)

// allowedHere are older forms of what is allowed everywhere.
var allowedHere = []uintptr{
	unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_MKDIR,
	unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_RENAME, unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_CHMOD, unix.SYS_CHOWN,
	unix.SYS_LCHOWN, unix.SYS_MKNOD, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT, unix.SYS_GETDENTS,
	unix.SYS_DUP2, unix.SYS_PIPE, unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_EPOLL_CREATE, unix.SYS_EPOLL_WAIT,
	unix.SYS_EVENTFD, unix.SYS_SIGNALFD, unix.SYS_INOTIFY_INIT, unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_PAUSE,
	unix.SYS_ALARM, unix.SYS_GETPGRP, unix.SYS_TIME, unix.SYS_ARCH_PRCTL, unix.SYS_MAP_SHADOW_STACK,
}

var watches = []uintptr{unix.SYS_INOTIFY_INIT, unix.SYS_INOTIFY_INIT1, unix.SYS_INOTIFY_ADD_WATCH}

var killedHere = []uintptr{unix.SYS_IOPL, unix.SYS_IOPERM}
