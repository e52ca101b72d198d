//go:build linux && (amd64 || arm64)

package container

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/executor/internal/box"
	"golang.org/x/sys/unix"
)

var errNotAsItMustBe = errors.New("the container is not as it must be")

// inspect looks at the first process of a container from outside, before its script
// starts, and holds that it is as it must be.
func (e *Executor) inspect(r *staged, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("%w: its first process is not the host's to see: %w", errNotAsItMustBe, err)
	}
	r.init, r.initPID = os.NewFile(uintptr(fd), "init"), pid
	text, err := e.look(pid, r.order, r.group.Path)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotAsItMustBe, err)
	}
	r.seen = text
	return nil
}

// lookAtFirst looks at the first process of a container, whose kernel is the host's. It
// returns what was seen, without what differs from run to run.
func (e *Executor) lookAtFirst(pid int, o order, group string) (string, error) {
	var seen strings.Builder
	if err := errors.Join(hasNoRights(&seen, pid, o.ids[1]), hasNamespaces(&seen, pid, namespaces), e.isLimited(pid, group), o.hasRlimits(&seen, pid)); err != nil {
		return "", err
	}
	list, err := mountsOf(pid)
	if err != nil {
		return "", err
	}
	return seen.String() + strings.Join(list, "\n"), o.sameMounts(list)
}

// hasNoRights holds that a process is the user and the group alone, has no right and
// can gain none, and has a filter of system calls.
func hasNoRights(seen *strings.Builder, pid, id int) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err
	}
	status := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		status[name] = strings.TrimSpace(value)
	}
	four := strings.TrimSpace(strings.Repeat(fmt.Sprintf("%d\t", id), 4))
	for _, want := range [][2]string{
		{"Uid", four}, {"Gid", four}, {"Groups", ""}, {"NoNewPrivs", "1"}, {"Seccomp", "2"},
		{"CapInh", noRights}, {"CapPrm", noRights}, {"CapEff", noRights}, {"CapBnd", noRights}, {"CapAmb", noRights},
	} {
		if got := status[want[0]]; got != want[1] {
			return fmt.Errorf("its %s is %q, want %q", want[0], got, want[1])
		}
		if want[1] != four {
			fmt.Fprintf(seen, "%s %s\n", want[0], want[1])
		}
	}
	return nil
}

// hasNamespaces holds that a process has these namespaces of its own.
func hasNamespaces(seen *strings.Builder, pid int, list [][2]string) error {
	for _, n := range list {
		own, err := os.Readlink("/proc/self/ns/" + n[1])
		if err != nil {
			return err
		}
		its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, n[1]))
		if err != nil || its == own {
			return errors.Join(fmt.Errorf("it has no %s namespace of its own", n[0]), err)
		}
		fmt.Fprintf(seen, "namespace %s\n", n[0])
	}
	return nil
}

// isLimited holds that a process is in the cgroups of its run.
func (e *Executor) isLimited(pid int, group string) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return err
	}
	if got := strings.Count(string(text), group+"\n"); got != e.limits.Count() {
		return fmt.Errorf("it is in %d cgroups of its run, want %d", got, e.limits.Count())
	}
	return nil
}

// hasRlimits holds that a process has the limits of each single one.
func (o order) hasRlimits(seen *strings.Builder, pid int) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return err
	}
	for _, r := range append(slices.Clip(o.rlimits), rlimit{"RLIMIT_NPROC", uint64(o.processes), uint64(o.processes)}) { // which it took by itself
		line, err := box.HasRlimit(string(text), rlimitNumbers[r.Type], r.Hard)
		if err != nil {
			return err
		}
		seen.WriteString(line + "\n")
	}
	return nil
}

// mountsOf returns what a process sees mounted: where, and with which options.
func mountsOf(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return nil, err
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 5 {
			list = append(list, f[4]+" "+f[5])
		}
	}
	slices.Sort(list)
	return list, nil
}

const noRights = "0000000000000000"

// sameMounts holds that nothing is mounted in a container that is not shown, and that
// all is closed as it must be.
func (o order) sameMounts(list []string) error {
	may := map[string]bool{"/": true, "/proc": true} // whether it may not be written to
	for _, s := range o.shown {
		may[s.path] = true
	}
	for _, pl := range o.places() {
		may[pl.at] = false
	}
	for _, dir := range []string{"/dev", shmDir} {
		may[dir] = false
	}
	for _, m := range list {
		at, options, _ := strings.Cut(m, " ")
		readOnly, known := may[at]
		if !known {
			above := slices.ContainsFunc(o.shown, func(s show) bool { return below(at, s.path) })
			known, readOnly = above || slices.Contains(devices, at) || below(at, "/proc"), above
		}
		have := strings.Split(options, ",")
		switch {
		case !known:
			return fmt.Errorf("something is mounted at %s", at)
		case readOnly && !slices.Contains(have, "ro"):
			return fmt.Errorf("%s can be written to", at)
		case !slices.Contains(have, "nosuid") && !slices.Contains(devices, at) && !below(at, "/proc"):
			return fmt.Errorf("%s has programs that become another user (%s)", at, options)
		}
	}
	return nil
}

// devices are those that OCI runtimes make.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts", "/dev/mqueue", "/dev/console"}
