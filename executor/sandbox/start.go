//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setupTime is how long a box may take to be set up. It takes milliseconds; only
// a file system that does not answer takes longer.
const setupTime = 20 * time.Second

// Starters are the threads that start boxes, as many as run Go code at once. The
// kernel kills a box when the *thread* that started it ends, which is how no
// script outlives a host that is killed; so these live as long as the executor.
type starters struct {
	jobs    chan func()
	threads sync.WaitGroup
}

func newStarters() *starters {
	s := &starters{jobs: make(chan func())}
	for range max(1, runtime.GOMAXPROCS(0)) {
		s.threads.Go(func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
			for job := range s.jobs {
				job()
			}
		})
	}
	return s
}

// do runs f on one of the threads and returns when it is done.
func (s *starters) do(f func()) {
	done := make(chan struct{})
	s.jobs <- func() { defer close(done); f() }
	<-done
}

// close ends the threads, and with them every box that is left.
func (s *starters) close() {
	close(s.jobs)
	s.threads.Wait()
}

// A child is a box that was started.
type child struct {
	program *program
	status  *os.File // the socket to its processes
	first   *os.Process
	init    *os.Process // the first process in it; nil: it has not been heard of
	main    int         // the number of the script's process; zero: it has not been heard of
	hidden  bool        // the first process has hidden itself

	over    chan struct{} // closed: nothing more is to be heard of it
	end     message       // its end, as its first process told it; of no tag: it told none
	results []message     // of a probe's attempts

	refusals *refusals // of sockets; nil: the filter refuses them by itself
}

// A message is what a process of the box says.
type message struct {
	tag    byte // F: a step failed; H, L, S, R: see child.ready; P: the result of an attempt; D: the end
	number uint32
	value  int64
	pid    int // of the sender, from the kernel
	file   int // a descriptor that came with it; zero: none
}

// start starts the box of r, in the folder of its runtime. Its files stay the
// caller's.
func (e *Executor) start(r *staged) (*child, error) {
	ours, theirs, err := statusSocket()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	defer r.image.Close() // the box has it, and it is as large as the run's files
	c := &child{program: r.code, status: ours, over: make(chan struct{})}
	stdout, stderr := r.streams.Writers()
	attr := &os.ProcAttr{
		Dir: r.order.runtime.dir(), Env: []string{},
		Files: []*os.File{r.stdin, stdout, stderr, theirs, r.image, e.init},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	attr.Files = append(attr.Files, r.group.enter(attr.Sys)...)
	e.starters.do(func() {
		// The name is looked up in the child, where the file has this number.
		c.first, err = os.StartProcess(fmt.Sprintf("/proc/self/fd/%d", initFD), []string{"tracon"}, attr)
	})
	if err != nil {
		ours.Close()
		return nil, &StepError{"starting a program that is in memory", err, "mount /proc, and see that no security module forbids it"}
	}
	return c, nil
}

// statusSocket makes the pair of sockets over which a box and its host speak.
// Ours tells which process has sent a message.
func statusSocket() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "status")
	err = errors.Join(unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1), unix.SetNonblock(fds[0], true))
	ours = os.NewFile(uintptr(fds[0]), "status") // non-blocking by now, so that it has deadlines
	if err != nil {
		ours.Close()
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// hear waits for a message. It returns io.EOF when no process is left that could
// send one.
func (c *child) hear() (message, error) {
	conn, err := c.status.SyscallConn()
	if err != nil {
		return message{}, err
	}
	var b [16]byte
	oob := make([]byte, unix.CmsgSpace(unix.SizeofUcred)+unix.CmsgSpace(4))
	var n, oobn int
	var got error
	if err := conn.Read(func(fd uintptr) bool {
		for {
			n, oobn, _, _, got = unix.Recvmsg(int(fd), b[:], oob, unix.MSG_CMSG_CLOEXEC)
			if got != unix.EINTR {
				return got != unix.EAGAIN
			}
		}
	}); err != nil {
		return message{}, err
	}
	if got != nil {
		return message{}, got
	}
	if n == 0 {
		return message{}, io.EOF
	}
	if n != len(b) {
		return message{}, errors.New("sandbox: a message has another length")
	}
	m := message{tag: b[0], number: binary.LittleEndian.Uint32(b[4:]), value: int64(binary.LittleEndian.Uint64(b[8:]))}
	parts, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return message{}, err
	}
	for _, part := range parts {
		if cred, err := unix.ParseUnixCredentials(&part); err == nil {
			m.pid = int(cred.Pid)
		}
		if fds, err := unix.ParseUnixRights(&part); err == nil && len(fds) == 1 {
			m.file = fds[0]
		}
	}
	if m.pid == 0 {
		return message{}, errors.New("sandbox: a message without its sender")
	}
	return m, nil
}

// ready returns when the box is set up and its script waits to be released.
func (c *child) ready(ctx context.Context) error {
	if err := c.status.SetReadDeadline(time.Now().Add(setupTime)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.status.SetReadDeadline(time.Unix(1, 0)) })
	err := c.listen(ctx)
	if !stop() && err == nil {
		return context.Cause(ctx) // the deadline may be set at any time now
	}
	return err
}

func (c *child) listen(ctx context.Context) error {
	for c.main == 0 || !c.hidden {
		m, err := c.hear()
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("setting up the box: %w", err)
		}
		switch m.tag {
		case 'F':
			s := c.program.at(m.number)
			return &StepError{Step: string(s.stage), Err: failed(m.value), Remedy: remedies[s.stage]}
		case 'H':
			// Its parent is this process, so its number is its own until it is waited for.
			if c.init, err = os.FindProcess(m.pid); err != nil {
				return err
			}
			if _, err := c.first.Wait(); err != nil {
				return err
			}
			c.first = nil
		case 'L':
			if c.refusals, err = listen(m.file); err != nil {
				return err
			}
		case 'S':
			c.hidden = true
		case 'R':
			c.main = m.pid
		default:
			return errors.New("sandbox: an unknown message")
		}
	}
	return nil
}

// failed is the error in the result of a system call.
func failed(result int64) error {
	if result < 0 && result >= -4095 {
		return syscall.Errno(-result)
	}
	return fmt.Errorf("result %d", result)
}

// release lets the script start, and listens for its end.
func (c *child) release() error {
	if err := c.status.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if _, err := c.status.Write([]byte{'G'}); err != nil {
		return err
	}
	go func() {
		defer close(c.over)
		for {
			m, err := c.hear()
			if err != nil {
				return
			}
			if m.tag == 'P' {
				c.results = append(c.results, m)
			}
			if m.tag == 'F' || m.tag == 'D' && m.pid == c.init.Pid {
				c.end = m
				return
			}
		}
	}()
	return nil
}

// kill stops every process of the box.
func (c *child) kill() {
	if c.init != nil {
		_ = c.init.Kill()
	} else if c.first != nil {
		_ = c.first.Kill()
	}
}

// reap returns when no process of the box is left: the kernel ends the first
// process of a pid namespace only behind all the others.
func (c *child) reap() error {
	// A box that was stopped before its first process was heard of may still be
	// starting it: that one then finds nobody to speak with, and ends.
	var errs []error
	if c.init == nil {
		_ = c.status.SetReadDeadline(time.Now().Add(setupTime))
		if m, err := c.hear(); err == nil && m.tag == 'H' {
			if c.init, err = os.FindProcess(m.pid); err == nil {
				_ = c.init.Kill()
			}
		}
	}
	for _, p := range []*os.Process{c.first, c.init} {
		if p != nil {
			_, err := p.Wait()
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, c.refusals.close(), c.status.Close())...)
}
