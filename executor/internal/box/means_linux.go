package box

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Means are those of this host to limit runs. A controller of cgroups of
// version 2 is preferred; where it cannot be had, that of version 1 is taken.
type Means struct {
	v2                    *Cgroups
	v2Memory, v2Processes bool
	v2CPU, v2IO           bool
	v1                    *Controllers
	Err                   error // why a controller cannot be had; nil: all can
	instance              string
	Each                  Limits // what all runs have in common
	tenants               Tenants
}

// OpenMeans takes what this host has for what all runs are limited to.
func OpenMeans(instance string, each Limits) *Means {
	l := &Means{instance: instance, Each: each}
	disks := each.DiskRate > 0
	v2, err := OpenCgroups(instance)
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
	for name, held := range map[string]bool{MemoryController: l.v2Memory, PidsController: l.v2Processes, CPUController: l.v2CPU, IOController: l.v2IO || !disks} {
		if !held {
			rest = append(rest, name)
		}
	}
	v1, err1 := OpenControllers(instance, rest)
	l.v1, l.Err = v1, errors.Join(err, err1)
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

// Of returns the limits of a run.
func (l *Means) Of(memory int64, processes int) Limits {
	r := l.Each
	r.Memory, r.Processes = memory, processes
	return r
}

// OfSockets returns the limits of a run with loopback. A cgroup of version 2 counts
// what waits in sockets with all other memory; one of version 1 has a limit of its
// own for it: a quarter more.
func (l *Means) OfSockets(r Limits) Limits {
	if l.v1.HoldsSockets() {
		r.Sockets = r.Memory / 4
	}
	return r
}

// SocketsText says what limits the memory that waits in the sockets of a run.
func (l *Means) SocketsText() string {
	switch {
	case l.v2Memory:
		return "what waits in its sockets counts to its memory"
	case l.v1.HoldsSockets():
		return "what waits in its sockets is limited by its cgroup, to a quarter of its memory beside it"
	}
	return "no cgroup limits the memory of what waits in its sockets"
}

// Close removes the cgroups. No run may be under way.
func (l *Means) Close() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.tenants.Close(), l.v2.Close(), l.v1.Close())
}

// HoldsMemory, HoldsProcesses, HoldsCPU and HoldsDisks report what a run can be
// limited to.
func (l *Means) HoldsMemory() bool    { return l.v2Memory || l.v1.Holds(MemoryController) }
func (l *Means) HoldsProcesses() bool { return l.v2Processes || l.v1.Holds(PidsController) }
func (l *Means) HoldsCPU() bool       { return l.v2CPU || l.v1.Holds(CPUController) }
func (l *Means) HoldsDisks() bool     { return l.v2IO || l.v1.Holds(IOController) }

// A Group is the cgroups of one run.
type Group struct {
	means  *Means
	tenant string // the name of the tenant's, in which they are
	Path   string // how the path of each ends
	v2     *Cgroup
	v1     *Control
}

// NewRun makes the cgroups of a run of the tenant, in that of the tenant.
func (l *Means) NewRun(tenant, name string, want Limits) (g Group, err error) {
	if g.tenant, err = l.tenants.Enter(tenant); err != nil {
		return Group{}, fmt.Errorf("the cgroup of a tenant: %w", err)
	}
	name = g.tenant + "/" + name
	g.means, g.Path = l, "/tracon-"+l.instance+"/"+name
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
		return Group{}, errors.Join(err, g.Remove())
	}
	return g, nil
}

// Enter makes a process start in the cgroups of version 2, and returns the files
// of those of version 1, which it enters by itself.
func (g Group) Enter(attr *syscall.SysProcAttr) []*os.File {
	g.v2.Enter(attr)
	return g.v1.Enters()
}

// OutOfMemory reports whether a process was killed at the limit of memory.
func (g Group) OutOfMemory() bool { return g.v2.OutOfMemory() || g.v1.OutOfMemory() }

// Remove removes the cgroups, in which no process may be left.
func (g Group) Remove() error {
	if g.means == nil {
		return nil
	}
	return errors.Join(g.v2.Remove(), g.v1.Remove(), g.means.tenants.Leave(g.tenant))
}

// Count returns in how many cgroups a run is.
func (l *Means) Count() int {
	n := l.v1.Count()
	if l.v2 != nil {
		n++
	}
	return n
}

// CountFirst returns how many of them are of version 1, which a process enters by
// itself.
func (l *Means) CountFirst() int { return l.v1.Count() }

// Stop stops every process in the cgroups, and returns when none is left.
func (g Group) Stop() error {
	if g.v2 != nil {
		return g.v2.Kill()
	}
	return g.v1.stop()
}
