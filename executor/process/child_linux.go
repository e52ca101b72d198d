package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithHost makes the kernel kill the process when the host ends, however it ends.
func dieWithHost(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// programPath names the file that was hashed by its descriptor, so that what is
// started cannot have been swapped since. Where /proc is not mounted it is the
// path.
func programPath(program *os.File, path string) string {
	byFD := fmt.Sprintf("/proc/self/fd/%d", program.Fd())
	if _, err := os.Stat(byFD); err != nil {
		return path
	}
	return byFD
}

// limit forbids core files. A limit of 1 byte, unlike one of 0, also keeps the
// kernel from piping the memory of the script to a handler of the system.
//
// It is set from outside, right after the start, since Go can set no limit
// between fork and exec: a barrier would need ptrace, which a debugger or a
// hardened host denies. By the time it is set the interpreter has begun to load
// but has hardly read the script, and a core file of that moment would lie in
// the private folder, which is removed.
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
