package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Controllers are cgroups of version 1, one for each controller, below those of
// this process. Hosts of the hybrid kind have these and an empty version 2.
type Controllers struct {
	dirs map[string]string // by controller
}

// The controllers that a run is limited by.
const (
	MemoryController = "memory"
	PidsController   = "pids"
	CPUController    = "cpu"
	IOController     = "blkio"
)

// controllers are all of them, in the order in which runs enter.
var controllers = []string{MemoryController, PidsController, CPUController, IOController}

// OpenControllers makes the cgroup that has the instance's name in the hierarchy
// of each named controller, below our own. Those that cannot be made are left
// out; the error says why, and is not nil only then.
func OpenControllers(instance string, names []string) (*Controllers, error) {
	c := &Controllers{dirs: map[string]string{}}
	var errs []error
	for _, name := range names {
		own, err := ownController(name)
		if err == nil {
			dir := filepath.Join(own, cgroupName(instance))
			if err = os.Mkdir(dir, 0o755); err == nil || errors.Is(err, os.ErrExist) { // two controllers can share a hierarchy
				c.dirs[name] = dir
				continue
			}
		}
		errs = append(errs, fmt.Errorf("%w: %s: %w", ErrNoCgroup, name, err))
	}
	return c, errors.Join(errs...)
}

// Holds reports whether runs are limited by the controller.
func (c *Controllers) Holds(name string) bool { return c != nil && c.dirs[name] != "" }

// Close removes the cgroups. No run may be under way.
func (c *Controllers) Close() error {
	if c == nil {
		return nil
	}
	var errs []error
	for _, dir := range c.dirs {
		errs = append(errs, removeCgroup(dir))
	}
	return errors.Join(errs...)
}

func sweepControllers(instance string) error {
	var errs []error
	for _, name := range controllers {
		if own, err := ownController(name); err == nil {
			errs = append(errs, emptyTree(filepath.Join(own, cgroupName(instance)), emptyController))
		}
	}
	return errors.Join(errs...)
}

// emptyTree calls remove for the cgroup and for those in it, which come first.
func emptyTree(dir string, remove func(string) error) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if e.IsDir() {
			errs = append(errs, emptyTree(filepath.Join(dir, e.Name()), remove))
		}
	}
	return errors.Join(append(errs, remove(dir))...)
}

// emptyController stops the processes of a cgroup and removes it.
func emptyController(dir string) error {
	return eventually(func() error {
		for _, pid := range controlled(dir) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			return &os.PathError{Op: "rmdir", Path: dir, Err: err}
		}
		return nil
	})
}

func controlled(dir string) []int {
	text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	var pids []int
	for _, f := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A Control is the cgroups of one run.
type Control struct {
	dirs   map[string]string
	enters []*os.File
}

// Limits are those of one run. A controller that is not held holds none.
type Limits struct {
	Memory     int64    // bytes
	Sockets    int64    // bytes that wait in sockets, where they do not count to Memory; zero: no limit
	Processes  int      // processes and threads
	Processors float64  // of time
	DiskRate   int64    // bytes that are read from each disk, and written to it, in a second; zero: no limit
	Disks      []string // numbers of devices
}

// NewRun makes the cgroups with their limits, before any process enters. The nil
// Controllers has none.
func (c *Controllers) NewRun(name string, l Limits) (g *Control, err error) {
	if c == nil || len(c.dirs) == 0 {
		return nil, nil
	}
	g = &Control{dirs: map[string]string{}}
	made := map[string]bool{}
	for _, controller := range controllers {
		parent := c.dirs[controller]
		if parent == "" {
			continue
		}
		dir := filepath.Join(parent, name)
		if !made[dir] {
			err = os.Mkdir(dir, 0o755)
		}
		if err == nil {
			g.dirs[controller] = dir
			err = limit(controller, dir, l)
		}
		if err == nil && !made[dir] {
			var f *os.File
			if f, err = os.OpenFile(filepath.Join(dir, "tasks"), os.O_WRONLY, 0); err == nil {
				g.enters = append(g.enters, f)
			}
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("box: the cgroup of a run: %w", err), g.Remove())
		}
		made[dir] = true
	}
	return g, nil
}

