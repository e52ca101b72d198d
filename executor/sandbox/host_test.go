//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// hostEnv makes the test binary a host that runs scripts in the folder that it
// names until it is killed.
const hostEnv = "TRACON_TEST_HOST"

func TestMain(m *testing.M) {
	if dir := os.Getenv(hostEnv); dir != "" {
		host(dir)
	}
	code := m.Run()
	if err := removeMachine(); err != nil {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// hostRuns is how many scripts are under way in a host that is killed.
const hostRuns = 20

// host runs scripts that leave children, sessions and files behind, and says
// "ready" when all are under way. The mark is an argument of their processes.
func host(dir string) {
	fail := func(err error) {
		fmt.Println(err)
		os.Exit(1)
	}
	e, err := sandbox.New(sandbox.Config{Runtime: dir})
	if err != nil {
		fail(err)
	}
	sh, err := interpreter.Find(context.Background(), "sh")
	if err != nil {
		fail(err)
	}
	w := executortest.NewWorld(map[string]gate.Interpreter{"sh": sh.Interpreter()})
	for range 2 { // one of this tenant's calls is waited for when the host is killed
		req, err := w.Admit(context.Background(), of("another", script("sh", "true\n")))
		if err == nil {
			_, err = e.Execute(context.Background(), req)
		}
		if err != nil {
			fail(err)
		}
	}
	var ready sync.WaitGroup
	for range hostRuns {
		o := script("sh", "sleep "+hostMark+" & setsid sleep "+hostMark+" & echo x >/tmp/x; echo ready; sleep "+hostMark+"\n")
		o.Policy.Timeout = 5 * time.Minute
		o.Live = gate.NewLive(0)
		req, err := w.Admit(context.Background(), o)
		if err != nil {
			fail(err)
		}
		ready.Add(1)
		go func() {
			<-o.Live.Chunks()
			ready.Done()
		}()
		go func() {
			_, err := e.Execute(context.Background(), req)
			fail(err)
		}()
	}
	ready.Wait()
	sandbox.Made(e)
	fmt.Println("ready")
	select {}
}

const hostMark = "299.0815"

// marked returns the processes that run a marked script.
func marked() []string {
	var found []string
	for _, path := range hostcase.List("/proc") {
		line, _ := os.ReadFile(path + "/cmdline")
		if strings.Contains(string(line), hostMark) || string(line) == "tracon\x00" {
			found = append(found, path)
		}
	}
	return found
}

// Case 40: kill -9 of the host in the middle of 20 runs ends every process of
// theirs by itself, and the next start leaves no folder and no cgroup.
func TestKilledHost(t *testing.T) {
	runtime := filepath.Join(t.TempDir(), "run")
	before, mounted := marked(), mounts(t)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), hostEnv+"="+runtime)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the host said %q, %v", line, err)
	}
	if n := len(marked()); n < len(before)+2*hostRuns {
		t.Fatalf("there are only %d processes of scripts", n)
	}
	dead := hostcase.List(runtime)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	deadline := time.Now().Add(time.Minute)
	left := marked()
	for time.Now().Before(deadline) {
		if left = slices.DeleteFunc(marked(), func(p string) bool { return slices.Contains(before, p) }); len(left) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(left) > 0 {
		t.Errorf("a minute after the host was killed, there still are %q", left)
	}
	if got := mounts(t); got != mounted {
		t.Errorf("%d mounts before and %d after", mounted, got)
	}
	open(t, sandbox.Config{Runtime: runtime})
	for _, path := range dead {
		name := strings.TrimSuffix(filepath.Base(path), ".lock")
		if left := append(hostcase.Cgroups(name), exists(path)...); len(left) > 0 {
			t.Errorf("after the next start there is %q", left)
		}
	}
}

func exists(path string) []string {
	if _, err := os.Lstat(path); err == nil {
		return []string{path}
	}
	return nil
}
