//go:build linux && (amd64 || arm64)

package container_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/execfile"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// hostEnv makes the test binary a host that runs a script until it is killed: with the
// mark of its processes, the OCI runtime and the runtime folder that it names.
const hostEnv = "TRACON_TEST_HOST"

func TestMain(m *testing.M) {
	if v := os.Getenv(hostEnv); v != "" {
		words := strings.SplitN(v, "=", 3)
		fmt.Println(host(words[0], words[1], words[2]))
		os.Exit(1)
	}
	if v := os.Getenv(layoutEnv); v != "" {
		words := strings.SplitN(v, "=", 3)
		if err := inLayout(words[0], words[1], words[2]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// host says "ready" when its script has a process in a session of its own.
func host(mark, engine, dir string) error {
	e, err := container.New(container.Config{Engine: engine, Runtime: dir})
	if err != nil {
		return err
	}
	sh, err := interpreter.Find(context.Background(), "sh")
	if err != nil {
		return err
	}
	o := script("sh", "setsid sh -c 'echo ready; exec sleep "+mark+"' & wait\n")
	o.Policy.Timeout, o.Live = 5*time.Minute, gate.NewLive(0)
	req, err := executortest.NewWorld(map[string]gate.Interpreter{"sh": sh.Interpreter()}).Admit(context.Background(), o)
	if err != nil {
		return err
	}
	go func() {
		<-o.Live.Chunks()
		fmt.Println("ready")
	}()
	_, err = e.Execute(context.Background(), req)
	return err
}

// marked returns the processes that have the mark among their words.
func marked(mark string) []string {
	var found []string
	for _, path := range hostcase.List("/proc") {
		line, _ := os.ReadFile(path + "/cmdline")
		if strings.Contains(string(line), mark) {
			found = append(found, path)
		}
	}
	return found
}

// Cases 40 and 56: what a killed host left is removed by the next one in the same
// folder: each process, cgroup and folder. What another host has is left alone.
func TestKilledHost(t *testing.T) {
	if !asRoot(t) {
		return
	}
	engine := find(t, engines[0])
	runtime := filepath.Join(t.TempDir(), "run")
	another, _ := open(t, container.Config{Engine: engine, Runtime: runtime})
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	mark := fmt.Sprintf("299.%09d", os.Getpid()) // seconds
	cmd.Env = append(os.Environ(), hostEnv+"="+strings.Join([]string{mark, engine, runtime}, "="))
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
	if len(marked(mark)) == 0 {
		t.Fatal("no script is under way")
	}
	before := hostcase.Instances(runtime)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	next, err := container.New(container.Config{Engine: engine, Runtime: runtime})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if left := marked(mark); len(left) > 0 {
		t.Errorf("after the next start there are %q", left)
	}
	if after := hostcase.Instances(runtime); len(before) != 2 || len(after) != 2 {
		t.Errorf("instances before %q, and after %q", before, after)
	}
	w := executortest.NewWorld(hostcase.Interpreters(t))
	req, err := w.Admit(t.Context(), script("sh", "echo on\n"))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := another.Execute(t.Context(), req); err != nil || string(res.Stdout) != "on\n" {
		t.Errorf("the host that lives: %v, %q", err, res.Stdout)
	}
}

// Case 56: an OCI runtime that fails, hangs, or is gone is told apart from how a
// script ends: nothing was started, and nothing is left.
func TestBrokenEngine(t *testing.T) {
	if !asRoot(t) {
		return
	}
	real := find(t, engines[0])
	dir := t.TempDir()
	engine, broken := filepath.Join(dir, "engine"), filepath.Join(dir, "broken")
	text := "#!/bin/sh\n[ \"$1\" = --version ] || [ ! -e " + broken + " ] || . " + broken + "\nexec " + real + " \"$@\"\n"
	if err := execfile.Write(engine, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	e, runtime := open(t, container.Config{Engine: engine})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	for _, tc := range []struct {
		name, does string
		want       error
	}{
		{"fails", "exit 3", container.ErrEngine},
		{"is killed", "kill -9 $$", container.ErrEngine},
		{"hangs until the caller gives up", "sleep 600", errGaveUp},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := os.WriteFile(broken, []byte(tc.does+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			req, err := w.Admit(t.Context(), script("sh", "echo never\n"))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tc.want == errGaveUp {
				time.AfterFunc(100*time.Millisecond, func() { cancel(errGaveUp) })
			}
			res, err := e.Execute(ctx, req)
			if !errors.Is(err, tc.want) || tc.want != errGaveUp && !errors.Is(err, executor.ErrUnavailable) || !res.Ending.IsZero() {
				t.Errorf("got %v, %v", res.Ending, err)
			}
			if left := leftovers(runtime); len(left) > 0 {
				t.Errorf("B3: there is still %q", left)
			}
		})
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(engine); err != nil {
		t.Fatal(err)
	}
	req, err := w.Admit(t.Context(), script("sh", "echo never\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Execute(t.Context(), req); !errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("an engine that is gone: %v", err)
	}
}

var errGaveUp = errors.New("the caller gave up")

// The posture says which OCI runtime was proved, and no tier above the kernel that
// scripts share.
func TestPosture(t *testing.T) {
	if !asRoot(t) {
		return
	}
	e, _ := open(t, container.Config{Engine: find(t, engines[0])})
	p, err := e.Posture(t.Context())
	if err != nil || p.Executor != container.Name || p.Tier != grant.Sandbox || p.Claimed {
		t.Errorf("got %+v, %v", p, err)
	}
	if !strings.Contains(p.Walls[0].Proof, engines[0]+" 1") {
		t.Errorf("the proof names no version: %q", p.Walls[0].Proof)
	}
}

// Zero is closed: without the path of an OCI runtime that this executor drives, there
// is no executor.
func TestNoEngine(t *testing.T) {
	if !asRoot(t) {
		return
	}
	for _, path := range []string{"", "crun", "/nowhere/crun", "/bin/true"} {
		if e, err := container.New(container.Config{Engine: path, Runtime: filepath.Join(t.TempDir(), "run")}); err == nil || e != nil {
			t.Errorf("%q: got an executor, %v", path, err)
		}
	}
}

// A policy's loopback is refused, not left out.
func TestLoopbackIsRefused(t *testing.T) {
	if !asRoot(t) {
		return
	}
	e, _ := open(t, container.Config{Engine: find(t, engines[0])})
	o := script("sh", "echo never\n")
	o.Policy.Network = gate.Loopback
	req, err := executortest.NewWorld(hostcase.Interpreters(t)).Admit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Execute(t.Context(), req); !errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}