func limit(controller, dir string, l Limits) error {
	set := func(file string, value int64) error {
		return write(filepath.Join(dir, file), strconv.FormatInt(value, 10))
	}
	switch controller {
	case PidsController:
		return set("pids.max", int64(l.Processes))
	case CPUController:
		return errors.Join(set("cpu.cfs_period_us", cpuPeriod), set("cpu.cfs_quota_us", int64(l.Processors*cpuPeriod)))
	case IOController:
		var errs []error
		for _, disk := range l.Disks {
			for _, file := range []string{"blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device"} {
				errs = append(errs, write(filepath.Join(dir, file), fmt.Sprintf("%s %d", disk, l.DiskRate)))
			}
		}
		return errors.Join(errs...)
	}
	// With swap, the limit of both together cannot be below that of memory, so it is
	// written behind it. It is not there where swap is not counted.
	err := set("memory.limit_in_bytes", l.Memory)
	_ = set("memory.memsw.limit_in_bytes", l.Memory)
	_ = set("memory.swappiness", 0)
	if l.Sockets > 0 {
		err = errors.Join(err, set(socketsFile, l.Sockets))
	}
	return err
}

// socketsFile limits what waits in all sockets of the internet, those of UDP too,
// whatever its name says.
const socketsFile = "memory.kmem.tcp.limit_in_bytes"

// HoldsSockets reports whether the cgroups can limit what waits in sockets: not
// every kernel has that. The nil Controllers cannot.
func (c *Controllers) HoldsSockets() bool {
	if !c.Holds(MemoryController) {
		return false
	}
	_, err := os.Stat(filepath.Join(c.dirs[MemoryController], socketsFile))
	return err == nil
}

// Enters returns a file for each hierarchy; a process that writes "0" into it
// enters. (To write another's number costs 8 ms and more: a lock of the kernel.)
func (g *Control) Enters() []*os.File {
	if g == nil {
		return nil
	}
	return g.enters
}

// OutOfMemory reports whether a process was killed at the memory limit.
func (g *Control) OutOfMemory() bool {
	if g == nil || g.dirs[MemoryController] == "" {
		return false
	}
	text, err := os.ReadFile(filepath.Join(g.dirs[MemoryController], "memory.oom_control"))
	return err == nil && counted(string(text), "oom_kill") > 0
}

// Remove removes the cgroups, in which no process may be left.
func (g *Control) Remove() error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, f := range g.enters {
		errs = append(errs, f.Close())
	}
	for _, dir := range g.dirs {
		errs = append(errs, removeCgroup(dir))
	}
	return errors.Join(errs...)
}

// ownController returns the folder of the cgroup of that controller that this
// process is in.
func ownController(name string) (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return findController(name, string(text), string(mounts))
}

func findController(name, cgroup, mountinfo string) (string, error) {
	own, found := "", false
	for line := range strings.Lines(cgroup) { // number:controllers:path
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) == 3 && slices.Contains(strings.Split(f[1], ","), name) {
			own, found = f[2], true
		}
	}
	if !found || !strings.HasPrefix(own, "/") || filepath.Clean(own) != own {
		return "", errors.New("this process is in no cgroup of version 1 of that controller that it can see")
	}
	for line := range strings.Lines(mountinfo) {
		front, back, ok := strings.Cut(line, " - ")
		f, b := strings.Fields(front), strings.Fields(back)
		if !ok || len(f) < 5 || len(b) < 3 || b[0] != "cgroup" || !slices.Contains(strings.Split(b[2], ","), name) {
			continue
		}
		below, err := filepath.Rel(unescapeMount(f[3]), own)
		if err != nil || below == ".." || strings.HasPrefix(below, "../") {
			continue
		}
		return filepath.Join(unescapeMount(f[4]), below), nil
	}
	return "", errors.New("no cgroup of version 1 of that controller is mounted that holds our own")
}

// Count returns in how many cgroups each run is.
func (c *Controllers) Count() int {
	if c == nil {
		return 0
	}
	seen := map[string]bool{}
	for _, dir := range c.dirs {
		seen[dir] = true
	}
	return len(seen)
}

// stop stops every process in the cgroups, and returns when none is left. The nil
// Control has none.
func (g *Control) stop() error {
	if g == nil {
		return nil
	}
	for _, dir := range g.dirs {
		err := eventually(func() error {
			pids := controlled(dir)
			for _, pid := range pids {
				if pid != os.Getpid() { // a thread of ours that started the run, and ends by itself
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
			if len(pids) > 0 {
				return fmt.Errorf("box: processes in %s do not end", dir)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
