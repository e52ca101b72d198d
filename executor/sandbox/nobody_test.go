//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tracon-go/tracon/internal/execfile"
)

// nobody is another user, who may do nothing in particular.
const nobody = 65534

// asNobodyEnv says that the tests run as another user on behalf of [asNobody].
const asNobodyEnv = "TRACON_TEST_AS_NOBODY"

// asNobody runs the tests that match once more as another user. Delegated gives
// that user a part of the cgroup tree. It does nothing where the tests already
// run as one without rights.
func asNobody(t *testing.T, delegated bool, match string) {
	t.Helper()
	if os.Getenv(asNobodyEnv) != "" {
		return // this is that run
	}
	if os.Geteuid() != 0 {
		t.Log("these tests already run as an ordinary user")
		return
	}
	dir, err := os.MkdirTemp("", "tracon-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	// The binary lies where only the user of the tests may go.
	exe := filepath.Join(dir, "sandbox.test")
	if err := copyFile("/proc/self/exe", exe); err != nil {
		t.Fatal(err)
	}
	tmp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, tmp} {
		if err := os.Chown(d, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{exe, "-test.run", match, "-test.v"}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if delegated {
		// The shell is still root when it enters, and leaves that behind.
		text := "for f; do shift; [ \"$f\" = -- ] && break; echo 0 >\"$f\" || exit 1; done\nexec setpriv --reuid 65534 --regid 65534 --clear-groups -- \"$@\"\n"
		cmd = exec.CommandContext(t.Context(), "sh", append(append(append([]string{"-c", text, "sh"}, delegate(t)...), "--"), args...)...)
	}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asNobodyEnv+"=1", "TMPDIR="+tmp, "XDG_RUNTIME_DIR=")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\nPASS\n") {
		t.Errorf("as another user: %v\n%s", err, out[max(0, len(out)-64<<10):])
	}
	if strings.Contains(string(out), "no tests to run") {
		t.Error("no test ran as another user")
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return execfile.Write(to, in)
}

// delegate makes cgroups that belong to nobody below those of this process, and
// returns the files by which a process enters them.
func delegate(t *testing.T) []string {
	t.Helper()
	cgroup, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for line := range strings.Lines(string(cgroup)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for _, controller := range []string{"memory", "pids", "cpu"} {
			if f[1] != controller {
				continue
			}
			dir := filepath.Join("/sys/fs/cgroup", controller, f[2], fmt.Sprintf("tracon-test-%d", os.Getpid()))
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := os.Remove(dir); err != nil {
					t.Error(err)
				}
			})
			for _, name := range []string{"", "tasks", "cgroup.procs"} {
				if err := os.Chown(filepath.Join(dir, name), nobody, nobody); err != nil {
					t.Fatal(err)
				}
			}
			files = append(files, filepath.Join(dir, "cgroup.procs"))
		}
	}
	if len(files) == 0 {
		if os.Getenv("TRACON_REQUIRE") == "all" {
			t.Fatal("there are no controllers of version 1 to delegate")
		}
		t.Skip("there are no controllers of version 1 to delegate")
	}
	return files
}

// The whole suite holds for an ordinary user, with a part of the cgroup tree and
// without one.
func TestAsAnotherUser(t *testing.T) {
	const match = "^(TestConformance|TestPosture|TestNothingLeaks|TestWalls|TestRefusedSocketsAreNoted|TestKnockOut|TestInterpreterElsewhere|TestProgramsWork)$"
	t.Run("without a cgroup", func(t *testing.T) { asNobody(t, false, match) })
	t.Run("with a delegated cgroup", func(t *testing.T) { asNobody(t, true, match) })
}
