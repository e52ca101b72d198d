//go:build linux && (amd64 || arm64)

package container_test

import (
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

	"github.com/tracon-go/tracon/internal/execfile"
	"github.com/tracon-go/tracon/internal/hostcase"
	"golang.org/x/sys/unix"
)

// ordinary is the user that the host is outside its user namespace.
const ordinary = 65534

// B2: an ordinary user's host that is root in a user namespace, with identities to give
// away and cgroups that were delegated to it, runs scripts in containers as root does:
// with every wall, and nothing left.
func TestRootOfUserNamespace(t *testing.T) {
	if !asRoot(t) {
		return
	}
	for _, name := range tried(engines) {
		t.Run(name, func(t *testing.T) {
			delegated := delegate(t)
			folder := filepath.Join(t.TempDir(), "run")
			temporary := filepath.Join(filepath.Dir(folder), "tmp")
			if err := errors.Join(os.Chmod(filepath.Dir(filepath.Dir(folder)), 0o755), os.Chmod(filepath.Dir(folder), 0o755), os.Mkdir(folder, 0o700), os.Chown(folder, ordinary, ordinary),
				os.Mkdir(temporary, 0o755), os.Chown(temporary, ordinary, ordinary)); err != nil {
				t.Fatal(err)
			}
			engine, want := forEverybody(t, find(t, name)), "ran\n"
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
			cmd.Env = append(os.Environ(), layoutEnv+"="+strings.Join([]string{"as it is", engine, folder}, "="))
			if len(delegated) > 0 && !testing.Short() { // the suites
				tests := "TestLanguages|TestKilledContainer"
				if name == engines[0] || hostcase.Full() {
					tests += "|TestConformance|TestHostile"
				}
				cmd = exec.CommandContext(t.Context(), "/proc/self/exe", "-test.short", "-test.run=^("+tests+")$")
				cmd.Env = append(os.Environ(), engineEnv+"="+name, "TMPDIR="+temporary, "PATH="+filepath.Dir(engine)+":"+os.Getenv("PATH"))
				want = "PASS\n"
			}
			ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: ordinary, Size: 1}, {ContainerID: 1, HostID: 200_001, Size: 65_536}}
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
				Credential: &syscall.Credential{Uid: 0, Gid: 0},
			}
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			runtime.LockOSThread() // which enters the cgroups while it starts the host
			enter := func(where func(string) string) (err error) {
				for _, dir := range delegated {
					err = errors.Join(err, os.WriteFile(filepath.Join(where(dir), "tasks"), []byte("0"), 0))
				}
				return err
			}
			err := enter(filepath.Clean)
			if err == nil {
				err = cmd.Start()
			}
			if err := errors.Join(err, enter(filepath.Dir)); err != nil {
				t.Fatal(err)
			}
			runtime.UnlockOSThread()
			if len(delegated) == 0 { // version 2 limits nothing below a cgroup with processes, as ours is
				want = "refused: "
			}
			if err := cmd.Wait(); err != nil || !strings.HasPrefix(said.String(), want) {
				t.Errorf("got %q, %v", said.String(), err)
			}
			for _, dir := range delegated {
				if left := hostcase.Below([]string{dir}, "*"); len(left) > 0 {
					t.Errorf("B3: there is still %q", left)
				}
			}
		})
	}
}

// forEverybody returns a copy of a program that every user may start.
func forEverybody(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	made := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := errors.Join(execfile.Write(made, f), os.Chmod(made, 0o755), os.Chmod(filepath.Dir(made), 0o755)); err != nil {
		t.Fatal(err)
	}
	return made
}

// delegate makes a cgroup in each hierarchy of version 1 for the ordinary user, as
// systemd does.
func delegate(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		parent := filepath.Join("/sys/fs/cgroup", f[1], f[2])
		if !slices.Contains([]string{"memory", "pids", "cpu", "cpu,cpuacct"}, f[1]) {
			continue
		}
		dir := filepath.Join(parent, fmt.Sprintf("tracon-test-%d-%s", os.Getpid(), t.Name()[strings.LastIndex(t.Name(), "/")+1:]))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
		for _, name := range []string{"", "cgroup.procs", "tasks"} {
			if err := os.Chown(filepath.Join(dir, name), ordinary, ordinary); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		made = append(made, dir)
	}
	return made
}
