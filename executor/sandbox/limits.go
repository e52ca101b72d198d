//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/interpreter"
	"golang.org/x/sys/unix"
)

// overhead is how many processes a box has beside the script's: its first one,
// and the one that made the namespaces, which ends at once.
const overhead = 2

// Limits are the means of this host to limit runs. A controller of cgroups of
// version 2 is preferred; where it cannot be had, that of version 1 is taken.
type limits struct {
	v2                    *box.Cgroups
	v2Memory, v2Processes bool
	v2CPU, v2IO           bool
	v1                    *box.Controllers
	err                   error // why a controller cannot be had
	instance              string
	each                  box.Limits // what all runs have in common
	tenants               box.Tenants
}

// openLimits takes what this host has for what all runs are limited to.
func openLimits(instance string, each box.Limits) *limits {
	l := &limits{instance: instance, each: each}
	disks := each.DiskRate > 0
	v2, err := box.OpenCgroups(instance)
	if err == nil {
		l.v2Memory, l.v2Processes, l.v2CPU = v2.HoldsMemory(), v2.HoldsProcesses(), v2.HoldCPU()
		l.v2IO = disks && v2.HoldIO()
	}
	if l.v2Memory || l.v2Processes || l.v2CPU || l.v2IO {
		l.v2 = v2
	} else {
		_ = v2.Close() // it has nothing to offer: a box ends without it
	}
	var rest []string
	for name, held := range map[string]bool{box.MemoryController: l.v2Memory, box.PidsController: l.v2Processes, box.CPUController: l.v2CPU, box.IOController: l.v2IO || !disks} {
		if !held {
			rest = append(rest, name)
		}
	}
	v1, err1 := box.OpenControllers(instance, rest)
	l.v1, l.err = v1, errors.Join(err, err1)
	l.tenants.Make = func(group string) error {
		err := l.v2.NewTenant(group)
		if err == nil {
			if err = l.v1.NewTenant(group); err != nil {
				err = errors.Join(err, l.v2.RemoveTenant(group))
			}
		}
		return err
	}
	l.tenants.Remove = func(group string) error { return errors.Join(l.v2.RemoveTenant(group), l.v1.RemoveTenant(group)) }
	return l
}

// of returns the limits of a run.
func (l *limits) of(memory int64, processes int) box.Limits {
	r := l.each
	r.Memory, r.Processes = memory, processes
	return r
}

// ofSockets returns the limits of a run with loopback. A cgroup of version 2 counts
// what waits in sockets with all other memory; one of version 1 has a limit of its
// own for it: a quarter more.
func (l *limits) ofSockets(r box.Limits) box.Limits {
	if l.v1.HoldsSockets() {
		r.Sockets = r.Memory / 4
	}
	return r
}

// sockets says what limits the memory that waits in the sockets of a run.
func (l *limits) sockets() string {
	switch {
	case l.v2Memory:
		return "what waits in its sockets counts to its memory"
	case l.v1.HoldsSockets():
		return "what waits in its sockets is limited by its cgroup, to a quarter of its memory beside it"
	}
	return "no cgroup limits the memory of what waits in its sockets"
}

func (l *limits) close() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.tenants.Close(), l.v2.Close(), l.v1.Close())
}

func (l *limits) memory() bool    { return l.v2Memory || l.v1.Holds(box.MemoryController) }
func (l *limits) processes() bool { return l.v2Processes || l.v1.Holds(box.PidsController) }
func (l *limits) cpu() bool       { return l.v2CPU || l.v1.Holds(box.CPUController) }
func (l *limits) disks() bool     { return l.v2IO || l.v1.Holds(box.IOController) }

// A group is the cgroups of one run.
type group struct {
	limits *limits
	tenant string // the name of the tenant's, in which they are
	path   string // how the path of each ends
	v2     *box.Cgroup
	v1     *box.Control
}

// newRun makes the cgroups of a run of the tenant, in that of the tenant.
func (l *limits) newRun(tenant, name string, want box.Limits) (g group, err error) {
	if g.tenant, err = l.tenants.Enter(tenant); err != nil {
		return group{}, fmt.Errorf("the cgroup of a tenant: %w", err)
	}
	name = g.tenant + "/" + name
	g.limits, g.path = l, "/tracon-"+l.instance+"/"+name
	if g.v2, err = l.v2.NewRun(name, want.Memory, want.Processes); err == nil && l.v2CPU {
		err = g.v2.SetCPU(want.Processors)
	}
	if err == nil && l.v2IO {
		err = g.v2.SetIO(want)
	}
	if err == nil {
		g.v1, err = l.v1.NewRun(name, want)
	}
	if err != nil {
		return group{}, errors.Join(err, g.remove())
	}
	return g, nil
}

// enter makes a process start in the cgroups of version 2, and returns the files
// of those of version 1, which it enters by itself.
func (g group) enter(attr *syscall.SysProcAttr) []*os.File {
	g.v2.Enter(attr)
	return g.v1.Enters()
}

func (g group) outOfMemory() bool { return g.v2.OutOfMemory() || g.v1.OutOfMemory() }

func (g group) remove() error {
	if g.limits == nil {
		return nil
	}
	return errors.Join(g.v2.Remove(), g.v1.Remove(), g.limits.tenants.Leave(g.tenant))
}

// rlimits returns the limits of each single process. Files have none: all that a
// script can write lies in file systems of a fixed size.
func (l *limits) rlimits(kind interpreter.Kind, want box.Limits, timeout time.Duration) []rlimit {
	list := []rlimit{
		{unix.RLIMIT_CORE, 1}, // unlike 0, this also keeps the memory from a handler of the system
		{unix.RLIMIT_CPU, uint64(math.Ceil(timeout.Seconds()*max(1, want.Processors))) + 1},
		{unix.RLIMIT_NOFILE, 256},
		{unix.RLIMIT_NPROC, uint64(want.Processes)},
		{unix.RLIMIT_MEMLOCK, 64 << 10},
		{unix.RLIMIT_MSGQUEUE, 0},
		{unix.RLIMIT_RTPRIO, 0},
		{unix.RLIMIT_NICE, 0},
		{unix.RLIMIT_SIGPENDING, 256},
		{unix.RLIMIT_STACK, 8 << 20},
	}
	// Without a cgroup, each process alone is held to what it can write to. Address
	// space is no measure of that: threads and Node reserve far more than they use.
	// It only keeps memory that is mapped as shared, which counts to nothing else,
	// from growing without end.
	if !l.memory() {
		list = append(list, rlimit{unix.RLIMIT_DATA, uint64(want.Memory)})
		if kind != interpreter.Node {
			list = append(list, rlimit{unix.RLIMIT_AS, uint64(want.Memory) + 4<<30})
		}
	}
	return list
}

// count returns in how many cgroups a run is.
func (l *limits) count() int {
	n := l.v1.Count()
	if l.v2 != nil {
		n++
	}
	return n
}
