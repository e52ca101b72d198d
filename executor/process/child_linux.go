package process

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithHost makes the kernel kill the process when the host ends, however it ends.
func dieWithHost(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// sealFiles makes every file that the host has open close when a program is
// started. Go opens its own so; this is for those that the host inherited, or
// that a C library opened. What os/exec is told to hand on it still hands on.
func sealFiles() error {
	err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	entries, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// aim returns the path by which the program is started, and moves files so that
// it holds: the program's own descriptor, so that what was hashed is what
// starts, whatever became of its path since. Where /proc is not mounted it is
// the path.
//
// Between fork and exec, Go puts descriptors of its own above the highest of
// files, and 0 to 2 below: a program in either place would be overwritten before
// it starts. So it is moved above 2, and the last of files above it.
func aim(program *os.File, path string, files []*os.File) (name string, undo func(), err error) {
	if !hasProc() {
		return path, func() {}, nil
	}
	p, err := above(program, 2)
	if err != nil {
		return "", nil, err
	}
	last := len(files) - 1
	f, err := above(files[last], int(p.Fd()))
	if err != nil {
		p.Close()
		return "", nil, err
	}
	files[last] = f
	return fmt.Sprintf("/proc/self/fd/%d", p.Fd()), func() { p.Close(); f.Close() }, nil
}

// hasProc reports whether /proc was mounted when a program was first started.
var hasProc = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/self/fd")
	return err == nil
})

// above returns a second descriptor of the file, with a number above n.
func above(f *os.File, n int) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, n+1)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// limit forbids core files. A limit of 1 byte, unlike one of 0, also keeps the
// kernel from piping the memory of the script to a handler of the system.
//
// It is set from outside, right after the start, since Go can set no limit
// between fork and exec: a barrier would need ptrace, which a debugger or a
// hardened host denies. By the time it is set the interpreter has begun to load
// and, unless the host is very busy, has hardly read the script. A core file of that
// moment, or of a process that the script started by then, would lie in the private
// folder, which is removed.
func limit(pid int) error {
	err := unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}, nil)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return os.NewSyscallError("prlimit", err)
	}
	return nil
}

// awaitEnd returns when the process has ended and leaves it unreaped, so that
// its number, which is that of its group and session, stays taken until the rest
// of the group was stopped.
func awaitEnd(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
