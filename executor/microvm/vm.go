//go:build linux && amd64

package microvm

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
)

// Memory of a machine beside the script's, and of a monitor beside the machine's, in
// bytes; and how many threads a monitor needs.
const (
	machineMemory = 160 << 20
	monitorMemory = 192 << 20
	monitorTasks  = 48
)

// bootTries is how many machines are started until one comes up.
const bootTries = 3

// A vm is a machine that was started.
type vm struct {
	talk
	machine machine
	child   *child
	group   box.Group
	id      int
	files   map[inode]bool // that the monitor was given
	seen    string         // what was seen of the monitor, from outside
	control *os.File
}

// A size is what a machine has of everything.
type size struct {
	tenant     string
	memory     int64    // bytes; of the machine
	disk       *os.File // nil: none
	accelerate bool
	controlled bool
}

// boot starts a machine, and returns when its agent was heard and its monitor looked
// at. One that does not come up in time is killed and counted, and another one started:
// it has been told nothing.
func (e *Executor) boot(ctx context.Context, s size) (v *vm, err error) {
	for try := range bootTries {
		if v, err = e.bootOnce(ctx, s); err == nil {
			return v, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		e.log.Warn("a machine did not come up and was killed", "try", try+1, "ever", e.hung.Add(1), "err", err)
	}
	return nil, err
}

// Hung returns how many machines did not come up in time, since New, and were killed.
func (e *Executor) Hung() int { return int(e.hung.Load()) }

func (e *Executor) bootOnce(ctx context.Context, s size) (*vm, error) {
	v, err := e.launch(s)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { v.until(time.Now()) })
	v.until(time.Now().Add(e.config.BootTime))
	if ctx.Err() != nil {
		v.until(time.Now())
	}
	_, _, err = v.hear(frame.Hello)
	stop()
	if err == nil {
		v.until(time.Time{})
		v.seen, err = e.inspect(v)
	}
	if err != nil {
		e.raze(v)
		return nil, fmt.Errorf("%w: %w; the monitor said %s", ErrMachine, err, v.child.said)
	}
	return v, nil
}

// launch starts a monitor.
func (e *Executor) launch(s size) (v *vm, err error) {
	v = &vm{id: -1, machine: machine{
		kernel: e.kit.Kernel(), initrd: e.kit.Initrd(), disk: s.disk, memory: s.memory,
		processors: int(math.Ceil(e.config.Processors)), counter: e.counter, accelerate: s.accelerate,
	}}
	defer func() {
		if err != nil {
			e.raze(v)
		}
	}()
	if v.id, err = e.ids.Take(); err != nil {
		return v, err
	}
	if v.group, err = e.limits.NewRun(s.tenant, "machine-"+rand.Text(), e.limits.Of(s.memory+monitorMemory, monitorTasks)); err != nil {
		return v, err
	}
	ours, theirs, err := newTalk()
	if err != nil {
		return v, err
	}
	defer theirs.Close()
	v.talk, v.machine.port = talk{ours, bufio.NewReaderSize(ours, 64<<10)}, theirs
	if s.controlled {
		if v.control, v.machine.control, err = newTalk(); err != nil {
			return v, err
		}
		defer v.machine.control.Close()
	}
	if v.files, err = inodes(v.machine.files()); err != nil {
		return v, err
	}
	if v.child, err = start(e.monitor, v.machine, v.group, v.id); err != nil {
		return v, fmt.Errorf("starting the monitor: %w", err)
	}
	v.machine.port, v.machine.control = nil, nil // they are the monitor's alone now
	return v, nil
}

// raze kills the machine, and leaves nothing of it. It may be called again.
func (e *Executor) raze(v *vm) {
	if v.child != nil {
		v.child.kill()
	}
	if err := errors.Join(v.group.Stop(), v.group.Remove()); err != nil {
		e.log.Error("what a machine left was not removed", "err", err)
	}
	v.group = box.Group{}
	if v.f != nil {
		v.f.Close()
	}
	if v.control != nil {
		v.control.Close()
	}
	e.ids.Give(v.id)
	v.id = -1
}
