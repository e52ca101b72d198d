//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/executor/internal/box"
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
	code   *program // by which it was made
	call   *program // of its call; nil: it has none yet
	status *os.File // the socket to its processes
	first  *os.Process
	init   *os.Process // the first process in it; nil: it has not been heard of
	main   int         // the number of the script's process; zero: it has not been heard of
	waits  bool        // it is made, but for what depends on the call
	hidden bool        // the first process has hidden itself
	reaped bool

	over    chan struct{} // closed: nothing more is to be heard of it
	end     message       // its end, as its first process told it; of no tag: it told none
	results []message     // of a probe's attempts

	refusals *refusals // of sockets; nil: the filter refuses them by itself
}

// A message is what a process of the box says.
type message struct {
	tag    byte // F: a step failed; H, W, L, S, R: see child.hearUntil; P: the result of an attempt; D: the end
	number uint32
	value  int64
	pid    int // of the sender, from the kernel
	file   int // a descriptor that came with it; zero: none
}

// start starts the box that the program makes, in the folder of its runtime.
func (e *Executor) start(code *program, runtime *runtimeRoot, g box.Group) (*child, error) {
	image, err := code.seal()
	if err != nil {
		return nil, err
	}
	defer image.Close() // the box has it
	ours, theirs, err := statusSocket()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	c := &child{code: code, status: ours, over: make(chan struct{})}
	attr := &os.ProcAttr{
		Dir: runtime.dir(), Env: []string{},
		Files: []*os.File{e.null, e.null, e.null, theirs, image, e.init},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	attr.Files = append(attr.Files, g.Enter(attr.Sys)...)
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

// send hands the box its call, and the files that it needs, which stay the caller's.
// The process that made the namespaces is gone then: it counts to the run's limit of
// processes. A box that has ended has said why, which whoever listens is told.
func (c *child) send(ctx context.Context, call *program, stdin, stdout, stderr *os.File) error {
	image, err := call.seal()
	if err != nil {
		return err
	}
	defer image.Close() // the box has it, and it is as large as the run's files
	info, err := image.Stat()
	if err != nil {
		return err
	}
	if info.Size() > math.MaxInt32 {
		return fmt.Errorf("sandbox: what a run needs is too much: %d bytes", info.Size())
	}
	if err := c.hearUntil(ctx, func() bool { return c.init != nil }); err != nil {
		return err
	}
	c.call = call
	message := binary.LittleEndian.AppendUint64(nil, uint64(info.Size()))
	files := make([]int, callFiles)
	for i, f := range map[int]*os.File{callProgram: image, callStdin: stdin, callStdout: stdout, callStderr: stderr} {
		files[i] = int(f.Fd())
	}
	conn, err := c.status.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = conn.Write(func(fd uintptr) bool {
		for {
			sent = unix.Sendmsg(int(fd), append(message, make([]byte, 8)...), unix.UnixRights(files...), nil, unix.MSG_NOSIGNAL)
			if sent != unix.EINTR {
				return sent != unix.EAGAIN
			}
		}
	})
	if err == nil && !errors.Is(sent, unix.EPIPE) && !errors.Is(sent, unix.ECONNRESET) {
		err = sent
	}
	return err
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
			// A box that ended before it took its call: what it said comes behind this.
			if got != unix.EINTR && got != unix.ECONNRESET {
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

// made returns when the box waits for its call.
func (c *child) made(ctx context.Context) error {
	return c.hearUntil(ctx, func() bool { return c.waits })
}

// ready returns when the box, which has its call, is set up and its script waits to
// be released.
func (c *child) ready(ctx context.Context) error {
	return c.hearUntil(ctx, func() bool { return c.main != 0 && c.hidden })
}

func (c *child) hearUntil(ctx context.Context, done func() bool) error {
	if err := c.status.SetReadDeadline(time.Now().Add(setupTime)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.status.SetReadDeadline(time.Unix(1, 0)) })
	err := c.listen(ctx, done)
	if !stop() && err == nil {
		return context.Cause(ctx) // the deadline may be set at any time now
	}
	return err
}

func (c *child) listen(ctx context.Context, done func() bool) error {
	for !done() {
		m, err := c.hear()
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("setting up the box: %w", err)
		}
		switch m.tag {
		case 'F':
			return c.failure(m)
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
		case 'W':
			c.waits = true
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

// failure is the error in the message of a step that failed.
func (c *child) failure(m message) error {
	at := stage("an unknown step")
	for _, p := range []*program{c.code, c.call} {
		if s := p.at(m.number); s != nil {
			at = s.stage
		}
	}
	return &StepError{Step: string(at), Err: failed(m.value), Remedy: remedies[at]}
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
// process of a pid namespace only behind all the others. It may be called again.
func (c *child) reap() error {
	if c.reaped {
		return nil
	}
	c.reaped = true
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
