//go:build linux && (amd64 || arm64)

package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/container/engine"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
)

// The variables that make the test binary a host which runs a script until it is killed:
// the engine's address, the runtime folder, the store's folder and a runtime's digest.
const (
	hostAddress = "TRACON_TEST_HOST_ADDRESS"
	hostRuntime = "TRACON_TEST_HOST_RUNTIME"
	hostImages  = "TRACON_TEST_HOST_IMAGES"
	hostDigest  = "TRACON_TEST_HOST_DIGEST"
)

// host says "ready" when its script runs.
func host() error {
	store := image.New(os.Getenv(hostImages))
	d, err := bundle.ParseDigest(os.Getenv(hostDigest))
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Config{Address: os.Getenv(hostAddress), Runtime: os.Getenv(hostRuntime), Images: store, Ready: []bundle.Digest{d}})
	if err != nil {
		return err
	}
	i, err := store.Image(d)
	if err != nil {
		return err
	}
	f, err := interpreter.Inside("sh", "base", i, "")
	if err != nil {
		return err
	}
	o := script("echo ready\nsleep 300\n")
	o.Policy.Timeout, o.Live = 5*time.Minute, gate.NewLive(0)
	req, err := executortest.NewWorld(map[string]gate.Interpreter{"sh": f.Interpreter()}).Admit(context.Background(), o)
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

// Cases 40 and 56: what a killed host left in an engine is removed by the next one with
// the same runtime folder. What another host has there is left alone, and so is what is
// nobody's of ours, whatever labels it has.
func TestKilledHost(t *testing.T) {
	if !withEngines(t) {
		return
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			d := engineOf(t, name)
			ask := asker(t, d)
			other := open(t, d, engine.Config{}) // with another folder
			req, live := admit(t, "echo ready\nsleep 300\n", 5*time.Minute)
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan struct{})
			go func() {
				defer close(over)
				_, _ = other.Execute(ctx, req)
			}()
			<-live.Chunks()
			theirs := containers(t, ask)
			image, err := ask.ContainerInspect(t.Context(), theirs[0], client.ContainerInspectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			foreign, err := ask.ContainerCreate(t.Context(), client.ContainerCreateOptions{Name: "tracon-of-somebody", Config: &container.Config{
				Image: image.Container.Image, Cmd: []string{"/bin/true"}, Labels: map[string]string{"org.tracon.run": "x", "org.tracon.instance": "instance-AAAAAAAAAAAAAAAAAAAAAAAAAA"},
			}})
			if err != nil {
				t.Fatal(err)
			}

			r, err := aRuntime()
			if err != nil {
				t.Fatal(err)
			}
			runtime := filepath.Join(t.TempDir(), "run")
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
			cmd.Env = append(os.Environ(), hostAddress+"="+d.Address(), hostRuntime+"="+runtime, hostImages+"="+r.store.Dir(), hostDigest+"="+r.digest.String())
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
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if n := len(containers(t, ask)); n != 3 {
				t.Errorf("after the kill there are %d containers, want 3", n)
			}
			open(t, d, engine.Config{Runtime: runtime})
			if left := containers(t, ask); len(left) != 2 {
				t.Errorf("after the next start there are %q, want %q and %q", left, theirs, foreign.ID)
			}
			if _, err := ask.ContainerRemove(t.Context(), foreign.ID, client.ContainerRemoveOptions{Force: true}); err != nil {
				t.Error(err)
			}
			cancel()
			<-over
			if left := containers(t, ask); len(left) > 0 {
				t.Errorf("at the end there are %q", left)
			}
		})
	}
}
