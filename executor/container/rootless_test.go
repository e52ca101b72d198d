//go:build linux && (amd64 || arm64)

package container_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/internal/execfile"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// B2: an ordinary user's host that is root in a user namespace, with identities to give
// away and cgroups that were delegated to it, runs scripts in containers as root does:
// with every wall, and nothing left.
func TestRootOfUserNamespace(t *testing.T) {
	if !asRoot(t) {
		return
	}
	for _, name := range tried(engines) {
		t.Run(name, func(t *testing.T) {
			delegated := hostcase.Delegate(t, hostcase.Ordinary)
			own := hostcase.OwnDir(t)
			folder := filepath.Join(own, "run")
			engine, want := forEverybody(t, find(t, name)), "ran\n"
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
			cmd.Env = append(os.Environ(), layoutEnv+"="+strings.Join([]string{"as it is", engine, folder}, "="))
			if len(delegated) > 0 && !testing.Short() { // the suites
				tests := "TestLanguages|TestKilledContainer"
				if name == engines[0] || hostcase.Full() {
					tests += "|TestConformance|TestHostile"
				}
				cmd = exec.CommandContext(t.Context(), "/proc/self/exe", "-test.short", "-test.run=^("+tests+")$")
				cmd.Env = append(os.Environ(), engineEnv+"="+name, "TMPDIR="+own, "PATH="+filepath.Dir(engine)+":"+os.Getenv("PATH"))
				want = "PASS\n"
			}
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := hostcase.StartRootless(cmd, delegated); err != nil {
				t.Fatal(err)
			}
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
