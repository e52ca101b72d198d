//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
	"golang.org/x/sys/unix"
)

// Descriptors of the agent that becomes the script, behind the three streams.
const (
	ordersFD = 3 + iota // what it is to become
	tellFD              // why it could not
	wordsFD             // the script of an interpreter that waits
	saidFD              // by an interpreter that waits
	inputFD             // standard input, where there is any
)

// A confined is what the agent tells itself of the script.
type confined struct {
	frame.Interpreter
	More  []string // arguments
	Waits bool     // it has wordsFD and saidFD
}

// confine becomes the script: it takes the runtime for its root, gives up every right,
// takes the filter, and starts the interpreter in its own place.
func confine() {
	runtime.LockOSThread() // what is given up is the thread's
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(tellFD)
	step, err := become()
	errno := syscall.EIO
	errors.As(err, &errno)
	_, _ = unix.Write(tellFD, frame.Failure{Step: step, Errno: uint32(errno)}.Bytes())
}

func become() (frame.Step, error) {
	text, err := io.ReadAll(os.NewFile(ordersFD, "orders"))
	if err != nil {
		return frame.Wall, err
	}
	var c confined
	if err := json.Unmarshal(text, &c); err != nil {
		return frame.Wall, err
	}
	unix.Umask(0o077)
	dir, closed := frame.SkillDir, uint(tellFD+1)
	if c.Waits { // the folder is not there yet
		dir, closed = "/", inputFD
	}
	for _, call := range []func() error{
		func() error { return unix.Unshare(unix.CLONE_NEWCGROUP) }, // its own group is all that it sees
		func() error { return unix.Chroot(rootDir) },
		func() error { return unix.Chdir(dir) },
		func() error { return input(c.Input) },
		func() error { return unix.CloseRange(closed, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) },
		func() error { return limits(c.Rlimits) },
		dropBounds,
		func() error { return syscall.Setgroups([]int{}) },
		func() error { return syscall.Setresgid(frame.InsideID, frame.InsideID, frame.InsideID) },
		func() error { return syscall.Setresuid(frame.InsideID, frame.InsideID, frame.InsideID) },
		func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) },
		func() error { return filter(c.Filter) },
	} {
		if err := call(); err != nil {
			return frame.Wall, err
		}
	}
	argv := append(c.Command, c.More...)
	return frame.Start, syscall.Exec(argv[0], argv, c.Env)
}

// input makes the file of it standard input, where there is any.
func input(any bool) error {
	if !any {
		return nil
	}
	return unix.Dup2(inputFD, 0)
}

func limits(list []frame.Rlimit) error {
	for _, r := range list {
		if err := syscall.Setrlimit(r.What, &syscall.Rlimit{Cur: r.Limit, Max: r.Limit}); err != nil {
			return err
		}
	}
	return nil
}

// dropBounds gives up every capability for good.
func dropBounds() error {
	for c := uintptr(0); ; c++ {
		switch err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); {
		case err == unix.EINVAL && c > 0:
			return nil // the one before was the last
		case err != nil:
			return err
		}
	}
}

// filter takes the filter of system calls.
func filter(b []byte) error {
	const instruction = 8
	if len(b) == 0 || len(b)%instruction != 0 {
		return unix.EINVAL
	}
	list := make([]unix.SockFilter, len(b)/instruction)
	if err := binary.Read(bytes.NewReader(b), binary.NativeEndian, list); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}
