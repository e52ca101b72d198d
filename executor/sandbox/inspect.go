//go:build linux && (amd64 || arm64)

package sandbox

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/internal/box"
	"golang.org/x/sys/unix"
)

// An expectation is what a box must look like from outside before its script may
// start. Nothing in it is taken from what the box says of itself: the kernel is
// asked, by the numbers of the box's processes.
type expectation struct {
	status     map[string]string // lines of /proc/PID/status, by name
	users      int               // the only user in it, as this process sees it
	groups     int               // the only group
	landlock   int               // the version that its rules are of, which cannot be seen
	filter     []byte            // of system calls, of which can be seen only that there is one
	namespaces map[string]string // our own, none of which it may share
	mounts     map[string]uint64 // the flags that each must have
	deep       []string          // those whose mounts below need the same flags
	cgroup     string            // what each line of /proc/PID/cgroup must hold that limits it
	cgroups    int               // in how many lines
	streams    [3]*os.File       // standard input, output and error of the call
	program    *os.File          // the interpreter
	rlimits    []rlimit
}

// namespaceKinds are those that a box has of its own.
var namespaceKinds = []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}

// A posture is what was seen of a box, in lines of text that are the same for
// every run in the same box.
type posture struct{ text strings.Builder }

func (p *posture) saw(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

func (p *posture) digest() bundle.Digest { return sha256.Sum256([]byte(p.text.String())) }

// inspect holds that the process is walled in as it must be.
func (x *expectation) inspect(pid int) (*posture, error) {
	proc, err := openProc(pid)
	if err != nil {
		return nil, err
	}
	defer proc.close()
	p := &posture{}
	p.saw("profile %s", Profile)
	p.saw("landlock %d", x.landlock)
	p.saw("filter %x", sha256.Sum256(x.filter))
	for _, look := range []func(*procFolder, *posture) error{x.lookStatus, x.lookMaps, x.lookNamespaces, x.lookMounts, x.lookCgroups, x.lookFiles, x.lookLimits} {
		if err := look(proc, p); err != nil {
			return nil, fmt.Errorf("the box is not as it must be: %w", err)
		}
	}
	return p, nil
}

func (x *expectation) lookStatus(proc *procFolder, p *posture) error {
	text, err := proc.read("status")
	if err != nil {
		return err
	}
	got := make(map[string]string, len(x.status))
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		if _, ok := x.status[name]; ok {
			got[name] = strings.Join(strings.Fields(value), " ")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.status)) {
		if got[name] != x.status[name] {
			return fmt.Errorf("%s is %q, and must be %q", name, got[name], x.status[name])
		}
		p.saw("%s %s", name, got[name])
	}
	return nil
}

func (x *expectation) lookMaps(proc *procFolder, p *posture) error {
	for file, want := range map[string]string{"uid_map": one(x.users), "gid_map": one(x.groups), "setgroups": "deny"} {
		text, err := proc.read(file)
		if err != nil {
			return err
		}
		if got := strings.Join(strings.Fields(text), " "); got != want {
			return fmt.Errorf("%s is %q, and must be %q", file, got, want)
		}
	}
	p.saw("one identity")
	return nil
}

// one is the map of a user namespace with a single identity.
func one(id int) string { return fmt.Sprintf("%d %d 1", insideID, id) }

func (x *expectation) lookNamespaces(proc *procFolder, p *posture) error {
	for _, kind := range namespaceKinds {
		got, err := proc.link("ns/" + kind)
		if err != nil {
			return err
		}
		if got == x.namespaces[kind] || !strings.HasPrefix(got, kind+":[") {
			return fmt.Errorf("it shares our %s namespace", kind)
		}
		p.saw("namespace %s", kind)
	}
	return nil
}

// mountOptions are the flags of a mount as /proc/PID/mountinfo writes them.
var mountOptions = []struct {
	name string
	flag uint64
}{
	{"ro", unix.MOUNT_ATTR_RDONLY}, {"nosuid", unix.MOUNT_ATTR_NOSUID}, {"nodev", unix.MOUNT_ATTR_NODEV},
	{"noexec", unix.MOUNT_ATTR_NOEXEC}, {"nosymfollow", unix.MOUNT_ATTR_NOSYMFOLLOW},
}

func (x *expectation) lookMounts(proc *procFolder, p *posture) error {
	text, err := proc.read("mountinfo")
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 6 {
			return fmt.Errorf("a mount that cannot be read: %q", line)
		}
		at := f[4]
		want, ok := x.mounts[at]
		for _, dir := range x.deep {
			if !ok && below(at, dir) {
				want, ok = x.mounts[dir], true
			}
		}
		if !ok || seen[at] {
			return fmt.Errorf("there is a mount at %s", at)
		}
		seen[at] = true
		options := strings.Split(f[5], ",")
		for _, o := range mountOptions {
			if want&o.flag != 0 && !slices.Contains(options, o.name) {
				return fmt.Errorf("the mount at %s is not %s", at, o.name)
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(x.mounts)) {
		if !seen[at] {
			return fmt.Errorf("nothing is mounted at %s", at)
		}
		p.saw("mount %s %#x", at, x.mounts[at])
	}
	return nil
}

func (x *expectation) lookCgroups(proc *procFolder, p *posture) error {
	text, err := proc.read("cgroup")
	if err != nil {
		return err
	}
	n := 0
	for line := range strings.Lines(text) {
		if strings.HasSuffix(strings.TrimSuffix(line, "\n"), x.cgroup) {
			n++
		}
	}
	if n != x.cgroups {
		return fmt.Errorf("it is in %d cgroups of the run, and must be in %d", n, x.cgroups)
	}
	p.saw("cgroups %d", n)
	return nil
}

func (x *expectation) lookFiles(proc *procFolder, p *posture) error {
	open, err := proc.list("fd")
	if err != nil {
		return err
	}
	slices.Sort(open)
	if want := []string{"0", "1", "2", "3", "4"}; !slices.Equal(open, want) {
		return fmt.Errorf("it has the files %v open, and must have %v", open, want)
	}
	same, err := proc.same(programFD, x.program)
	if err != nil {
		return err
	}
	if !same {
		return errors.New("what it would start is not the interpreter that was opened")
	}
	// They came in a message, of which the kernel leaves out what it has no room for.
	for n, f := range x.streams {
		same, err := proc.same(n, f)
		if err != nil {
			return err
		}
		if !same {
			return fmt.Errorf("its file %d is not that of the call", n)
		}
	}
	environ, err := proc.read("environ")
	if err != nil {
		return err
	}
	if len(environ) > 0 {
		return errors.New("it has an environment before it starts the interpreter")
	}
	cwd, err := proc.link("cwd")
	if err != nil {
		return err
	}
	if cwd != skillDir {
		return fmt.Errorf("its working directory is %s", cwd)
	}
	p.saw("files 0 1 2, and two that close at the start")
	return nil
}

func (x *expectation) lookLimits(proc *procFolder, p *posture) error {
	text, err := proc.read("limits")
	if err != nil {
		return err
	}
	for _, r := range x.rlimits {
		seen, err := box.HasRlimit(text, r.what, r.limit)
		if err != nil {
			return err
		}
		p.saw("%s", seen)
	}
	return nil
}
