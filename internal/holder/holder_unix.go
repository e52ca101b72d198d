//go:build unix && !linux

package holder

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

func self() string { return strconv.Itoa(os.Getpid()) }

func dead(text string) bool {
	pid, err := strconv.Atoi(text)
	return err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
