//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"golang.org/x/sys/unix"
)

// drainTime is how long the pipes are read after the last process is gone. What
// is in them by then is read in far less.
const drainTime = 500 * time.Millisecond

// leastSpace is what a script must be able to write: 1 MiB.
const leastSpace = 1 << 20

// Execute runs the script of req. See [executor.Executor].
//
// # Errors
//
// executor.ErrInvalidRequest; one that wraps executor.ErrUnavailable when the
// script was not started: no path of an interpreter, one that is not the file that
// was probed or lies where a script cannot see it, files that need more memory
// than the policy allows, a *StepError; the cause of ctx when it was done. Any
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
	j := job{
		extension: req.Extension(), interpreter: req.Interpreter(), skill: req.Bundle(), inputs: req.Inputs(),
		stdin: req.Stdin(), env: req.Environment(), timeout: req.Timeout(), output: req.MaxOutputBytes(), live: req.Live(),
		tenant: req.Tenant(), limits: e.limits.Of(req.Memory(), req.Processes()),
	}
	j.network = req.Network()
	j.harvest.Bytes, j.harvest.Files = req.MaxOutputs()
	j.harvest.Patterns = req.OutputPatterns()
	j.argv = interpreter.CommandOf(req, skillDir+"/"+req.Script())
	res, err := e.run(ctx, j)
	if err != nil {
		return executor.Result{}, err
	}
	if code, ok := res.Ending.ExitCode(); ok && code != 0 {
		res.Notes = append(res.Notes, e.explain(ctx, req, res.Stderr)...)
	}
	return res, nil
}

// A job is what one box is made for: a script, or a probe.
type job struct {
	tenant        string
	extension     string
	interpreter   gate.Interpreter
	argv          []string
	skill, inputs bundle.Bundle
	stdin         []byte
	env           map[string]string
	timeout       time.Duration
	output        int
	live          *gate.Live
	limits        box.Limits
	network       gate.Network
	harvest       box.Harvest
}

// A staged job has all files open that its box needs.
type staged struct {
	kind    kind
	order   order    // without its frame, which is that of the hull
	hull    *hull    // nil: it has none yet
	program *os.File // the interpreter
	stdin   *os.File
	streams *box.Streams
	flooded chan struct{}
	folders box.Folders
	laid    time.Time
}

func (e *Executor) stage(j job) (r *staged, err error) {
	r = &staged{flooded: make(chan struct{}, 2)}
	defer func() {
		if err != nil {
			e.clean(r)
		}
	}()
	if err := e.mayHave(j.network); err != nil {
		return r, err
	}
	root, err := e.runtimes.get(j.interpreter)
	if err != nil {
		return r, err
	}
	if root != nil {
		r.program, err = e.interpreters.OpenInside(root.image, j.interpreter)
	} else {
		r.program, err = e.interpreters.Open(j.interpreter)
	}
	if err != nil {
		return r, err
	}
	space, err := e.space(j)
	if err != nil {
		return r, err
	}
	if r.stdin, err = box.Input(j.stdin); err != nil {
		return r, err
	}
	if r.streams, err = box.NewStreams(j.output, j.live, func() { r.flooded <- struct{}{} }); err != nil {
		return r, err
	}
	held := j.limits
	held.Processes += overhead
	r.kind = kind{
		tenant: j.tenant, memory: held.Memory, processes: held.Processes,
		network: j.network, runtime: root, taken: takenBy(j.skill),
	}
	r.order = order{
		skill: j.skill, inputs: j.inputs, interpreter: j.interpreter.Path, argv: j.argv, env: interpreter.Environment(root.of(), homeDir, tmpDir, j.env), space: space,
		rlimits: e.setup.within(rlimits(e.limits, interpreter.KindOf(j.extension, j.interpreter.Path), held, j.timeout)),
	}
	return r, nil
}

// space returns how much the script may write. All files of a run lie in memory,
// and count as its memory: with less than that, a write fails; with more, the
// script would be killed for a large file.
func (e *Executor) space(j job) (int64, error) {
	skill, _ := blocks(j.skill)
	inputs, _ := blocks(j.inputs)
	space := min(max(e.config.Space, 2*j.harvest.Bytes), (j.limits.Memory-skill-inputs)/2)
	if space < leastSpace {
		return 0, fmt.Errorf("the run's files need %d bytes of memory, and the policy allows %d in all; raise its limit of memory", skill+inputs, j.limits.Memory)
	}
	return space, nil
}

// clean removes everything of a run. What cannot be removed is the operator's to
// know, and changes nothing about how the script ended.
func (e *Executor) clean(r *staged) {
	r.folders.Close()
	for _, f := range []*os.File{r.program, r.stdin} {
		if f != nil {
			f.Close()
		}
	}
	if r.streams != nil {
		r.streams.Close()
	}
	e.raze(r.hull)
}

