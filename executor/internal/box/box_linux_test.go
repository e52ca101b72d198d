package box

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
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
