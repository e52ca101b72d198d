package hostcase

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ordinary is a user who has nothing on this host, and the group of that user.
const Ordinary = 65534

// subordinate is the first of the identities that root of a user namespace has there
// beside its own.
const subordinate = 200_001

// NeedDelegate is [Delegate] for a test that needs what it returns: without any it is
// skipped, and fails where nothing may be missing.
func NeedDelegate(t testing.TB, user int) []string {
	t.Helper()
	made := Delegate(t, user)
	if len(made) == 0 {
		const why = "there are no controllers of version 1 to delegate"
		if os.Getenv("TRACON_REQUIRE") == "all" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return made
}

// Delegate makes a cgroup for the user in each hierarchy of version 1 by which runs are
// limited, as systemd does, and returns their folders. There are none where only version
// 2 is: that limits nothing below a cgroup with processes, as ours is.
func Delegate(t testing.TB, user int) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:path
		if !slices.Contains([]string{"memory", "pids", "cpu", "cpu,cpuacct"}, f[1]) {
			continue
		}
		dir := filepath.Join("/sys/fs/cgroup", f[1], f[2], "tracon-test-"+rand.Text())
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := Eventually(func() error { return os.Remove(dir) }); err != nil { // who was killed may still be going
				t.Error(err)
			}
		})
		for _, name := range []string{"", "cgroup.procs", "tasks"} {
			if err := os.Chown(filepath.Join(dir, name), user, user); err != nil {
				t.Fatal(err)
			}
		}
		made = append(made, dir)
	}
	return made
}

// StartRootless starts cmd in these cgroups, as an ordinary user who is root of a user
// namespace with identities to give away: as unshare --mount --map-root-user --map-auto
// does for one who has some in /etc/subuid and /etc/subgid. This process must be root.
func StartRootless(cmd *exec.Cmd, cgroups []string) error {
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: Ordinary, Size: 1}, {ContainerID: 1, HostID: subordinate, Size: 65_536}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
		Credential: &syscall.Credential{Uid: 0, Gid: 0},
	}
	enter := func(where func(string) string) (err error) {
		for _, dir := range cgroups {
			err = errors.Join(err, os.WriteFile(filepath.Join(where(dir), "tasks"), []byte("0"), 0))
		}
		return err
	}
	runtime.LockOSThread() // which enters the cgroups while it starts the command
	err := enter(filepath.Clean)
	if err == nil {
		err = cmd.Start()
	}
	if err := errors.Join(err, enter(filepath.Dir)); err != nil {
		return err // on a thread that ends with its goroutine
	}
	runtime.UnlockOSThread()
	return nil
}

// TestsRootless runs the tests of this binary that match once more, as StartRootless
// starts them, and fails where one of them does or none is there.
func TestsRootless(t *testing.T, cgroups []string, match string, env ...string) {
	t.Helper()
	temporary := OwnDir(t)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", fmt.Sprintf("-test.short=%t", testing.Short()), "-test.v", "-test.run="+match)
	cmd.Env = append(append(os.Environ(), "TMPDIR="+temporary), env...)
	cmd.WaitDelay = time.Minute
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	err := StartRootless(cmd, cgroups)
	if err == nil {
		err = cmd.Wait()
	}
	text := said.String()
	if err != nil || !strings.Contains(text, "\nPASS\n") || strings.Contains(text, "no tests to run") || strings.Contains(text, "--- SKIP") {
		t.Errorf("as root of a user namespace: %v\n%s", err, text[max(0, len(text)-64<<10):])
	}
	if left := List(temporary); len(left) > 0 {
		t.Errorf("B3: there is still %q", left)
	}
	for _, dir := range cgroups {
		if left := Below([]string{dir}, "*"); len(left) > 0 {
			t.Errorf("B3: there is still %q", left)
		}
	}
}

// OwnDir returns a folder of the ordinary user's, to which every user can go.
func OwnDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755), os.Mkdir(own, 0o700), os.Chown(own, Ordinary, Ordinary)); err != nil {
		t.Fatal(err)
	}
	return own
}
