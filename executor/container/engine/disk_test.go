//go:build linux && (amd64 || arm64)

package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container/engine"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/internal/enginecase"
	"github.com/tracon-go/tracon/internal/rootfs"
	"golang.org/x/sys/unix"
)

// fill takes all space that is left in a file's file system.
func fill(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for piece := make([]byte, 1<<20); len(piece) > 0; piece = piece[:len(piece)/2] {
		for err == nil {
			_, err = f.Write(piece)
		}
		if !errors.Is(err, unix.ENOSPC) {
			return err
		}
		err = nil
	}
	return nil
}

// Case 56: an engine whose disk is full. A script that runs already needs none of it; the
// next one is not started, and that is said; a runtime that is not there cannot be
// brought. Nothing is left, and as soon as there is space all goes on.
func TestFullDisk(t *testing.T) {
	if !withEngines(t) {
		return
	}
	root, store := t.TempDir(), image.New(filepath.Join(t.TempDir(), "images"))
	if err := rootfs.Make(root, rootfs.Scripts...); err != nil {
		t.Fatal(err)
	}
	made, err := store.ImportFolder(t.Context(), root, image.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Image.Close()
	sh, err := interpreter.Inside("sh", "base", made.Image, "")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]gate.Interpreter{"sh": sh.Interpreter()}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			disk, err := os.MkdirTemp(top, "disk") // short, as the paths of sockets must be
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "mode=0700,size=256m"); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := errors.Join(unix.Unmount(disk, 0), os.Remove(disk)); err != nil {
					t.Error(err)
				}
			}()
			d := enginecase.New(t, name, disk)
			defer func() {
				if err := d.End(); err != nil {
					t.Error(err)
				}
			}()
			ask := asker(t, d)
			config := engine.Config{Address: d.Address(), Images: store, Ready: []bundle.Digest{made.Digest}, Runtime: filepath.Join(t.TempDir(), "run")}
			e, err := engine.New(config)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}()
			req, live := admitFor(t, found, "echo ready; sleep 0.5; echo on >/outputs/on\n", time.Minute)
			filler, full := filepath.Join(disk, "fill"), make(chan error, 1)
			go func() {
				<-live.Chunks()
				full <- fill(filler)
			}()
			res, err := e.Execute(t.Context(), req)
			if err != nil || res.Ending != executor.Exited(0) || len(res.Outputs) != 1 {
				t.Errorf("the run that was under way: %v, %v, %d files", res.Ending, err, len(res.Outputs))
			}
			if err := errors.Join(<-full, fill(filler)); err != nil { // that run's end gave some back
				t.Fatal(err)
			}
			req, _ = admitFor(t, found, "echo on\n", time.Minute)
			soon(t, "a run that is refused", func() bool {
				res, err := e.Execute(t.Context(), req)
				if err == nil { // the engine gave something back meanwhile
					if err := fill(filler); err != nil {
						t.Error(err)
					}
					return false
				}
				if !errors.Is(err, engine.ErrEngine) || !errors.Is(err, executor.ErrUnavailable) || !res.Ending.IsZero() {
					t.Errorf("on a full disk: %v, %v", res.Ending, err)
				}
				return true
			})
			if left := containers(t, ask); len(left) > 0 {
				t.Errorf("B3: there is still %q", left)
			}
			config.Runtime = filepath.Join(t.TempDir(), "run")
			if more, err := engine.New(config); err == nil {
				t.Error("an executor is there that could not prove its walls")
				more.Close()
			} else if !errors.Is(err, engine.ErrEngine) {
				t.Errorf("an executor on a full disk: %v", err)
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			soon(t, "a run when there is space", func() bool {
				res, err := e.Execute(t.Context(), req)
				return err == nil && string(res.Stdout) == "on\n"
			})
			if left := containers(t, ask); len(left) > 0 {
				t.Errorf("B3: at the end there is still %q", left)
			}
		})
	}
}
