package box

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Lineage is what is known of a run's processes without a cgroup: those of its
// session and group, those whose environment names the run, and those that stand
// in its folder. A process that hides all three is not found.
type Lineage struct {
	Main int    // the run's first process, which leads its session and group; zero: none
	Mark string // stands in the environment of every process that did not change it
	Dir  string // the folder of the run
}

// Stop kills every process of the lineage but a Main that has ended, and returns
// when they are gone. It returns how many were found at first.
func (l Lineage) Stop() (found int, err error) {
	if l.Main > 0 {
		// One signal to the whole group cannot be outrun by forking: the kernel refuses
		// a fork while the signal is pending. Main was not reaped, so the number is its.
		found = len(l.members())
		_ = unix.Kill(-l.Main, unix.SIGKILL)
	}
	first := true
	err = eventually(func() error {
		left := l.members()
		if first && l.Main == 0 {
			found = len(left)
		}
		first = false
		for _, pid := range left {
			l.kill(pid)
		}
		if len(left) > 0 {
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
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if l.has(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (l Lineage) has(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil || int(st.Uid) != os.Geteuid() && os.Geteuid() != 0 {
		return false
	}
	state, group, session, err := readStat(dir + "stat")
	if err != nil || state == 'Z' || state == 'X' {
		return false
	}
	if l.Main > 0 && (group == l.Main || session == l.Main) {
		return true
	}
	if cwd, err := os.Readlink(dir + "cwd"); err == nil && (cwd == l.Dir || strings.HasPrefix(cwd, l.Dir+"/")) {
		return true
	}
	env, err := os.ReadFile(dir + "environ")
	return err == nil && bytes.Contains(env, []byte(l.Mark))
}

// readStat reads the state, the group and the session of a process. The name in
// parentheses may hold anything, so the fields count from the last one.
func readStat(path string) (state byte, group, session int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, 0, err
	}
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(f) < 4 {
		return 0, 0, 0, errors.New("box: " + path + " is not as expected")
	}
	group, err = strconv.Atoi(string(f[2]))
	if err != nil {
		return 0, 0, 0, err
	}
	session, err = strconv.Atoi(string(f[3]))
	return f[0][0], group, session, err
}
