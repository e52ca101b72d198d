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
	"strconv"
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
// "ready" when all are under way. The mark of their processes is an argument.
func host(dir string) {
	hostMark := markOf(os.Getpid())
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

// markOf returns for how many seconds the scripts of that host sleep, and no other
// process does.
func markOf(host int) string { return fmt.Sprintf("299.%09d", host) }

// marked returns the processes that run a script of that host.
func marked(host int) []string {
	var found []string
	for _, path := range hostcase.List("/proc") {
		line, _ := os.ReadFile(path + "/cmdline")
		if strings.Contains(string(line), markOf(host)) {
			found = append(found, path)
		}
	}
	return found
}

// boxes returns the first processes of the boxes that the host has made, by their numbers
// and when they started.
func boxes(host int) []string {
	var found []string
	for _, path := range hostcase.List("/proc") {
		if parent, started := born(path); parent == strconv.Itoa(host) && isBox(path) {
			found = append(found, path+" "+started)
		}
	}
	return found
}

// isBox reports whether the process is the first one of a box. What has ended is none.
func isBox(path string) bool {
	line, _ := os.ReadFile(path + "/cmdline")
	return string(line) == "tracon\x00"
}

// born returns the parent of the process, and when it started, in ticks since the system
// did; nothing where there is no such process.
func born(path string) (parent, started string) {
	stat, _ := os.ReadFile(path + "/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	if f := strings.Fields(rest); len(f) > 19 {
		return f[1], f[19]
	}
	return "", ""
}

// Case 40: kill -9 of the host in the middle of 20 runs ends every process of
// theirs by itself, and the next start leaves no folder and no cgroup.
func TestKilledHost(t *testing.T) {
	runtime := filepath.Join(t.TempDir(), "run")
	mounted := hostcase.Mounts(t)
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
	pid := cmd.Process.Pid
	// A child that was forked becomes the program that has the mark a moment later.
	for deadline := time.Now().Add(time.Minute); len(marked(pid)) < 3*hostRuns; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("there are only %d processes of scripts", len(marked(pid)))
		}
	}
	made := boxes(pid)
	if len(made) < hostRuns {
		t.Fatalf("there are only %d boxes", len(made))
	}
	dead := hostcase.List(runtime)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	lives := func(box string) bool {
		path, started, _ := strings.Cut(box, " ")
		_, now := born(path)
		return now == started && isBox(path)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		made = slices.DeleteFunc(made, func(box string) bool { return !lives(box) })
		left := append(marked(pid), made...)
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a minute after the host was killed, there still are %q", left)
		}
	}
	if left := hostcase.Mounted(t, mounted); len(left) > 0 {
		t.Errorf("left mounted: %q", left)
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
