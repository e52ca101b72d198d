//go:build unix && !linux

package box

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Lineage is what is known of a run's processes: those of its group. One that
// left the group is not found.
type Lineage struct {
	Main int       // the run's first process, which leads its group; zero: none
	Born time.Time // unused here
	Mark string    // unused here
	Dir  string    // unused here
}

// Stop kills the group and returns when it is gone. It returns how many of its
// processes were found: at most one, since they cannot be counted here.
func (l Lineage) Stop() (found int, err error) {
	if l.Main <= 0 {
		return 0, nil
	}
	if unix.Kill(-l.Main, unix.SIGKILL) == nil {
		found = 1
	}
	for range 1000 {
		if err := unix.Kill(-l.Main, 0); errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EPERM) {
			return found, nil
		}
		time.Sleep(time.Millisecond)
	}
	return found, errors.New("box: a process group does not end")
}

// Cgroups are of Linux alone.
type Cgroups struct{}

// A Cgroup is of Linux alone.
type Cgroup struct{}

// ErrNoCgroup is wrapped by the error that says why this process can have no
// cgroups of its own.
var ErrNoCgroup = errors.New("box: no cgroup can be had")

// OpenCgroups fails: this system has none.
func OpenCgroups(string) (*Cgroups, error) { return nil, ErrNoCgroup }

// SweepCgroup does nothing.
func SweepCgroup(string) error { return nil }

// HoldsMemory returns false.
func (c *Cgroups) HoldsMemory() bool { return false }

// HoldsProcesses returns false.
func (c *Cgroups) HoldsProcesses() bool { return false }

// Close does nothing.
func (c *Cgroups) Close() error { return nil }

// NewRun returns the nil Cgroup.
func (c *Cgroups) NewRun(string, int64, int) (*Cgroup, error) { return nil, nil }

// Enter does nothing.
func (g *Cgroup) Enter(*syscall.SysProcAttr) {}

// Pids returns none.
func (g *Cgroup) Pids() ([]int, error) { return nil, nil }

// Stop does nothing.
func (g *Cgroup) Stop(int) (int, error) { return 0, nil }

// Kill does nothing.
func (g *Cgroup) Kill() error { return nil }

// OutOfMemory returns false.
func (g *Cgroup) OutOfMemory() bool { return false }

// Remove does nothing.
func (g *Cgroup) Remove() error { return nil }