func (e *Executor) run(ctx context.Context, j job) (executor.Result, error) {
	r, err := e.stage(j)
	if err != nil {
		return executor.Result{}, fmt.Errorf("%w: %w", executor.ErrUnavailable, err)
	}
	begun := false
	defer func() {
		e.clean(r)
		if begun {
			e.ahead.want(r.kind)
		}
	}()
	seen, err := e.enterBox(ctx, r)
	if err != nil {
		if ctx.Err() != nil {
			return executor.Result{}, context.Cause(ctx)
		}
		return executor.Result{}, fmt.Errorf("%w: %w", executor.ErrUnavailable, err)
	}
	r.streams.Start()
	begun = true
	c := r.hull.child
	why := e.underWay.Await(ctx, c.over, r.flooded, j.timeout)
	c.kill()
	reapErr := c.reap()
	<-c.over
	out := executor.Result{PostureDigest: e.record(seen)}
	out.Stdout, out.Stderr, out.Truncated = r.streams.Finish(drainTime)
	if reapErr != nil {
		e.log.Error("the processes of a run could not be waited for", "err", reapErr)
	}
	if why == box.Cancelled {
		return executor.Result{}, e.underWay.Cause(ctx)
	}
	outOfMemory := r.hull.group.OutOfMemory()
	if out.Ending, err = ending(why, c, outOfMemory); err != nil {
		return executor.Result{}, err
	}
	if left := int(c.end.number); why == box.Ended && c.end.tag == 'D' && left > 0 {
		out.Notes = append(out.Notes, box.Stopped(left))
	}
	if note := c.refusals.note(); note != "" {
		out.Notes = append(out.Notes, note)
	}
	if code, ok := out.Ending.ExitCode(); ok && outOfMemory {
		out.Notes = append(out.Notes, box.KilledWithin(code))
	}
	files, told := box.Adopt(r.folders, j.skill, j.inputs, r.laid, reach(j.skill)).Collect(j.harvest)
	out.Outputs, out.Notes = files, append(out.Notes, told...)
	return out, nil
}

// enterBox finds the job a box and lets its script start in it.
func (e *Executor) enterBox(ctx context.Context, r *staged) (seen *posture, err error) {
	if r.hull = e.ahead.take(r.kind); r.hull != nil {
		if seen, err = e.admit(ctx, r); err == nil || ctx.Err() != nil {
			return seen, err
		}
		// No script has started yet. If it is the call that is wrong, the next box says so.
		e.log.Warn("a box that was made ahead did not serve, and another one is made", "err", err)
	}
	seen, err = e.enterNew(ctx, r)
	if scarce(err) && ctx.Err() == nil && e.ahead.spare() {
		return e.enterNew(ctx, r)
	}
	return seen, err
}

// scarce reports whether something of the host was used up, which boxes that wait
// have too.
func scarce(err error) bool {
	for _, errno := range []error{unix.ENOSPC, unix.EUSERS, unix.EAGAIN, unix.EMFILE, unix.ENFILE, box.ErrNoIdentity} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// enterNew makes the job a box in place of the one that it may have, and lets its
// script start in it.
func (e *Executor) enterNew(ctx context.Context, r *staged) (seen *posture, err error) {
	r.folders.Close()
	r.folders = box.Folders{}
	e.raze(r.hull)
	if r.hull, err = e.erect(r.kind); err != nil {
		return nil, fmt.Errorf("starting a box: %w", err)
	}
	return e.admit(ctx, r)
}

// admit gives the job's box its call, and lets the script start when the box around
// it is as it must be.
func (e *Executor) admit(ctx context.Context, r *staged) (*posture, error) {
	c := r.hull.child
	r.order.frame = r.hull.frame
	stdout, stderr := r.streams.Writers()
	if id := r.order.id; id >= 0 { // a script may open /dev/stdout
		if err := errors.Join(stdout.Chown(id, id), stderr.Chown(id, id)); err != nil {
			return nil, err
		}
	}
	if e.setup.settle {
		if err := c.made(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.send(ctx, e.setup.complete(r.order), r.stdin, stdout, stderr); err != nil {
		return nil, err
	}
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	seen, err := e.setup.inspect(e.setup.expect(r, e.limits.Count()), c.main)
	if err == nil {
		err = r.order.runtime.look(c.main, seen)
	}
	if err != nil {
		return nil, err
	}
	seen.saw("network %s", r.order.network)
	// No script runs yet, so these paths lead where the box's program made them.
	for _, f := range []struct {
		to  **os.File
		dir string
	}{{&r.folders.Skill, skillDir}, {&r.folders.Inputs, inputsDir}, {&r.folders.Outputs, outputsDir}} {
		if *f.to, err = os.OpenFile(fmt.Sprintf("/proc/%d/root%s", c.main, f.dir), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0); err != nil {
			return nil, err
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d/root%s", c.main, shmDir), &st); err != nil {
		return nil, err
	}
	r.laid = time.Unix(st.Mtim.Unix())
	return seen, c.release()
}

func ending(why box.Reason, c *child, outOfMemory bool) (executor.Ending, error) {
	switch {
	case why != box.Ended: // whatever the box said last
	case c.end.tag == 'F':
		return executor.Ending{}, fmt.Errorf("%w: %w", executor.ErrUnavailable, c.failure(c.end))
	case c.end.tag != 'D' && outOfMemory:
		return executor.OutOfMemory(), nil // the whole box was killed
	case c.end.tag != 'D':
		return executor.Ending{}, errors.New("sandbox: the first process of a box was killed")
	}
	return box.EndingOf(why, syscall.WaitStatus(c.end.value), outOfMemory, true), nil
}

// reach returns how the script reaches outputs/ from its working directory.
func reach(skill bundle.Bundle) string {
	if has(skill, box.OutputsDir) {
		return outputsDir + "/"
	}
	return box.OutputsDir + "/"
}
