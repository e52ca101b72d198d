//go:build linux && (amd64 || arm64)

package container_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tracon-go/tracon/executor/container"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"golang.org/x/sys/unix"
)

// layoutEnv makes the test binary a host that sees its cgroups in a layout: with that,
// the OCI runtime and the runtime folder that it names.
const layoutEnv = "TRACON_TEST_LAYOUT"

// B2: whichever way a host lays its cgroups out, scripts run with their limits, or
// nothing runs and it is said what is missing. OCI runtimes differ there: crun gives up
// where it sees both versions.
func TestCgroupLayouts(t *testing.T) {
	if !asRoot(t) {
		return
	}
	for _, layout := range []string{"as it is", "version 1 alone", "version 2 alone", "none"} {
		for _, name := range tried(engines) {
			t.Run(layout+", "+name, func(t *testing.T) {
				runtime := filepath.Join(t.TempDir(), "run")
				cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
				cmd.Env = append(os.Environ(), layoutEnv+"="+strings.Join([]string{layout, find(t, name), runtime}, "="))
				cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
				out, err := cmd.Output()
				said := string(out)
				// This host may have no controllers for one of them: then that is said.
				refused := strings.HasPrefix(said, "refused: ") && strings.Contains(said, "no cgroup limits memory") && strings.Contains(said, "Delegate=yes")
				if err != nil || said != "ran\n" && (layout == "as it is" || !refused) || layout == "none" && !refused {
					t.Errorf("got %q, %v", said, err)
				}
				if left := leftovers(runtime); len(left) > 0 {
					t.Errorf("B3: there is still %q", left)
				}
			})
		}
	}
}

// inLayout says "ran" when a script has, and "refused" with the reason where the
// executor found a wall missing.
func inLayout(layout, engine, dir string) error {
	const at = "/sys/fs/cgroup"
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	switch layout {
	case "version 1 alone":
		if e := unix.Unmount(at+"/unified", unix.MNT_DETACH); e != unix.EINVAL && e != unix.ENOENT { // it has none
			err = errors.Join(err, e)
		}
	case "version 2 alone":
		err = errors.Join(err, unix.Mount("cgroup2", at, "cgroup2", 0, ""))
	case "none":
		err = errors.Join(err, unix.Mount("tmpfs", at, "tmpfs", 0, ""))
	}
	if err != nil {
		return err
	}
	e, err := container.New(container.Config{Engine: engine, Runtime: dir})
	if errors.Is(err, container.ErrWall) {
		fmt.Println("refused:", strings.ReplaceAll(err.Error(), "\n", "; "))
		return nil
	}
	if err != nil {
		return err
	}
	defer e.Close()
	sh, err := interpreter.Find(context.Background(), "sh")
	if err != nil {
		return err
	}
	req, err := executortest.NewWorld(map[string]gate.Interpreter{"sh": sh.Interpreter()}).Admit(context.Background(), script("sh", "echo ran\n"))
	if err != nil {
		return err
	}
	res, err := e.Execute(context.Background(), req)
	fmt.Print(string(res.Stdout))
	return err
}
