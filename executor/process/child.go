//go:build linux || darwin

package process

import (
	"os"
	"runtime"
	"syscall"

	"github.com/tracon-go/tracon/executor/internal/box"
)

// A child is the first process of a run.
type child struct {
	process  *os.Process
	limitErr error         // why it could not be limited; it must be stopped then
	ended    chan struct{} // closed: it has ended
	release  chan struct{}
	reaped   chan struct{}
	state    *os.ProcessState
	err      error
}

// start starts the interpreter with the files, the cgroup and the folder of r. Its thread is kept until the process was reaped:
// the kernel kills the process when the *thread* that started it ends, which is
// how no script outlives a host that is killed.
func start(r *staged, env, argv []string) (*child, error) {
	stdout, stderr := r.streams.Writers()
	attr := &os.ProcAttr{
		Dir: r.Path(box.SkillDir), Env: env,
		Files: []*os.File{r.stdin, stdout, stderr},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	if err := sealFiles(); err != nil {
		return nil, err
	}
	name, undo, err := aim(r.program, argv[0], attr.Files)
	if err != nil {
		return nil, err
	}
	defer undo()
	dieWithHost(attr.Sys)
	r.cgroup.Enter(attr.Sys)
	c := &child{ended: make(chan struct{}), release: make(chan struct{}), reaped: make(chan struct{})}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		c.process, err = os.StartProcess(name, argv, attr)
		if err == nil {
			c.limitErr = limit(c.process.Pid)
		}
		ready <- err
		if err != nil {
			return
		}
		awaitEnd(c.process.Pid)
		close(c.ended)
		<-c.release
		c.state, c.err = c.process.Wait()
		close(c.reaped)
	}()
	if err := <-ready; err != nil {
		return nil, err
	}
	return c, nil
}

// reap waits for the process and gives its number back. It is called once.
func (c *child) reap() (syscall.WaitStatus, error) {
	close(c.release)
	<-c.reaped
	if c.err != nil {
		return 0, c.err
	}
	return c.state.Sys().(syscall.WaitStatus), nil
}
