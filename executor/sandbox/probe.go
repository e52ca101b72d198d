//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/gate"
	"golang.org/x/sys/unix"
)

// An attempt is a system call that a probe makes where a script would run: with
// the very rights of a script, and without needing any interpreter. What it must
// come to is known; anything else is a wall that does not stand.
type attempt struct {
	wall string
	what string // the attempt, in words
	nr   uintptr
	args func(p *program) []value
	want []unix.Errno // one of these; none: it must succeed, as a control

	stays bool // a process that it starts stays until the box ends, and makes no attempts
}

// futexWait waits for as long as a word has the value (linux/futex.h).
const futexWait = 0 | 128 // FUTEX_WAIT, for this process alone

// try adds the attempts, each with a message of its result.
func (p *program) try(list []attempt) {
	p.stage = "a probe"
	for i, a := range list {
		message := make([]byte, 16)
		message[0] = 'P'
		binary.LittleEndian.PutUint32(message[4:], uint32(i))
		record := p.record(message)
		var args []value
		if a.args != nil {
			args = a.args(p)
		}
		p.last = variable(record.n + 8)
		p.call(a.nr, args...).into(p.last).mayFail()
		if a.stays { // whoever sees 0 is the one that was started: nothing wakes it
			p.call(unix.SYS_FUTEX, number(p.last), number(futexWait), number(0), number(0)).mayFail()
		}
		p.call(unix.SYS_WRITE, number(statusFD), record, number(len(message)))
	}
	p.call(unix.SYS_EXIT_GROUP, number(0))
}

// came says what the attempt came to, where that is not what it must.
func (a attempt) came(result int32) error {
	errno := unix.Errno(0)
	if result < 0 && result > -4096 {
		errno = unix.Errno(-result)
	}
	switch {
	case len(a.want) == 0 && errno == 0, slices.Contains(a.want, errno):
		return nil
	case errno == 0:
		return fmt.Errorf("%s: it succeeded", a.what)
	}
	return fmt.Errorf("%s: %w", a.what, errno)
}

func opens(path string, flags int) func(*program) []value {
	return func(p *program) []value {
		return []value{atCwd, p.text(path), number(flags), number(0o600)}
	}
}

func numbers[N ~int | ~uint32 | ~uint64](list ...N) func(*program) []value {
	return func(*program) []value {
		var v []value
		for _, n := range list {
			v = append(v, number(n))
		}
		return v
	}
}

// attempts are what every box must withstand that shows these folders.
func attempts(folders []string) []attempt {
	var list []attempt
	add := func(wall, what string, nr uintptr, args func(*program) []value, want ...unix.Errno) {
		list = append(list, attempt{wall: wall, what: what, nr: nr, args: args, want: want})
	}
	for _, path := range []string{"/etc/shadow", "/root", "/home", "/var", "/sys", "/run", "/boot"} {
		if slices.ContainsFunc(folders, func(f string) bool { return below(f, path) }) {
			continue
		}
		add(wallFiles, "opening "+path, unix.SYS_OPENAT, opens(path, unix.O_PATH), unix.ENOENT)
	}
	add(wallFiles, "reading /usr", unix.SYS_OPENAT, opens("/usr", unix.O_RDONLY|unix.O_DIRECTORY))
	add(wallFiles, "writing into /usr", unix.SYS_OPENAT, opens("/usr/probe", unix.O_WRONLY|unix.O_CREAT), unix.EROFS, unix.EACCES)
	add(wallFiles, "writing into /", unix.SYS_OPENAT, opens("/probe", unix.O_WRONLY|unix.O_CREAT), unix.EROFS, unix.EACCES)
	add(wallFiles, "writing into /skill", unix.SYS_OPENAT, opens(skillDir+"/probe", unix.O_WRONLY|unix.O_CREAT))
	add(wallFiles, "writing into /outputs", unix.SYS_OPENAT, opens(outputsDir+"/probe", unix.O_WRONLY|unix.O_CREAT))
	add(wallLandlock, "listing /", unix.SYS_OPENAT, opens("/", unix.O_RDONLY|unix.O_DIRECTORY), unix.EACCES)
	add(wallLandlock, "changing what is mounted", unix.SYS_OPENAT, opens("/dev", unix.O_RDONLY|unix.O_DIRECTORY), unix.EACCES)
	add(wallNetwork, "making a unix socket", unix.SYS_SOCKET, numbers(unix.AF_UNIX, unix.SOCK_STREAM, 0))
	for _, f := range []struct {
		name         string
		family, kind int
	}{
		{"IPv4", unix.AF_INET, unix.SOCK_STREAM}, {"IPv6", unix.AF_INET6, unix.SOCK_STREAM}, {"netlink", unix.AF_NETLINK, unix.SOCK_DGRAM},
		{"packet", unix.AF_PACKET, unix.SOCK_RAW}, {"vsock", unix.AF_VSOCK, unix.SOCK_STREAM}, {"crypto", unix.AF_ALG, unix.SOCK_SEQPACKET},
	} {
		add(wallNetwork, "making a socket of "+f.name, unix.SYS_SOCKET, numbers(f.family, f.kind, 0), unix.EAFNOSUPPORT)
	}
	add(wallProcesses, "looking at the box's first process", unix.SYS_OPENAT, opens("/proc/1/status", unix.O_RDONLY), unix.ENOENT)
	add(wallProcesses, "looking at itself", unix.SYS_OPENAT, opens("/proc/self/status", unix.O_RDONLY))
	add(wallProcesses, "looking at the kernel", unix.SYS_OPENAT, opens("/proc/sys", unix.O_PATH), unix.ENOENT)
	// Any that it can see: the host's number is not asked for, since the box has processes
	// of its own by low numbers, and a host that is a container's first process has one too.
	add(wallProcesses, "stopping a process of the host", unix.SYS_KILL, numbers(-1, 0), unix.ESRCH)
	add(wallProcesses, "tracing a process", unix.SYS_PTRACE, numbers(unix.PTRACE_ATTACH, 1, 0, 0), unix.EPERM)
	add(wallPrivileges, "becoming root", unix.SYS_SETRESUID, numbers(0, 0, 0), unix.EINVAL, unix.EPERM)
	add(wallPrivileges, "making a user namespace", unix.SYS_UNSHARE, numbers(unix.CLONE_NEWUSER), unix.EPERM)
	add(wallPrivileges, "starting a process in one", unix.SYS_CLONE, numbers(unix.CLONE_NEWUSER|int(unix.SIGCHLD), 0, 0, 0, 0), unix.EPERM)
	add(wallPrivileges, "having it hidden from the filter", unix.SYS_CLONE3, numbers(0, 0), unix.ENOSYS)
	add(wallCalls, "io_uring", unix.SYS_IO_URING_SETUP, numbers(1, 0), unix.ENOSYS)
	add(wallCalls, "keyrings", unix.SYS_KEYCTL, func(*program) []value {
		return []value{number(unix.KEYCTL_GET_KEYRING_ID), {n: ^uint64(2)}, number(1)} // of the session
	}, unix.ENOSYS)
	add(wallCalls, "userfaultfd", unix.SYS_USERFAULTFD, numbers(0), unix.ENOSYS)
	add(wallCalls, "programs without a file", unix.SYS_MEMFD_CREATE, func(p *program) []value { return []value{p.text("probe"), number(0)} }, unix.ENOSYS)
	add(wallCalls, "splice", unix.SYS_SPLICE, numbers(0, 0, 0, 0, 0, 0), unix.ENOSYS)
	add(wallDisk, "writing into /tmp", unix.SYS_OPENAT, opens(tmpDir+"/probe", unix.O_WRONLY|unix.O_CREAT))
	add(wallDisk, "writing more than there is space", unix.SYS_FALLOCATE, func(p *program) []value {
		return []value{p.last.value(), number(0), number(0), number(2 * leastSpace)}
	}, unix.ENOSPC)
	return list
}

