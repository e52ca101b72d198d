//go:build linux || darwin

package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/internal/notes"
	"github.com/tracon-go/tracon/executor/interpreter"
)

// drainTime is how long the pipes are read after the last process is gone. What
// is in them by then is read in far less; only a process that could not be
// stopped can keep one open for longer.
const drainTime = 500 * time.Millisecond

// Execute runs the script of req. See [executor.Executor].
//
// # Errors
//
// executor.ErrInvalidRequest; one that wraps executor.ErrUnavailable when the
// script was not started: no path of an interpreter, a file that is not the one
// that was probed, no room for the files; the cause of ctx when it was done. Any
// other error is a failed run.
func (e *Executor) Execute(ctx context.Context, req executor.Request) (executor.Result, error) {
	if !req.Valid() {
		return executor.Result{}, executor.ErrInvalidRequest
	}
	leave, err := e.underWay.Enter()
	if err != nil {
		return executor.Result{}, err
	}
	defer leave()
	if ctx.Err() != nil {
		return executor.Result{}, context.Cause(ctx)
	}
	r, err := e.stage(req)
	if err != nil {
		return executor.Result{}, fmt.Errorf("%w: %w", executor.ErrUnavailable, err)
	}
	defer e.clean(r)
	return e.run(ctx, r, req)
}

// A staged run has its folder laid out, its cgroup made and its files open.
type staged struct {
	*box.Run
	cgroup  *box.Cgroup // nil: none
	program *os.File    // the interpreter
	stdin   *os.File
	streams *box.Streams
	flooded chan struct{}
}

func (e *Executor) stage(req executor.Request) (r *staged, err error) {
	r = &staged{flooded: make(chan struct{}, 2)}
	if r.program, err = e.interpreters.Open(req.Interpreter()); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.clean(r)
		}
	}()
	if r.Run, err = e.instance.NewRun(); err != nil {
		return nil, err
	}
	if err = r.Lay(req.Bundle(), req.Inputs()); err != nil {
		return nil, err
	}
	if r.stdin, err = r.Stdin(req.Stdin()); err != nil {
		return nil, err
	}
	if r.streams, err = box.NewStreams(req.MaxOutputBytes(), req.Live(), func() { r.flooded <- struct{}{} }); err != nil {
		return nil, err
	}
	r.cgroup, err = e.cgroups.NewRun(r.Name(), req.Memory(), req.Processes())
	return r, err
}

// clean removes everything of a run. What cannot be removed is the operator's to
// know, and changes nothing about how the script ended.
func (e *Executor) clean(r *staged) {
	for _, f := range []*os.File{r.program, r.stdin} {
		if f != nil {
			f.Close()
		}
	}
	if r.streams != nil {
		r.streams.Close()
	}
	err := r.cgroup.Remove()
	if r.Run != nil {
		err = errors.Join(err, r.Remove())
	}
	if err != nil {
		e.log.Error("what a run left was not removed", "err", err)
	}
}

func (e *Executor) run(ctx context.Context, r *staged, req executor.Request) (executor.Result, error) {
	in := req.Interpreter()
	c, err := start(r, environment(r.Run, req.Environment()), interpreter.CommandOf(req, r.Path(box.SkillDir, req.Script())))
	if err != nil {
		return executor.Result{}, fmt.Errorf("%w: starting %s: %w", executor.ErrUnavailable, in.Path, err)
	}
	r.streams.Start()

	why := box.Ended
	if c.limitErr == nil {
		why = e.underWay.Await(ctx, c.ended, r.flooded, req.Timeout())
	}
	if c.limitErr != nil || why != box.Ended {
		_ = c.process.Kill()
	}
	left, stopErr := r.stopAll(c)
	status, err := c.reap()
	stdout, stderr, truncated := r.streams.Finish(drainTime)
	if stopErr != nil {
		e.log.Error("processes of a run could not be stopped", "run", req.ID(), "err", stopErr)
	}
	if why == box.Cancelled {
		return executor.Result{}, e.underWay.Cause(ctx)
	}
	if c.limitErr != nil {
		return executor.Result{}, fmt.Errorf("process: limiting the script: %w", c.limitErr)
	}
	if err != nil {
		return executor.Result{}, fmt.Errorf("process: waiting for the script: %w", err)
	}
	res := executor.Result{Ending: box.EndingOf(why, status, r.cgroup.OutOfMemory(), false), Stdout: stdout, Stderr: stderr, Truncated: truncated}
	if stopErr != nil {
		res.Notes = append(res.Notes, "a process that the script started could not be stopped")
	} else if why == box.Ended && left > 0 {
		res.Notes = append(res.Notes, box.Stopped(left))
	}
	h := box.Harvest{Patterns: req.OutputPatterns()}
	h.Bytes, h.Files = req.MaxOutputs()
	files, told := r.Collect(h)
	res.Outputs, res.Notes = files, append(res.Notes, told...)
	if code, ok := res.Ending.ExitCode(); ok && code != 0 {
		res.Notes = append(res.Notes, notes.Explain(notes.FailureOf(req, stderr))...)
	}
	return res, nil
}

// stopAll stops every process of the run that is left, and returns how many
// there were. The first process may have ended but has not been reaped.
func (r *staged) stopAll(c *child) (left int, err error) {
	if r.cgroup == nil {
		return box.Lineage{Main: c.process.Pid, Born: c.born, Mark: r.Name(), Dir: r.Dir()}.Stop()
	}
	return r.cgroup.Stop(c.process.Pid)
}

// environment is built from empty: the fixed set and what the policy adds.
func environment(r *box.Run, more map[string]string) []string {
	env := []string{
		"PATH=" + interpreter.SearchPath,
		"HOME=" + r.Path(box.HomeDir),
		"TMPDIR=" + r.Path(box.TmpDir),
		"LANG=C.UTF-8",
		"TZ=UTC",
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		env = append(env, name+"="+more[name])
	}
	return env
}
