//go:build unix

package skill

import "syscall"

const openNonblock = syscall.O_NONBLOCK
