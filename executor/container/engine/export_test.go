//go:build linux && (amd64 || arm64)

package engine

import "golang.org/x/sys/unix"

// NewUnseen returns an Executor that does not look at what a container tells of its walls,
// so that it is the probe that finds what is missing.
func NewUnseen(c Config) (*Executor, error) { return open(c, Unsee) }

// Unsee has it look no more.
func Unsee(e *Executor) {
	e.look = func(order, map[string]string) (string, error) { return "", nil }
}

// Unfilter has each script make every system call that the engine lets it make.
func Unfilter(e *Executor) {
	e.filter = []byte{unix.BPF_RET, 0, 0, 0, 0, 0, 0xff, 0x7f} // SECCOMP_RET_ALLOW
}
