//go:build linux && amd64

package microvm

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

var errNotAsItMustBe = errors.New("the monitor is not as it must be")

const noRights = "0000000000000000"

// inspect looks at a monitor from outside, before its machine is told anything of a
// script, and holds that it is as it must be. It returns what was seen, without what
// differs from run to run.
func (e *Executor) inspect(v *vm) (string, error) {
	text, err := e.look(v)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNotAsItMustBe, err)
	}
	return text, nil
}

func (e *Executor) look(v *vm) (string, error) {
	proc := fmt.Sprintf("/proc/%d/", v.child.process.Pid)
	text, err := os.ReadFile(proc + "status")
	if err != nil {
		return "", err
	}
	status := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		status[name] = strings.TrimSpace(value)
	}
	var seen strings.Builder
	fmt.Fprintf(&seen, "monitor %s\naccelerated %t\n", e.monitor.describe(), v.machine.accelerate)
	if !v.from.IsZero() {
		fmt.Fprintf(&seen, "restored of %s\n", v.from)
	}
	id := strings.TrimSpace(strings.Repeat(fmt.Sprintf("%d\t", v.id), 4))
	want := map[string]string{"Uid": id, "Gid": id, "NoNewPrivs": "1", "Seccomp": "2"}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		want[set] = noRights
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if status[name] != want[name] {
			return "", fmt.Errorf("its %s is %q, want %q", name, status[name], want[name])
		}
		if want[name] != id {
			fmt.Fprintf(&seen, "%s %s\n", name, want[name])
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(namespaces)) {
		own, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return "", err
		}
		its, err := os.Readlink(proc + "ns/" + kind)
		if err != nil || its == own {
			return "", errors.Join(fmt.Errorf("it has no %s namespace of its own", kind), err)
		}
		fmt.Fprintf(&seen, "namespace %s\n", kind)
	}
	cgroup, err := os.ReadFile(proc + "cgroup")
	if err != nil {
		return "", err
	}
	if got := strings.Count(string(cgroup), v.group.Path+"\n"); got != e.limits.Count() {
		return "", fmt.Errorf("it is in %d cgroups of its run, want %d", got, e.limits.Count())
	}
	files, err := sameFiles(proc+"fd", v.files, v.machine.accelerate)
	fmt.Fprintf(&seen, "cgroups %d\nfiles %s\nkernel %s\ninitrd %s\n", e.limits.Count(), files, e.kit.Info().Kernel, e.kit.Info().Initrd)
	return seen.String(), err
}

// An inode is which file one is.
type inode struct{ dev, number uint64 }

// inodes returns which files these are.
func inodes(files []*os.File) (map[inode]bool, error) {
	list := map[inode]bool{}
	for _, f := range files {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return nil, err
		}
		list[inode{st.Dev, st.Ino}] = true
	}
	return list, nil
}

// sameFiles holds that a monitor has no files but those of its machine: the null device,
// the kernel, the disk, its sockets, the pipe for its log, the processor's device, and
// what the kernel makes for it alone (to wait for events).
func sameFiles(dir string, given map[inode]bool, accelerate bool) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	kinds := map[string]bool{}
	pipes := map[uint64]bool{}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		link, err := os.Readlink(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // it has just closed it
		}
		var st unix.Stat_t
		if err == nil {
			err = unix.Stat(name, &st)
		}
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return "", err
		case given[inode{st.Dev, st.Ino}]:
			kinds["the machine's"] = true
		case link == nullDev:
			kinds["null"] = true
		case link == kvmPath && accelerate:
			kinds["kvm"] = true
		case strings.HasPrefix(link, "anon_inode:"):
			kinds["events"] = true
		case st.Mode&unix.S_IFMT == unix.S_IFIFO && len(pipes) <= maxPipes:
			pipes[st.Ino] = true
			kinds["pipes"] = true
		default:
			return "", fmt.Errorf("it has the file %.80q open", link)
		}
	}
	if len(pipes) > maxPipes {
		return "", fmt.Errorf("it has %d pipes open", len(pipes))
	}
	return strings.Join(slices.Sorted(maps.Keys(kinds)), ", "), nil
}

// maxPipes is how many a monitor has: one for its log, and one by which it wakes itself.
const maxPipes = 2
