//go:build linux && (amd64 || arm64)

package container_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/execfile"
	"github.com/tracon-go/tracon/internal/hostcase"
	"golang.org/x/sys/unix"
)

// Case 56: a container that somebody kills while its script runs is an error that is
// no ending of the script's, and not one of a script that was not started. Nothing is
// left, and the next run goes on.
func TestKilledContainer(t *testing.T) {
	if !asRoot(t) {
		return
	}
	for _, name := range tried(engines) {
		t.Run(name, func(t *testing.T) {
			e, runtime := open(t, container.Config{Engine: find(t, name)})
			w := executortest.NewWorld(hostcase.Interpreters(t))
			o := script("sh", "echo begun; sleep 600\n")
			o.Policy.Timeout, o.Live = gate.CeilingTimeout, gate.NewLive(0)
			req, err := w.Admit(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			killed := make(chan error, 1)
			go func() {
				<-o.Live.Chunks()
				killed <- killFirst(runtime)
			}()
			res, err := e.Execute(t.Context(), req)
			if !errors.Is(err, container.ErrEngine) || errors.Is(err, executor.ErrUnavailable) || !res.Ending.IsZero() {
				t.Errorf("got %v, %v", res.Ending, err)
			}
			if err := <-killed; err != nil {
				t.Error(err)
			}
			goesOn(t, e, w, runtime)
		})
	}
}

// killFirst kills the first process in the pid namespace of the one run that there is.
func killFirst(runtime string) error {
	for _, dir := range leftovers(runtime) {
		text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for _, pid := range strings.Fields(string(text)) {
			status, _ := os.ReadFile("/proc/" + pid + "/status")
			for line := range strings.Lines(string(status)) {
				if f := strings.Fields(line); len(f) > 2 && f[0] == "NSpid:" && f[len(f)-1] == "1" {
					var n int
					if _, err := fmt.Sscan(pid, &n); err != nil {
						return err
					}
					return unix.Kill(n, unix.SIGKILL)
				}
			}
		}
	}
	return errors.New("no first process was found")
}

// goesOn holds that nothing is left of the runs before, and that the next one works.
func goesOn(t *testing.T, e *container.Executor, w *executortest.World, runtime string) {
	t.Helper()
	if left := leftovers(runtime); len(left) > 0 {
		t.Errorf("B3: there is still %q", left)
	}
	req, err := w.Admit(t.Context(), script("sh", "echo on\n"))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := e.Execute(t.Context(), req); err != nil || string(res.Stdout) != "on\n" {
		t.Errorf("the next run: %v, %v, %q", res.Ending, err, res.Stdout)
	}
}

// Case 56: an OCI runtime that is killed at some point of its work has started the
// script or has not, and what comes of the run says which. Nothing is left.
func TestEngineKilledAtWork(t *testing.T) {
	if !asRoot(t) {
		return
	}
	for _, name := range tried(engines) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			engine, when := filepath.Join(dir, name), filepath.Join(dir, "when")
			text := "#!/bin/sh\n[ -e " + when + " ] || exec " + find(t, name) + " \"$@\"\n" +
				find(t, name) + " \"$@\" &\nsleep $(cat " + when + ")\nkill -9 $!\nwait $!\n"
			if err := execfile.Write(engine, strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
			e, runtime := open(t, container.Config{Engine: engine})
			w := executortest.NewWorld(hostcase.Interpreters(t))
			for _, after := range []string{"0", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1"} {
				if err := os.WriteFile(when, []byte(after), 0o600); err != nil {
					t.Fatal(err)
				}
				req, err := w.Admit(t.Context(), script("sh", "echo on\n"))
				if err != nil {
					t.Fatal(err)
				}
				res, err := e.Execute(t.Context(), req)
				switch {
				case err == nil && res.Ending == executor.Exited(0) && string(res.Stdout) == "on\n":
				case errors.Is(err, container.ErrEngine) && errors.Is(err, executor.ErrUnavailable) && len(res.Stdout) == 0:
				default:
					t.Errorf("killed after %s s: %v, %v, %q", after, res.Ending, err, res.Stdout)
				}
				if left := leftovers(runtime); len(left) > 0 {
					t.Errorf("B3: killed after %s s: there is still %q", after, left)
				}
			}
			if err := os.Remove(when); err != nil {
				t.Fatal(err)
			}
			goesOn(t, e, w, runtime)
		})
	}
}

// Case 56: where there is no space, an OCI runtime that needs some fails before the
// script, an executor that cannot say that it lives does not start, and one that
// lives needs none of a disk.
func TestNoSpace(t *testing.T) {
	if !asRoot(t) {
		return
	}
	engine := filepath.Join(t.TempDir(), engines[0])
	full := filepath.Join(filepath.Dir(engine), "full")
	// Its log lies where its state does, in a file system of the run's own.
	text := "#!/bin/sh\nif [ -e " + full + " ]; then cat /dev/zero >\"$2.fill\" 2>/dev/null; fi\nexec " + find(t, engines[0]) + " \"$@\"\n"
	if err := execfile.Write(engine, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "mode=0700,size=64k,nr_inodes=32"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	}()
	e, err := container.New(container.Config{Engine: engine, Runtime: filepath.Join(disk, "run")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for i := 0; ; i++ { // until nobody can make a file any more
		if err := os.Mkdir(filepath.Join(disk, fmt.Sprint("fill", i)), 0o700); err != nil {
			break
		}
	}
	if e, err := container.New(container.Config{Engine: engine, Runtime: filepath.Join(disk, "run")}); !errors.Is(err, unix.ENOSPC) || e != nil {
		t.Errorf("an executor with a full runtime folder: %v", err)
	}
	w := executortest.NewWorld(hostcase.Interpreters(t))
	goesOn(t, e, w, filepath.Join(disk, "run"))
	if err := os.WriteFile(full, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	req, err := w.Admit(t.Context(), script("sh", "echo never\n"))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := e.Execute(t.Context(), req); !errors.Is(err, container.ErrEngine) || !errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("an OCI runtime without space: %v, %v", res.Ending, err)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	goesOn(t, e, w, filepath.Join(disk, "run"))
}

// Case 56: callers that give up while their containers are made get their places
// back, whatever the OCI runtime had done by then.
func TestGivenUpWhileMade(t *testing.T) {
	if !asRoot(t) {
		return
	}
	e, runtime := open(t, container.Config{Engine: find(t, engines[0])})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	done := make(chan error)
	const runs = 8
	for i := range runs {
		req, err := w.Admit(t.Context(), script("sh", "sleep 600\n"))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			stop := make(chan struct{})
			go func() {
				defer close(stop)
				for range i * 2000 { // some earlier and some later
					if ctx.Err() != nil {
						return
					}
				}
				cancel(errGaveUp)
			}()
			_, err := e.Execute(ctx, req)
			<-stop
			done <- err
		}()
	}
	for range runs {
		if err := <-done; !errors.Is(err, errGaveUp) {
			t.Errorf("R24: got %v", err)
		}
	}
	goesOn(t, e, w, runtime)
}
