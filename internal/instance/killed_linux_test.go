package instance_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/internal/instance"
)

// roleEnv makes the test binary a host, whose folder it names, or the child of one.
const roleEnv = "TRACON_TEST_INSTANCE"

func TestMain(m *testing.M) {
	switch dir := os.Getenv(roleEnv); dir {
	case "":
		os.Exit(m.Run())
	case "child":
		_, _ = io.Copy(io.Discard, os.Stdin)
	default:
		fmt.Println(host(dir))
	}
	os.Exit(1)
}

// host starts an instance and a child that has the lock too, says "ready", and stays.
func host(dir string) error {
	if _, err := instance.Start(context.Background(), dir, id.New(), 7, nil, nil); err != nil {
		return err
	}
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return err
	}
	child := exec.Command("/proc/self/exe")
	child.Env, child.Stdin = append(os.Environ(), roleEnv+"=child"), os.Stdin
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); filepath.Dir(to) == dir && filepath.Ext(to) == ".json" {
			var n int
			if _, err := fmt.Sscan(filepath.Base(fd), &n); err != nil {
				return err
			}
			child.ExtraFiles = append(child.ExtraFiles, os.NewFile(uintptr(n), to)) // the locked one itself
		}
	}
	if len(child.ExtraFiles) != 1 {
		return fmt.Errorf("the lock is not among %q", fds)
	}
	if err := child.Start(); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}

// B9: a host that is killed just when it forks leaves its lock to the child for a moment.
// The next start waits for it, and closes what the host left.
func TestKilledWhileItForked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "instances")
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env, cmd.Stdin = append(os.Environ(), roleEnv+"="+dir), in
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the host said %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	time.AfterFunc(300*time.Millisecond, func() { hold.Close() }) // the child ends
	i, dead := start(t, dir, 8)
	defer closed(t, i, false)
	if len(dead) != 1 || dead[0].About.Size != 7 || dead[0].About.PID != cmd.Process.Pid {
		t.Errorf("got %+v, want the host that was killed", dead)
	}
}
