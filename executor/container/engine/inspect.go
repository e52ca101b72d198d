//go:build linux && (amd64 || arm64)

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracon-go/tracon/executor/internal/box"
	"golang.org/x/sys/unix"
)

var errNotAsItMustBe = errors.New("the container is not as it must be")

const noRights = "0000000000000000"

// The files that count processes which were killed for want of memory, and those that
// have the limits, in cgroups of version 2 and of version 1.
var (
	oomFiles    = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}
	memoryFiles = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}
	tasksFiles  = []string{"/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"}
	cpuFiles    = []string{"/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"}
)

// inspect has the first process look at its own walls, before anything of a run is
// there, and holds that they are as they must be. It returns what was seen, without
// what differs from run to run.
func (e *Executor) inspect(r *run) (string, error) {
	m := message{}
	// The file belongs to the process as long as that does not hide.
	m.try(unix.SYS_OPENAT, slotAdj, num(-1), m.text("/proc/self/oom_score_adj"), num(unix.O_WRONLY|unix.O_CLOEXEC), num(0))
	m.must(unix.SYS_PRCTL, 0, num(unix.PR_SET_DUMPABLE), num(0), num(0), num(0), num(0))
	for i, name := range oomFiles {
		m.try(unix.SYS_OPENAT, slotOOM+slot(i), num(-1), m.text(name), num(unix.O_RDONLY|unix.O_CLOEXEC), num(0))
	}
	list := slices.Concat([]string{"/proc/self/status", "/proc/self/mountinfo", "/proc/self/limits"}, memoryFiles, tasksFiles, cpuFiles)
	for _, name := range list {
		r.talk.read(&m, name)
	}
	if err := r.talk.say(&m); err != nil {
		return "", err
	}
	texts := map[string]string{}
	for i, name := range list {
		text, err := r.talk.heardText()
		if errors.Is(err, unix.EBADF) && i >= 3 {
			continue // there is no such file in this version of cgroups
		}
		if err != nil {
			return "", fmt.Errorf("%s in the container: %w", name, err)
		}
		texts[name] = text
	}
	seen, err := e.look(r.order, texts)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNotAsItMustBe, err)
	}
	return e.api.name + " " + e.api.version + "\n" + seen, nil
}

// look holds that the walls are as they must be.
func look(o order, texts map[string]string) (string, error) {
	var seen strings.Builder
	status := map[string]string{}
	for line := range strings.Lines(texts["/proc/self/status"]) {
		name, value, _ := strings.Cut(line, ":")
		status[name] = strings.Join(strings.Fields(value), " ")
	}
	id := strings.TrimSpace(strings.Repeat(strconv.Itoa(o.id)+" ", 4))
	for _, want := range [][2]string{
		{"Uid", id}, {"Gid", id}, {"NoNewPrivs", "1"}, {"NSpid", "1"},
		{"CapInh", noRights}, {"CapPrm", noRights}, {"CapEff", noRights}, {"CapBnd", noRights}, {"CapAmb", noRights},
	} {
		if got := status[want[0]]; got != want[1] {
			return "", fmt.Errorf("its %s is %q, want %q", want[0], got, want[1])
		}
		if want[1] != id {
			fmt.Fprintf(&seen, "%s %s\n", want[0], want[1])
		}
	}
	if groups := status["Groups"]; groups != "" && groups != strconv.Itoa(o.id) {
		return "", fmt.Errorf("it is in the groups %q", groups)
	}
	for _, limit := range []struct {
		name  string
		files []string
		most  int64
	}{{"memory", memoryFiles, o.memory}, {"processes", tasksFiles, int64(o.processes + 1 + starters)}, {"processor time", cpuFiles, 1 << 40}} {
		n, ok := least(texts, limit.files)
		if !ok || n > limit.most {
			return "", fmt.Errorf("no cgroup holds its %s; start the engine where it may make cgroups (a rootless one: %s)", limit.name, delegated)
		}
		fmt.Fprintf(&seen, "cgroup %s %d\n", limit.name, n)
	}
	for _, l := range o.rlimits() {
		line, err := box.HasRlimit(texts["/proc/self/limits"], l.what, uint64(l.most))
		if err != nil {
			return "", err
		}
		seen.WriteString(line + "\n")
	}
	var list []string
	for line := range strings.Lines(texts["/proc/self/mountinfo"]) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		list = append(list, f[4]+" "+f[5])
		if err := o.holdsSpace(f[4], f[len(f)-1]); err != nil {
			return "", err
		}
	}
	slices.Sort(list)
	return seen.String() + strings.Join(list, "\n"), sameMounts(list)
}

// holdsSpace holds that a file system in memory is no larger than it must be, by its own
// options.
func (o order) holdsSpace(dir, options string) error {
	most, ours := o.space[dir]
	if dir == shmDir {
		most, ours = o.shm(), true
	}
	if !ours {
		return nil
	}
	for option := range strings.SplitSeq(options, ",") {
		if text, ok := strings.CutPrefix(option, "size="); ok {
			if kib, err := strconv.ParseInt(strings.TrimSuffix(text, "k"), 10, 64); err == nil && kib<<10 < most+pageSize {
				return nil
			}
		}
	}
	return fmt.Errorf("%s holds more than %d bytes (%s)", dir, most, options)
}

// least returns the smallest number at the beginning of the files that are there.
func least(texts map[string]string, files []string) (n int64, ok bool) {
	for _, name := range files {
		word, _, _ := strings.Cut(strings.TrimSpace(texts[name]), " ")
		if v, err := strconv.ParseInt(word, 10, 64); err == nil && v >= 0 && (!ok || v < n) {
			n, ok = v, true
		}
	}
	return n, ok
}

// sameMounts holds that nothing is mounted in a container but what an engine must, and
// that all of it is closed that must be.
func sameMounts(list []string) error {
	there := map[string]bool{}
	for _, m := range list {
		dir, options, _ := strings.Cut(m, " ")
		have := strings.Split(options, ",")
		there[dir] = true
		writable := slices.Contains(folders, dir)
		switch {
		case writable:
			if !slices.Contains(have, "nosuid") || !slices.Contains(have, "nodev") {
				return fmt.Errorf("%s is mounted with %s", dir, options)
			}
			if dir != skillDir && !slices.Contains(have, "noexec") {
				return fmt.Errorf("%s has programs (%s)", dir, options)
			}
		case dir == "/proc", strings.HasPrefix(dir, "/proc/"), dir == "/dev", strings.HasPrefix(dir, "/dev/"): // the probe tries them
		case dir == "/", dir == "/sys", strings.HasPrefix(dir, "/sys/"), slices.Contains(engineFiles, dir), slices.Contains(emptied, dir):
			if !slices.Contains(have, "ro") && !strings.HasPrefix(dir, "/sys/") {
				return fmt.Errorf("%s can be written to", dir)
			}
		default:
			return fmt.Errorf("something is mounted at %s", dir)
		}
	}
	for _, dir := range append([]string{"/", "/proc"}, folders...) {
		if !there[dir] {
			return fmt.Errorf("nothing is mounted at %s", dir)
		}
	}
	return nil
}

var (
	engineFiles = []string{"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv", "/run/secrets"}
	emptied     = []string{"/run", "/var/tmp"}
)

// oomKilled reports whether a process was killed for want of memory, by what the kernel
// says in either version of cgroups.
func oomKilled(text string) bool {
	for line := range strings.Lines(text) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(count))
			return err == nil && n > 0
		}
	}
	return false
}
