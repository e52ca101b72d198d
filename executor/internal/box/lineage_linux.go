package box

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Lineage is what is known of a run's processes without a cgroup: those of its
// session and group, those whose environment names the run, and those that stand
// in its folder. A process that hides all three is not found.
type Lineage struct {
	Main int       // the run's first process, which leads its session and group; zero: none
	Born time.Time // when Main was started, or earlier; zero: not known
	Mark string    // stands in the environment of every process that did not change it
	Dir  string    // the folder of the run
}

// Stop kills every process of the lineage but a Main that has ended, and returns
// when they are gone. It returns how many were found at first.
func (l Lineage) Stop() (found int, err error) {
	left := l.members()
	found = len(left)
	if l.Main > 0 {
		// One signal to the whole group cannot be outrun by forking: the kernel refuses
		// a fork while the signal is pending. Main was not reaped, so the number is its.
		_ = unix.Kill(-l.Main, unix.SIGKILL)
	}
	if found == 0 {
		return 0, nil
	}
	err = eventually(func() error {
		for _, pid := range left {
			l.kill(pid)
		}
		if left = l.members(); len(left) > 0 {
			return fmt.Errorf("box: %d processes do not end", len(left))
		}
		return nil
	})
	return found, err
}

// kill kills the process if it is still the one that was found: a number may
// have been given to a stranger meanwhile, a descriptor cannot.
func (l Lineage) kill(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if l.has(pid) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// members returns the living processes of the lineage.
func (l Lineage) members() []int {
	var since uint64
	if l.Main > 0 {
		main, err := readStat(l.Main)
		since = main.start
		// Where /proc is that of another namespace, its numbers are not ours.
		if err == nil && main.session == l.Main {
			if pids, ok := l.young(since); ok {
				return pids
			}
		}
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err == nil && l.hasSince(pid, since) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Bounds within which the numbers of processes alone say which are young.
const (
	youth     = 250 * time.Millisecond // of the run: 32,768 numbers, the fewest of a usual system, last for 131,000 forks a second
	youngPids = 1024                   // looked at by their numbers
)

// young returns the members of a run that began a moment ago, and false where
// that cannot be told so. Numbers are given out in rising order, so every process
// that was started since has one from Main to the last that was given. Those are
// few, while all processes of a host are many: reading 90 took 1.5 ms.
//
// A process that appears meanwhile has a higher number than the one that started
// it, so whoever goes upwards and looks again for the last number misses none.
func (l Lineage) young(since uint64) (pids []int, ok bool) {
	if l.Main <= 0 || l.Born.IsZero() || time.Since(l.Born) > youth {
		return nil, false
	}
	last, err := lastPid()
	for pid := l.Main; err == nil && pid <= last; pid++ {
		if last-l.Main > youngPids {
			return nil, false
		}
		if l.hasSince(pid, since) {
			pids = append(pids, pid)
		}
		if pid == last {
			last, err = lastPid()
		}
	}
	return pids, err == nil && last >= l.Main && time.Since(l.Born) <= youth
}

// lastPid returns the number that was given to a process last.
func lastPid() (int, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	f := bytes.Fields(text)
	if len(f) != 5 {
		return 0, errors.New("box: /proc/loadavg is not as expected")
	}
	return strconv.Atoi(string(f[4]))
}

func (l Lineage) has(pid int) bool { return l.hasSince(pid, 0) }

// hasSince looks no closer at a process that began before since: it cannot
// descend from one that began then.
func (l Lineage) hasSince(pid int, since uint64) bool {
	s, err := readStat(pid)
	if err != nil || s.ended() || s.start < since || s.session == 0 || pid == os.Getpid() {
		return false // one without a session is the kernel's
	}
	if l.Main > 0 && (s.group == l.Main || s.session == l.Main) {
		return true
	}
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	if cwd, err := os.Readlink(dir + "cwd"); err == nil && (cwd == l.Dir || strings.HasPrefix(cwd, l.Dir+"/")) {
		return true
	}
	env, err := os.ReadFile(dir + "environ")
	// In the middle of an exec a process shows no environment, until the kernel has laid it
	// out behind the new image. One that shows none between two looks at the same place has
	// none at all.
	for began := time.Now(); err == nil && len(env) == 0 && time.Since(began) < layoutTime; {
		before := s.layout
		if s, err = readStat(pid); err != nil || s.ended() || s.layout == before && before != 0 {
			return false
		}
		time.Sleep(layoutPause)
		env, err = os.ReadFile(dir + "environ")
	}
	return err == nil && bytes.Contains(env, []byte(l.Mark))
}

// For how long, and after which pause, a process in the middle of an exec is looked at
// again. It takes a few microseconds on a host that does nothing else.
const (
	layoutTime  = 2 * time.Second
	layoutPause = 250 * time.Microsecond
)

type stat struct {
	state          byte
	group, session int
	start          uint64 // ticks since the system started
	layout         uint64 // where the environment ends, another for each image; zero: it was not laid out, or is not ours to look at
}

func (s stat) ended() bool { return s.state == 'Z' || s.state == 'X' }

// readStat reads what the kernel says of a process. Its name, in parentheses,
// may hold anything, so the fields count from the last one.
func readStat(pid int) (s stat, err error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, err
	}
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(f) < 20 {
		return s, fmt.Errorf("box: /proc/%d/stat is not as expected", pid)
	}
	s.state = f[0][0]
	var errs [4]error
	s.group, errs[0] = strconv.Atoi(string(f[2]))
	s.session, errs[1] = strconv.Atoi(string(f[3]))
	s.start, errs[2] = strconv.ParseUint(string(f[19]), 10, 64)
	if len(f) > 48 {
		s.layout, errs[3] = strconv.ParseUint(string(f[48]), 10, 64)
	}
	return s, errors.Join(errs[:]...)
}
