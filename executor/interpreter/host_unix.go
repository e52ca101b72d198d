//go:build unix

package interpreter

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An identity changes whenever the content of a file may have: nobody but the
// owner of the clock can set the time of change.
type identity struct {
	dev, ino, size, mtime, ctime int64
}

func (id identity) age() time.Duration { return time.Since(time.Unix(0, max(id.mtime, id.ctime))) }

func identify(f *os.File) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return identity{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return identity{}, errors.New("it is not a regular file")
	}
	return identity{int64(st.Dev), int64(st.Ino), st.Size, st.Mtim.Nano(), st.Ctim.Nano()}, nil
}

// ownGroup puts the probe into a process group, so that what a wrapper starts
// can be stopped with it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// killGroup stops what a wrapper left behind.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
