//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tracon-go/tracon/internal/execfile"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// nobodies are as many other users, who may do nothing in particular. Each run as
// another user has one of its own: what the kernel counts for each user, one of
// them may use up while others run.
var nobodies atomic.Int32

func nobody() int { return 65534 - int(nobodies.Add(1)) }

// asNobodyEnv says that the tests run as another user on behalf of [asNobody].
const asNobodyEnv = "TRACON_TEST_AS_NOBODY"

// asNobody runs the tests that match once more as another user, beside others
// that do so. Delegated gives that user a part of the cgroup tree. It does nothing
// where the tests already run as one without rights, and short tests leave the user
// without such a part to the pass of ./check that is made by one.
func asNobody(t *testing.T, delegated bool, match string) {
	t.Helper()
	if os.Getenv(asNobodyEnv) != "" {
		return // this is that run
	}
	if os.Geteuid() != 0 {
		t.Log("these tests already run as an ordinary user")
		return
	}
	if testing.Short() && !delegated {
		t.Log("short: these tests run as an ordinary user in ./check test-user")
		return
	}
	t.Parallel()
	user := nobody()
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
		if err := os.Chown(d, user, user); err != nil {
			t.Fatal(err)
		}
	}
	// The hundred scripts of one case start alike for every user, and take the most time.
	args := []string{exe, "-test.run", match, "-test.skip", "^TestConformance/^.*$/^fresh_scripts$", "-test.v"}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	if delegated {
		// The shell is still root when it enters, and leaves that behind.
		text := fmt.Sprintf("for f; do shift; [ \"$f\" = -- ] && break; echo 0 >\"$f\" || exit 1; done\nexec setpriv --reuid %d --regid %[1]d --clear-groups -- \"$@\"\n", user)
		cmd = exec.CommandContext(t.Context(), "sh", slices.Concat([]string{"-c", text, "sh"}, delegate(t, user), []string{"--"}, args)...)
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

// delegate makes cgroups that belong to the user below those of this process, and
// returns the files by which a process enters them.
func delegate(t *testing.T, user int) []string {
	t.Helper()
	var files []string
	for _, dir := range hostcase.NeedDelegate(t, user) {
		files = append(files, filepath.Join(dir, "cgroup.procs"))
	}
	return files
}

// The whole suite holds for an ordinary user, with a part of the cgroup tree and
// without one.
func TestAsAnotherUser(t *testing.T) {
	t.Parallel()
	const match = "^(TestConformance|TestPosture|TestNothingLeaks|TestWalls|TestRefusedSocketsAreNoted|TestKnockOut|TestInterpreterElsewhere|TestProgramsWork)$"
	t.Run("without a cgroup", func(t *testing.T) { asNobody(t, false, match) })
	t.Run("with a delegated cgroup", func(t *testing.T) { asNobody(t, true, match) })
}
