//go:build linux && (amd64 || arm64)

package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/gate"
)

// A kind is all that a box is made for before its call is known.
type kind struct {
	tenant    string
	memory    int64
	processes int
	network   gate.Network
	runtime   *runtimeRoot // nil: the host's programs
	taken     taken
}

// A hull is a box that was started, and waits for its call or will. It serves one.
type hull struct {
	frame frame
	group box.Group
	child *child
	kind  kind
	since time.Time
	shown []inode // what lay where it shows the host's programs, before it was started
}

// erect starts a box of the kind. It does not wait until it is made.
func (e *Executor) erect(k kind) (h *hull, err error) {
	h = &hull{kind: k, since: time.Now(), frame: frame{
		hostID: [2]int{os.Geteuid(), os.Getegid()}, hostPID: os.Getpid(), cgroups: e.limits.CountFirst(),
		runtime: k.runtime, network: k.network, taken: k.taken,
	}}
	if h.frame.id, err = e.ids.Take(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.raze(h)
			h = nil
		}
	}()
	h.shown = e.setup.layoutOf(h.frame).inodes()
	l := e.limits.Of(k.memory, k.processes)
	if k.network == gate.Loopback {
		l = e.limits.OfSockets(l)
	}
	if h.group, err = e.limits.NewRun(k.tenant, newName(), l); err != nil {
		return h, err
	}
	h.child, err = e.start(e.setup.build(h.frame), k.runtime, h.group)
	return h, err
}

// lookAhead makes the executor keep at most so many boxes that wait for a call.
func (e *Executor) lookAhead(most int) (err error) {
	if most = cmp.Or(most, DefaultAhead); most < 0 {
		return nil
	}
	e.ahead.most, e.ahead.raze = most, e.raze
	e.ahead.busy = func() bool { return e.underWay.Count() > runtime.GOMAXPROCS(0) }
	e.ahead.make = func(k kind) (*hull, error) {
		h, err := e.erect(k)
		if err == nil {
			err = h.child.made(e.underWay.Closing())
		}
		if err != nil {
			e.log.Debug("no box could be made ahead", "err", err)
			e.raze(h)
			return nil, err
		}
		return h, nil
	}
	e.ahead.fresh = func(h *hull) bool { return slices.Equal(h.shown, e.setup.layoutOf(h.frame).inodes()) }
	if e.ahead.mounts, err = watchMounts(); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	return nil
}

// raze removes a box and what was made for it. Nil has nothing to remove.
func (e *Executor) raze(h *hull) {
	if h == nil {
		return
	}
	var err error
	if h.child != nil {
		h.child.kill()
		err = h.child.reap()
	}
	if err := errors.Join(err, h.group.Remove()); err != nil {
		e.log.Error("what a run left was not removed", "err", err)
	}
	e.ids.Give(h.frame.id)
}
