package box

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Cgroups is a cgroup of version 2 below that of this process, in which each run
// gets one of its own. With it, every process of a run can be found and stopped
// whatever it did to its session, its parent or its name.
type Cgroups struct {
	dir     string
	enabled []string // controllers that runs are limited by
}

// ErrNoCgroup is wrapped by the error that says why this process can have no
// cgroups of its own.
var ErrNoCgroup = errors.New("box: no cgroup can be had")

// OpenCgroups makes the cgroup that has the instance's name, below our own or
// beside it (see homes), where most can be limited.
func OpenCgroups(instance string) (*Cgroups, error) {
	homes, err := homes()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCgroup, err)
	}
	var best *Cgroups
	var errs []error
	for _, home := range homes {
		c, err := openIn(home, instance)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if best != nil && len(c.enabled) <= len(best.enabled) {
			c, best = best, c
		}
		if best != nil {
			errs = append(errs, best.Close())
		}
		best = c
	}
	if best == nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCgroup, errors.Join(errs...))
	}
	return best, nil
}

func openIn(home, instance string) (*Cgroups, error) {
	c := &Cgroups{dir: filepath.Join(home, cgroupName(instance))}
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		return nil, err
	}
	if err := unix.Access(filepath.Join(c.dir, "cgroup.kill"), unix.W_OK); err != nil {
		_ = os.Remove(c.dir)
		return nil, fmt.Errorf("the kernel has no cgroup.kill (Linux 5.14): %w", err)
	}
	c.enable("memory")
	c.enable("pids")
	return c, nil
}

// enable gives the cgroups of runs the controller, and reports whether they have
// it. Above ours it may be on already, or not be ours to switch on.
func (c *Cgroups) enable(controller string) bool {
	on := []byte("+" + controller)
	_ = os.WriteFile(filepath.Join(filepath.Dir(c.dir), subtreeControl), on, 0)
	if os.WriteFile(filepath.Join(c.dir, subtreeControl), on, 0) != nil {
		return false
	}
	c.enabled = append(c.enabled, controller)
	return true
}

func (c *Cgroups) holds(controller string) bool {
	return c != nil && slices.Contains(c.enabled, controller)
}

const subtreeControl = "cgroup.subtree_control"

func cgroupName(instance string) string { return "tracon-" + instance }

// ownCgroup returns the folder of the cgroup of version 2 that this process is in.
func ownCgroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return findCgroup(string(text), string(mounts))
}

func findCgroup(cgroup, mountinfo string) (string, error) {
	own, found := "", false
	for line := range strings.Lines(cgroup) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			own, found = p, true
		}
	}
	if !found || !strings.HasPrefix(own, "/") || filepath.Clean(own) != own { // "/../x" lies outside our namespace
		return "", errors.New("this process is in no cgroup of version 2 that it can see")
	}
	for line := range strings.Lines(mountinfo) {
		// id parent major:minor root mountpoint options… - type source options
		front, back, ok := strings.Cut(line, " - ")
		f := strings.Fields(front)
		if !ok || len(f) < 5 || !strings.HasPrefix(back, "cgroup2 ") {
			continue
		}
		below, err := filepath.Rel(unescapeMount(f[3]), own)
		if err != nil || below == ".." || strings.HasPrefix(below, "../") {
			continue // another part of the tree is mounted here
		}
		return filepath.Join(unescapeMount(f[4]), below), nil
	}
	return "", errors.New("no cgroup of version 2 is mounted that holds our own")
}

// unescapeMount undoes the octal escapes of blanks in mountinfo.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// HoldsMemory reports whether the memory of a run can be limited.
func (c *Cgroups) HoldsMemory() bool { return c.holds("memory") }

// HoldsProcesses reports whether the number of processes of a run can be limited.
func (c *Cgroups) HoldsProcesses() bool { return c.holds("pids") }

// Close removes the cgroup. No run may be under way. The nil Cgroups has none.
func (c *Cgroups) Close() error {
	if c == nil {
		return nil
	}
	return removeCgroup(c.dir)
}

// SweepCgroup stops what is left in the cgroups of a dead instance, of whatever
// version, and removes them, where they lie below our own.
func SweepCgroup(instance string) error {
	return errors.Join(sweepUnified(instance), sweepControllers(instance))
}

func sweepUnified(instance string) error {
	homes, err := homes()
	if err != nil {
		return nil
	}
	var errs []error
	for _, home := range homes {
		errs = append(errs, sweepDir(filepath.Join(home, cgroupName(instance))))
	}
	return errors.Join(errs...)
}

