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

	"github.com/tracon-go/tracon/bundle"
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
	from    bundle.Digest  // the saved machine of which it was restored; zero: it was booted
	control control
}

// A size is what a machine has of everything.
type size struct {
	tenant     string
	memory     int64 // bytes; of the machine
	runtime    bundle.Digest
	disk       *os.File // of the runtime; nil: none
	accelerate bool
	loaded     string // the frame.Ready of an interpreter that is in its memory when it is saved; none where it is empty
	waits      string // of one that waits in a machine that was made ahead, likewise
}

// sizeStep is what the memory of a machine is a multiple of: machines of different runs
// are alike then, and one snapshot serves them.
const sizeStep = 256 << 20

// up returns a machine whose agent was heard and whose monitor was looked at: one that was
// made ahead, one that is restored, or one that is booted.
func (e *Executor) up(ctx context.Context, s size) (*vm, error) {
	for {
		v := e.ahead.take(s)
		if v == nil {
			break
		}
		err := e.wake(ctx, v)
		if err == nil {
			return v, nil
		}
		e.raze(v)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		e.log.Warn("a machine that was made ahead does not answer and was killed", "ever", e.hung.Add(1), "err", err)
	}
	v, err := e.restored(ctx, s)
	if v != nil || err != nil {
		return v, err
	}
	return e.boot(ctx, s, nil)
}

// errHung is why boot fails where no machine came up in time.
var errHung = errors.New("it did not come up in time")

// boot starts a machine, whose memory is ram where that is not nil, and returns when its
// agent was heard and its monitor looked at. One that does not come up in time is killed
// and counted, and another one started: it has been told nothing.
func (e *Executor) boot(ctx context.Context, s size, ram *os.File) (v *vm, err error) {
	for try := range bootTries {
		if ram != nil && try > 0 { // what the one before wrote
			if err := errors.Join(ram.Truncate(0), ram.Truncate(s.memory)); err != nil {
				return nil, err
			}
		}
		if v, err = e.bootOnce(ctx, s, ram); err == nil {
			return v, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, err
		}
		e.log.Warn("a machine did not come up and was killed", "try", try+1, "ever", e.hung.Add(1), "err", err)
	}
	return nil, fmt.Errorf("%w: %w", errHung, err)
}

// Hung returns how many machines did not come up in time, since New, and were killed.
func (e *Executor) Hung() int { return int(e.hung.Load()) }

// Waiting returns how many machines wait for their call.
func (e *Executor) Waiting() int { return e.ahead.count() }

// bootOnce starts a machine. Its memory is ram, where that is not nil.
func (e *Executor) bootOnce(ctx context.Context, s size, ram *os.File) (*vm, error) {
	m := e.machine(s)
	m.ram = ram
	v, err := e.launch(s, m)
	if err != nil {
		return nil, err
	}
	return e.looked(v, e.within(ctx, v, e.config.BootTime, func(context.Context) error {
		_, _, err := v.hear(frame.Hello)
		return err
	}))
}

// within does f, which speaks with the machine, for so long at most.
func (e *Executor) within(ctx context.Context, v *vm, most time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		v.until(time.Now())
	})
	err := f(ctx)
	if !stop() {
		<-stopped
	}
	v.until(time.Time{})
	return err
}

// wake gives the machine the time and chance that no other has, and returns when it has
// answered.
func (e *Executor) wake(ctx context.Context, v *vm) error {
	return e.within(ctx, v, e.restoreTime, func(context.Context) error {
		var seed [frame.SeedBytes]byte
		_, _ = rand.Read(seed[:]) // it never fails
		err := frame.Write(v.f, frame.Wake, frame.WakeBytes(time.Now().UnixNano(), seed))
		if err == nil {
			_, _, err = v.hear(frame.Hello)
		}
		return err
	})
}

// prepare has the agent make the interpreter ready, and returns when it has answered.
func (e *Executor) prepare(ctx context.Context, v *vm, ready string) error {
	if ready == "" {
		return nil
	}
	return e.within(ctx, v, e.config.BootTime, func(context.Context) error {
		err := frame.Write(v.f, frame.Prepare, []byte(ready))
		if err == nil {
			err = v.answered(frame.Hello)
		}
		return err
	})
}

// looked looks at the machine's monitor where err is nil, and ends it where that fails or
// err is not nil.
func (e *Executor) looked(v *vm, err error) (*vm, error) {
	if err == nil {
		v.seen, err = e.inspect(v)
	}
	if err != nil {
		e.raze(v)
		return nil, fmt.Errorf("%w: %w; the monitor said %s", ErrMachine, err, v.child.said)
	}
	return v, nil
}

// machine is the one to be made for what has that size.
func (e *Executor) machine(s size) machine {
	return machine{
		kernel: e.kit.Kernel(), initrd: e.kit.Initrd(), disk: s.disk, memory: s.memory,
		processors: int(math.Ceil(e.config.Processors)), counter: e.counter, accelerate: s.accelerate,
	}
}

// launch starts a monitor.
func (e *Executor) launch(s size, m machine) (v *vm, err error) {
	v = &vm{id: -1, machine: m}
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
	if v.control.f, v.machine.control, err = newTalk(); err != nil {
		return v, err
	}
	defer v.machine.control.Close()
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
	if v.control.f != nil {
		v.control.f.Close()
	}
	e.ids.Give(v.id)
	v.id = -1
}