// A probe is a box that makes attempts.
type probe struct {
	attempts []attempt
	limits   box.Limits
}

// A finding is what a probe came to.
type finding struct {
	results     []message
	status      syscall.WaitStatus
	told        bool // there is a status
	outOfMemory bool
	posture     *posture
}

// hold says which attempts did not come to what they must.
func (f finding) hold(list []attempt) error {
	if !f.told || len(f.results) != len(list) {
		return fmt.Errorf("a probe ended after %d of %d attempts", len(f.results), len(list))
	}
	var errs []error
	for i, a := range list {
		if err := a.came(int32(f.results[i].value)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", a.wall, err))
		}
	}
	return errors.Join(errs...)
}

// try makes a box without a network for the probe.
func (e *Executor) try(p probe) (finding, error) { return e.tryWith(gate.NoNetwork, p) }

// tryWith makes a box for the probe.
func (e *Executor) tryWith(network gate.Network, p probe) (f finding, err error) {
	r := &staged{
		flooded: make(chan struct{}, 2),
		kind:    kind{memory: p.limits.Memory, processes: p.limits.Processes, network: network},
		order: order{
			interpreter: "/usr", space: leastSpace, attempts: p.attempts,
			rlimits: e.setup.within(rlimits(e.limits, "", p.limits, time.Second)),
		},
	}
	defer func() { e.clean(r) }()
	if r.program, err = os.OpenFile("/usr", unix.O_PATH|unix.O_DIRECTORY, 0); err != nil {
		return f, err
	}
	if r.stdin, err = box.Input(nil); err != nil {
		return f, err
	}
	if r.streams, err = box.NewStreams(0, nil, nil); err != nil {
		return f, err
	}
	if r.hull, err = e.erect(r.kind); err != nil {
		return f, err
	}
	ctx := context.Background()
	if f.posture, err = e.admit(ctx, r); err != nil {
		return f, err
	}
	r.streams.Start()
	c := r.hull.child
	why := e.underWay.Await(ctx, c.over, r.flooded, setupTime)
	c.kill()
	if err := c.reap(); err != nil {
		return f, err
	}
	<-c.over
	r.streams.Finish(drainTime)
	if why != box.Ended {
		return f, fmt.Errorf("a probe does not end")
	}
	f.results, f.told, f.status, f.outOfMemory = c.results, c.end.tag == 'D', syscall.WaitStatus(c.end.value), r.hull.group.OutOfMemory()
	return f, nil
}