func sweepDir(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return errors.Join(killCgroup(dir), emptyTree(dir, removeCgroup))
}

// A Cgroup is that of one run.
type Cgroup struct {
	dir    string
	folder *os.File
}

// NewRun makes a cgroup with the limits, as far as they can be held. They are
// written before any process enters. The nil Cgroups has none.
func (c *Cgroups) NewRun(name string, memory int64, processes int) (g *Cgroup, err error) {
	if c == nil {
		return nil, nil
	}
	g = &Cgroup{dir: filepath.Join(c.dir, name)}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("box: the cgroup of a run: %w", err)
	}
	if c.holds("memory") {
		_ = g.set("memory.swap.max", "0") // not there where swap is not counted
		err = errors.Join(err, g.set("memory.max", strconv.FormatInt(memory, 10)), g.set("memory.oom.group", "1"))
	}
	if c.holds("pids") {
		err = errors.Join(err, g.set("pids.max", strconv.Itoa(processes)))
	}
	if err == nil {
		g.folder, err = os.OpenFile(g.dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	}
	if err != nil {
		_ = os.Remove(g.dir)
		return nil, fmt.Errorf("box: the cgroup of a run: %w", err)
	}
	return g, nil
}

func (g *Cgroup) set(file, value string) error { return write(filepath.Join(g.dir, file), value) }

// write writes into a file of a cgroup. Each run writes a dozen, and a file of
// package os, which asks whether it can be waited for, takes twice as long.
func write(path, value string) error {
	fd, err := uninterrupted(func() (int, error) { return unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if _, err := uninterrupted(func() (int, error) { return unix.Write(fd, []byte(value)) }); err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// uninterrupted makes a system call again for as long as a signal, such as those by
// which Go's scheduler interrupts, ends it before it has done anything.
func uninterrupted(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

// Enter makes a process start in the cgroup. The nil Cgroup does nothing.
func (g *Cgroup) Enter(attr *syscall.SysProcAttr) {
	if g != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(g.folder.Fd())
	}
}

// Pids returns the living processes in the cgroup.
func (g *Cgroup) Pids() ([]int, error) {
	text, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, f := range bytes.Fields(text) {
		if pid, err := strconv.Atoi(string(f)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Stop stops every process in the cgroup but a main one that has ended, and
// returns when they are gone. It returns how many there were. A cgroup in which
// nothing lives needs no more than that look: where nothing lives, nothing forks.
func (g *Cgroup) Stop(main int) (left int, err error) {
	if lives, err := populated(g.dir); err == nil && !lives {
		return 0, nil
	}
	pids, err := g.Pids()
	pids = slices.DeleteFunc(pids, func(pid int) bool { return pid == main })
	return len(pids), errors.Join(err, g.Kill())
}

// Kill stops every process in the cgroup, also those that are being forked, and
// returns when they are gone.
func (g *Cgroup) Kill() error { return killCgroup(g.dir) }

// OutOfMemory reports whether a process was killed at the memory limit.
func (g *Cgroup) OutOfMemory() bool {
	if g == nil {
		return false
	}
	text, err := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	return err == nil && counted(string(text), "oom_kill") > 0
}

// counted reads one number of a file with a name and a number in each line.
func counted(text, name string) int64 {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// Remove removes the cgroup, in which no process may be left. The nil Cgroup has
// nothing to remove.
func (g *Cgroup) Remove() error {
	if g == nil {
		return nil
	}
	g.folder.Close()
	return removeCgroup(g.dir)
}

// killTime is how long the kernel may take to end what it was told to kill.
const killTime = 10 * time.Second

func killCgroup(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0); err != nil {
		return err
	}
	return eventually(func() error {
		lives, err := populated(dir)
		if lives {
			err = fmt.Errorf("box: processes in %s do not end", dir)
		}
		return err
	})
}

// populated reports whether a process lives in the cgroup. One that has ended
// and was not reaped does not.
func populated(dir string) (bool, error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	return err == nil && counted(string(text), "populated") != 0, err
}

func removeCgroup(dir string) error {
	return eventually(func() error {
		err := unix.Rmdir(dir)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return &os.PathError{Op: "rmdir", Path: dir, Err: err}
		}
		return nil
	})
}

// eventually calls f until it succeeds or killTime has passed.
func eventually(f func() error) error {
	deadline := time.Now().Add(killTime)
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		err := f()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(wait)
	}
}
