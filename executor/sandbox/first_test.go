//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// firstEnv says that the test is the first process of a namespace.
const firstEnv = "TRACON_TEST_FIRST"

// B2: a host that is the first process of its container, and so has a number that boxes
// have too, is not taken for a process of the box: its walls stand, and scripts run.
func TestHostIsTheFirstProcess(t *testing.T) {
	if os.Getenv(firstEnv) == "" {
		if os.Geteuid() != 0 {
			t.Log("a namespace of processes is root's to make")
			return
		}
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), firstEnv+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "\n--- PASS: "+t.Name()+" ") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	if pid := os.Getpid(); pid != 1 {
		t.Fatalf("it is process %d", pid)
	}
	e, _ := open(t, sandbox.Config{})
	if !stands(t, e, "other processes") {
		t.Error("B2: the wall to other processes does not stand")
	}
	w := executortest.NewWorld(hostcase.Interpreters(t))
	res, err := e.Execute(t.Context(), admit(t, w, script("sh", "echo hi\n")))
	if err != nil || string(res.Stdout) != "hi\n" {
		t.Errorf("got %q, %v: %s", res.Stdout, err, res.Stderr)
	}
}
