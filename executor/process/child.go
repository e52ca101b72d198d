//go:build linux || darwin

package process

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/executor/internal/box"
)

// A child is the first process of a run.
type child struct {
	process  *os.Process
	born     time.Time     // a moment before it was started
	limitErr error         // why it could not be limited; it must be stopped then
	ended    chan struct{} // closed: it has ended, and was not reaped
}

// start starts the interpreter with the files, the cgroup and the folder of r.
// Its thread is kept until the process has ended: the kernel kills the process
// when the *thread* that started it ends, which is how no script outlives a host
// that is killed.
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
	c := &child{born: time.Now(), ended: make(chan struct{})}
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
	}()
	if err := <-ready; err != nil {
		return nil, err
	}
	return c, nil
}

// reap waits until the process has ended and gives its number back. It is called once.
func (c *child) reap() (syscall.WaitStatus, error) {
	<-c.ended
	state, err := c.process.Wait()
	if err != nil {
		return 0, err
	}
	return state.Sys().(syscall.WaitStatus), nil
}
