//go:build unix

// Package bare is an executor without a single wall: what one gets who starts a
// script with os/exec and thinks no further. It hands its own environment and
// open files on, waits for nothing but the script's first process, and collects
// by path. It is the control of the hostile suite, which proves with it that an
// attack works where nobody stands in its way; no product links it.
package bare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

// patience is how long it waits for a script that ignores SIGTERM after its
// timeout, for whoever else has the script's output open, and for somebody who
// writes to a fifo. The suite ends what it waits for long before.
const patience = 3 * time.Minute

// most is how much is read of one file that a script left.
const most = 4 << 20

// An Executor runs scripts in folders below Dir.
type Executor struct{ Dir string }

var _ executor.Executor = Executor{}

// Execute runs the script of req. See the package comment for all that it does
// not do.
//
// # Errors
//
// executor.ErrInvalidRequest; the cause of ctx; what the operating system says.
func (e Executor) Execute(ctx context.Context, req executor.Request) (executor.Result, error) {
	if !req.Valid() {
		return executor.Result{}, executor.ErrInvalidRequest
	}
	dir, err := os.MkdirTemp(e.Dir, "bare-")
	if err != nil {
		return executor.Result{}, err
	}
	defer remove(dir)
	if err := lay(dir, req); err != nil {
		return executor.Result{}, err
	}
	var stdout, stderr bytes.Buffer
	skill := filepath.Join(dir, "skill")
	cmd := exec.Command(req.Interpreter().Path, append([]string{filepath.Join(skill, req.Script())}, req.Words()...)...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = skill, bytes.NewReader(req.Stdin()), io.MultiWriter(&stdout, live{req.Live()}), &stderr
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(dir, "home"), "TMPDIR="+filepath.Join(dir, "tmp"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that the control can be ended at last
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		return executor.Result{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timer := time.NewTimer(req.Timeout())
	defer timer.Stop()
	expired := false
	select {
	case <-ended:
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		<-ended
		return executor.Result{}, context.Cause(ctx)
	case <-timer.C:
		expired = true
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(patience):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-ended
		}
	}
	res := executor.Result{Ending: ending(cmd.ProcessState), Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	if expired {
		res.Ending = executor.Expired()
	}
	res.Outputs = collect(ctx, filepath.Join(dir, "outputs"))
	return res, nil
}

// live shows output while the script runs.
type live struct{ *gate.Live }

func (l live) Write(p []byte) (int, error) {
	l.Send(gate.Stdout, p)
	return len(p), nil
}

func ending(s *os.ProcessState) executor.Ending {
	status := s.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return executor.Signaled(int(status.Signal()))
	}
	return executor.Exited(status.ExitStatus())
}

func lay(dir string, req executor.Request) error {
	for _, d := range []string{"skill", "inputs", "outputs", "tmp", "home"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	for d, b := range map[string]bundle.Bundle{"skill": req.Bundle(), "inputs": req.Inputs()} {
		for _, p := range b.Paths() {
			text, _, _ := b.Text(p)
			at := filepath.Join(dir, d, p)
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o700)); err != nil {
				return err
			}
		}
	}
	return errors.Join(os.Symlink("../inputs", filepath.Join(dir, "skill/inputs")), os.Symlink("../outputs", filepath.Join(dir, "skill/outputs")))
}

// collect reads what lies below the folder by its path, and follows whatever
// lies in the way.
func collect(ctx context.Context, dir string) []bundle.File {
	var files []bundle.File
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(p, dir+"/")
		if err != nil || p == dir || len(files) > 200 {
			return nil
		}
		if entries, err := os.ReadDir(p); err == nil && d.Type()&fs.ModeSymlink != 0 {
			for _, e := range entries {
				files = append(files, bundle.File{Path: name + "/" + e.Name(), Data: read(ctx, filepath.Join(p, e.Name()))})
			}
			return nil
		}
		if !d.IsDir() {
			files = append(files, bundle.File{Path: name, Data: read(ctx, p)})
		}
		return nil
	})
	return files
}

// read reads a file. For one that nobody writes to it waits, until the caller
// gives up.
func read(ctx context.Context, p string) []byte {
	done := make(chan []byte, 1)
	go func() {
		f, err := os.Open(p)
		if err != nil {
			done <- nil
			return
		}
		defer f.Close()
		b, _ := io.ReadAll(io.LimitReader(f, most))
		done <- b
	}()
	select {
	case b := <-done:
		return b
	case <-ctx.Done():
	case <-time.After(patience):
	}
	for {
		if f, err := os.OpenFile(p, os.O_RDWR|syscall.O_NONBLOCK, 0); err == nil {
			f.Close() // lets the reader go, if it has come to wait
		}
		select {
		case b := <-done:
			return b
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Canary is what the path of a folder holds that may be harmed: of the host,
// nothing else is ever changed through a link.
const Canary = "/tracon-canary-"

// remove makes everything removable, by path, and removes it.
func remove(dir string) {
	root, _ := filepath.EvalSymlinks(dir)
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if real, err := filepath.EvalSymlinks(p); err == nil && p != dir && (strings.HasPrefix(real, root+"/") || strings.Contains(real, Canary)) {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "bare: a control left", err)
	}
}
