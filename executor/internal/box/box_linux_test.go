package box

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/holder"
	"golang.org/x/sys/unix"
)

func TestFindCgroup(t *testing.T) {
	const (
		unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
		hybrid  = "31 23 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n42 30 0:28 / /sys/fs/cgroup/unified rw shared:9 master:1 - cgroup2 cgroup2 rw\n"
	)
	for _, tc := range []struct{ name, cgroup, mounts, want string }{
		{"unified", "0::/user.slice/a.scope\n", unified, "/sys/fs/cgroup/user.slice/a.scope"},
		{"hybrid", "8:pids:/\n0::/\n", hybrid, "/sys/fs/cgroup/unified"},
		{"in a namespace", "0::/\n", strings.Replace(unified, " / /sys", " / /sys", 1), "/sys/fs/cgroup"},
		{"a part is mounted", "0::/docker/abc/run\n", strings.Replace(unified, " / /sys", " /docker/abc /sys", 1), "/sys/fs/cgroup/run"},
		{"another part is mounted", "0::/docker/abc\n", strings.Replace(unified, " / /sys", " /docker/xyz /sys", 1), ""},
		{"a blank in the mount point", "0::/a\n", strings.Replace(unified, "/sys/fs/cgroup", `/my\040cgroup`, 1), "/my cgroup/a"},
		{"version 1 alone", "8:pids:/\n", hybrid, ""},
		{"not mounted", "0::/\n", "31 23 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n", ""},
		{"outside the namespace", "0::/../a\n", unified, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := findCgroup(tc.cgroup, tc.mounts)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestCounted(t *testing.T) {
	const text = "low 0\nhigh 0\nmax 12\noom 2\noom_kill 3\noom_group_kill 1\n"
	if got := counted(text, "oom_kill"); got != 3 {
		t.Errorf("got %d", got)
	}
	if got := counted(text, "populated"); got != 0 {
		t.Errorf("got %d", got)
	}
}

// Arguments on standard input can be read and in no way be changed.
func TestStdinIsSealed(t *testing.T) {
	r := newRun(t, bundle.Bundle{}, bundle.Bundle{})
	f, err := r.Stdin([]byte(`{"a":1}`))
	must(t, err)
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || string(got) != `{"a":1}` {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("it can be written")
	}
	if err := f.Truncate(0); err == nil {
		t.Error("it can be cut")
	}
	empty, err := r.Stdin(nil)
	must(t, err)
	defer empty.Close()
	if got, err := io.ReadAll(empty); err != nil || len(got) > 0 || empty.Name() != os.DevNull {
		t.Errorf("got %q, %v", got, err)
	}
}

// B3: in a run that began a moment ago, the processes that are looked at by their
// numbers are those that a look at all finds.
func TestYoungLineage(t *testing.T) {
	mark := "TRACON_TEST_MARK=" + rand.Text()
	born := time.Now()
	// The shell ends and is not reaped; one child is of its group, one is in a session
	// of its own and was started by a process that is gone.
	cmd := exec.Command("/bin/sh", "-c", `sleep 60 & (setsid sh -c 'echo; exec sleep 60' &)`)
	cmd.Env, cmd.Dir = []string{"PATH=/usr/bin:/bin", mark}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	must(t, err, cmd.Start())
	defer cmd.Wait()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	must(t, unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	all := Lineage{Main: cmd.Process.Pid, Mark: mark, Dir: "/none"}
	since, err := readStat(cmd.Process.Pid)
	must(t, err)
	ok := all
	ok.Born = born
	young, told := ok.young(since.start)
	if want := all.members(); told && !slices.Equal(young, want) || len(want) != 2 {
		t.Errorf("got %v, and %v by a look at all", young, want)
	}
	if !told && time.Since(born) < youth {
		t.Errorf("it was not told, %v after the start", time.Since(born))
	}
	for name, l := range map[string]Lineage{
		"no main process": {Born: born, Mark: mark}, "an unknown start": all, "an old run": {Main: all.Main, Born: born.Add(-youth), Mark: mark},
		"very many processes since": {Main: 1, Born: time.Now(), Mark: mark}, "a number that was given anew": {Main: 1 << 30, Born: time.Now(), Mark: mark},
	} {
		if last, err := lastPid(); name == "very many processes since" && (err != nil || last <= youngPids) {
			continue // a system that has just started
		}
		if _, told := l.young(0); told {
			t.Errorf("%s: it was told by numbers", name)
		}
	}
	if n, err := ok.Stop(); n != 2 || err != nil {
		t.Errorf("stopped %d, %v", n, err)
	}
}

// Case 40: the lock of a host that was killed just when it forked is held by the child for
// a moment. Its folder goes all the same, and one of a host that lives stays.
func TestLockOfADeadHost(t *testing.T) {
	mine := strings.Fields(holder.Self())
	for _, c := range []struct {
		name, holder string
		gone         bool
	}{
		{"dead", strings.Join([]string{mine[0], mine[1], "1"}, " "), true}, // that number has another process now
		{"alive", holder.Self(), false},
		{"before it said who it is", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			left := filepath.Join(dir, "instance-"+strings.Repeat("A", 26))
			must(t, os.MkdirAll(left, 0o700), os.WriteFile(left+lockSuffix, []byte(c.holder), 0o600))
			child, err := os.Open(left + lockSuffix)
			must(t, err, unix.Flock(int(child.Fd()), unix.LOCK_EX))
			if c.gone {
				time.AfterFunc(100*time.Millisecond, func() { child.Close() })
			} else {
				defer child.Close()
			}
			i, warning, err := OpenInstance(dir, nil)
			must(t, err, warning)
			defer i.Close()
			if _, err := os.Lstat(left); c.gone != errors.Is(err, fs.ErrNotExist) {
				t.Errorf("gone %t, want %t (%v)", !c.gone, c.gone, err)
			}
		})
	}
}
