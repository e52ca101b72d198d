//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Refusals answers the sockets that a box's script asks for and does not get, so
// that a note can tell of them: what a script says of its failure is often no
// more than that a name could not be found. It decides nothing. Whoever would ask
// and be refused without end is refused by the kernel alone from some number on.
type refusals struct {
	file *os.File
	done sync.WaitGroup

	mu      sync.Mutex
	network bool // one of them was for it
}

// mostRefusals is how many are answered.
const mostRefusals = 100

// What a listener of a filter is told, and what it answers (linux/seccomp.h).
type (
	notification struct {
		id         uint64
		pid, flags uint32
		nr         int32
		arch       uint32
		ip         uint64
		args       [6]uint64
	}

	response struct {
		id    uint64
		value int64
		err   int32
		flags uint32
	}
)

// listen answers what the listener's filter asks until close is called.
func listen(fd int) (*refusals, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	r := &refusals{file: os.NewFile(uintptr(fd), "refusals")}
	conn, err := r.file.SyscallConn()
	if err != nil {
		r.file.Close()
		return nil, err
	}
	r.done.Go(func() {
		defer r.file.Close() // from then on the kernel answers that there is no such call
		for range mostRefusals {
			answered := false
			err := conn.Read(func(fd uintptr) bool {
				waits := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
				if n, err := unix.Poll(waits, 0); err != nil || n == 0 {
					return false
				}
				if waits[0].Revents&unix.POLLIN == 0 {
					return true // nobody is left that could ask
				}
				answered = r.answer(fd)
				return true
			})
			if err != nil || !answered {
				return
			}
		}
	})
	return r, nil
}

// answer answers one call. One whose process has ended meanwhile needs no answer.
func (r *refusals) answer(fd uintptr) bool {
	var n notification
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return errno == unix.ENOENT || errno == unix.EINTR
	}
	// A look at the network's interfaces (netlink) is how a name is looked up.
	if family := uint32(n.args[0]); family == unix.AF_INET || family == unix.AF_INET6 || family == unix.AF_NETLINK {
		r.mu.Lock()
		r.network = true
		r.mu.Unlock()
	}
	a := response{id: n.id, err: -int32(unix.EAFNOSUPPORT)}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
	runtime.KeepAlive(&a)
	return true
}

// close is called when no process of the box is left.
func (r *refusals) close() error {
	if r == nil {
		return nil
	}
	_ = r.file.Close() // it may have been closed
	r.done.Wait()
	return nil
}

// note tells of the network, if the script asked for it.
func (r *refusals) note() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.network {
		return ""
	}
	return "the script asked for the network and was refused: runs have none"
}
