package box

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

// mostIdle is how many cgroups of tenants without a run are kept: making one
// costs a run as much as all its limits do.
const mostIdle = 64

// Tenants are the cgroups between that of the host and those of the runs: the
// kernel shares the processors among the tenants, and what is a tenant's share
// among its runs. So a tenant with many runs takes nothing from one with few. It
// is safe for concurrent use.
type Tenants struct {
	// Make makes a tenant's cgroups, and Remove removes them. They are called one
	// after the other.
	Make, Remove func(group string) error

	mu   sync.Mutex
	runs map[string]int // by the name of the group; zero: it is there without a run
	idle []string       // those, the one that has been so longest first
}

// Enter returns the name of the tenant's cgroup, which is there until Leave was
// called as often as Enter. A name says nothing of the tenant.
func (t *Tenants) Enter(tenant string) (group string, err error) {
	sum := sha256.Sum256([]byte(tenant))
	group = "tenant-" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, ok := t.runs[group]; !ok {
		if err := t.Make(group); err != nil {
			return "", err
		}
	} else if n == 0 {
		t.idle = slices.DeleteFunc(t.idle, func(g string) bool { return g == group })
	}
	if t.runs == nil {
		t.runs = map[string]int{}
	}
	t.runs[group]++
	return group, nil
}

// Leave is called when a run that has entered the group is gone. It removes the
// groups that have been without a run for longest where there are many.
func (t *Tenants) Leave(group string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs[group]--; t.runs[group] > 0 {
		return nil
	}
	t.idle = append(t.idle, group)
	return t.shrink(mostIdle)
}

// Close removes the groups. No run may be under way.
func (t *Tenants) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shrink(0)
}

func (t *Tenants) shrink(most int) error {
	var errs []error
	for len(t.idle) > most {
		errs = append(errs, t.Remove(t.idle[0]))
		delete(t.runs, t.idle[0])
		t.idle = t.idle[1:]
	}
	return errors.Join(errs...)
}

// The weights of a tenant's processor time are those that the kernel gives to all
// alike. They are written so that they hold whatever it gives.
const (
	cpuWeight = 100  // version 2
	cpuShares = 1024 // version 1
)

// NewTenant makes a cgroup in which runs can have theirs: their name then begins
// with that of the group and a slash. The nil Cgroups has none.
func (c *Cgroups) NewTenant(group string) error {
	if c == nil {
		return nil
	}
	dir := filepath.Join(c.dir, group)
	if err := mkdirTenant(dir); err != nil {
		return err
	}
	var errs []error
	for _, name := range c.enabled {
		errs = append(errs, write(filepath.Join(dir, subtreeControl), "+"+name))
	}
	if c.holds("cpu") {
		errs = append(errs, write(filepath.Join(dir, "cpu.weight"), strconv.Itoa(cpuWeight)))
	}
	err := errors.Join(errs...)
	if err != nil {
		_ = rmdirTenant(dir)
	}
	return err
}

// mkdirTenant makes the folder, which may be there: two controllers of version 1
// can share a hierarchy, and one that could not be removed serves again.
func mkdirTenant(dir string) error {
	if err := os.Mkdir(dir, 0o755); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// rmdirTenant does not wait as the removal of a run's cgroup does: others wait for
// it, and where a run could not be removed, that was waited for already.
func rmdirTenant(dir string) error {
	if err := os.Remove(dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveTenant removes the cgroup. No run may be in it.
func (c *Cgroups) RemoveTenant(group string) error {
	if c == nil {
		return nil
	}
	return rmdirTenant(filepath.Join(c.dir, group))
}

// NewTenant makes cgroups in which runs can have theirs. The nil Controllers has none.
func (c *Controllers) NewTenant(group string) error {
	if c == nil {
		return nil
	}
	var errs []error
	for name, parent := range c.dirs {
		dir := filepath.Join(parent, group)
		err := mkdirTenant(dir)
		if err == nil && name == CPUController {
			err = write(filepath.Join(dir, "cpu.shares"), strconv.Itoa(cpuShares))
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if err != nil {
		_ = c.RemoveTenant(group)
	}
	return err
}

// RemoveTenant removes the cgroups. No run may be in them.
func (c *Controllers) RemoveTenant(group string) error {
	if c == nil {
		return nil
	}
	var errs []error
	for _, parent := range c.dirs {
		errs = append(errs, rmdirTenant(filepath.Join(parent, group)))
	}
	return errors.Join(errs...)
}
