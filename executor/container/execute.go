//go:build linux && (amd64 || arm64)

package container

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/internal/notes"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"golang.org/x/sys/unix"
)

const (
	// drainTime is how long the pipes are read after the last process is gone.
	drainTime = 500 * time.Millisecond

	// setupTime is how long a container may take until its first process is there. It
	// takes milliseconds; only an OCI runtime that hangs takes longer.
	setupTime = 60 * time.Second

	// leastSpace is what a script must be able to write: 1 MiB.
	leastSpace = 1 << 20
)

// Execute runs the script of req. See [executor.Executor].
//
// # Errors
//
// executor.ErrInvalidRequest; one that wraps executor.ErrUnavailable when the script
// was not started: no path of an interpreter, one that is not the file that was
// probed or that a container does not show, a runtime that is not there, files that
// need more memory than the policy allows, an OCI runtime that failed (ErrEngine
// too); the cause of ctx when it was done. Any other error is a failed run.
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
	if n := req.Network(); n != gate.NoNetwork {
		return executor.Result{}, fmt.Errorf("%w: the policy asks for the network %q, and a container has none; take the executor sandbox", executor.ErrUnavailable, n)
	}
	j := job{
		interpreter: req.Interpreter(), kind: interpreter.KindOf(req.Extension(), req.Interpreter().Path),
		skill: req.Bundle(), inputs: req.Inputs(), stdin: req.Stdin(), env: req.Environment(), timeout: req.Timeout(),
		output: req.MaxOutputBytes(), live: req.Live(), tenant: req.Tenant(), limits: e.limits.Of(req.Memory(), req.Processes()),
	}
	j.harvest.Bytes, j.harvest.Files = req.MaxOutputs()
	j.harvest.Patterns = req.OutputPatterns()
	j.argv = interpreter.CommandOf(req, skillDir+"/"+req.Script())
	res, err := e.run(ctx, j)
	if err != nil {
		return executor.Result{}, err
	}
	if code, ok := res.Ending.ExitCode(); ok && code != 0 {
		res.Notes = append(res.Notes, notes.Explain(notes.FailureOf(req, res.Stderr))...)
	}
	return res, nil
}

// A job is what one container is made for: a script, or a probe.
type job struct {
	tenant        string
	interpreter   gate.Interpreter
	kind          interpreter.Kind
	argv          []string
	skill, inputs bundle.Bundle
	stdin         []byte
	env           map[string]string
	timeout       time.Duration
	output        int
	live          *gate.Live
	limits        box.Limits
	harvest       box.Harvest
}

// A staged job has all files open that its container needs.
type staged struct {
	order   order
	ground  *ground
	group   box.Group
	talk    talk
	init    *os.File // the first process (a pidfd); nil: it has not been heard of
	initPID int
	stdin   *os.File
	streams *box.Streams
	flooded chan struct{}
	seen    string // what was seen of the walls, from outside
}

// starters is how many threads an OCI runtime may need, and the host, before the
// script is there. The script itself is held to its own number by its identity.
const starters = 64

func (e *Executor) stage(j job) (r *staged, err error) {
	r = &staged{flooded: make(chan struct{}, 2), order: order{
		instance: e.instance.Name(), name: "tracon-" + rand.Text(), ids: [2]int{-1, -1}, skill: j.skill, inputs: j.inputs,
		argv: j.argv, interpreter: j.interpreter.Path, shown: e.shown, processes: j.limits.Processes + 1,
		gvisor: e.engine.name == gvisor, memory: j.limits.Memory,
		rlimits: []rlimit{limit("RLIMIT_CORE", 1), limit("RLIMIT_CPU", uint64(math.Ceil(j.timeout.Seconds()*max(1, j.limits.Processors)))+1),
			limit("RLIMIT_NOFILE", 256), limit("RLIMIT_MEMLOCK", 64<<10), limit("RLIMIT_MSGQUEUE", 0), limit("RLIMIT_SIGPENDING", 256), limit("RLIMIT_STACK", 8<<20)},
	}}
	defer func() {
		if err != nil {
			e.clean(r)
		}
	}()
	o := &r.order
	in, err := e.image(j.interpreter)
	if err != nil {
		return r, err
	}
	o.env = interpreter.Environment(in, homeDir, tmpDir, j.env)
	if in != nil {
		o.from = in.Root()
		if o.shown, err = imageShown(in); err == nil {
			o.program, err = e.interpreters.OpenInside(in, j.interpreter)
		}
	} else {
		o.program, err = e.interpreters.Open(j.interpreter)
	}
	if err != nil {
		return r, err
	}
	if o.space, err = e.space(j); err != nil {
		return r, err
	}
	for i := range o.ids {
		if o.ids[i], err = e.ids.Take(); err != nil {
			return r, err
		}
	}
	if r.stdin, err = box.Input(j.stdin); err != nil {
		return r, err
	}
	if r.streams, err = box.NewStreams(j.output, j.live, func() { r.flooded <- struct{}{} }); err != nil {
		return r, err
	}
	stdout, stderr := r.streams.Writers() // a script may open /dev/stdout
	if err = errors.Join(stdout.Chown(o.ids[1], o.ids[1]), stderr.Chown(o.ids[1], o.ids[1])); err != nil {
		return r, err
	}
	held := j.limits
	held.Processes += starters
	if o.gvisor {
		held.Processes += kernelTasks(j.limits.Processes)
	}
	r.group, err = e.limits.NewRun(j.tenant, o.name, held)
	return r, err
}

// rlimitNumbers are the limits of a process that a container gets, by their names in the
// specification.
var rlimitNumbers = map[string]int{
	"RLIMIT_CORE": unix.RLIMIT_CORE, "RLIMIT_CPU": unix.RLIMIT_CPU, "RLIMIT_NOFILE": unix.RLIMIT_NOFILE, "RLIMIT_MEMLOCK": unix.RLIMIT_MEMLOCK,
	"RLIMIT_MSGQUEUE": unix.RLIMIT_MSGQUEUE, "RLIMIT_SIGPENDING": unix.RLIMIT_SIGPENDING, "RLIMIT_STACK": unix.RLIMIT_STACK,
	"RLIMIT_NPROC": unix.RLIMIT_NPROC,
}

// limit returns a limit, lowered to our own.
func limit(name string, n uint64) rlimit {
	var own unix.Rlimit
	if err := unix.Getrlimit(rlimitNumbers[name], &own); err == nil {
		n = min(n, own.Max)
	}
	return rlimit{name, n, n}
}

// space returns how much the script may write. All files of a run lie in memory, and
// count as its memory.
func (e *Executor) space(j job) (int64, error) {
	var files int64
	for _, b := range []bundle.Bundle{j.skill, j.inputs} {
		for _, p := range b.Paths() {
			text, _, _ := b.Text(p)
			files += int64(len(text))
		}
	}
	space := min(max(e.config.Space, 2*j.harvest.Bytes), (j.limits.Memory-files)/2)
	if space < leastSpace {
		return 0, fmt.Errorf("the run's files need %d bytes of memory, and the policy allows %d in all; raise its limit of memory", files, j.limits.Memory)
	}
	return space, nil
}

// clean removes everything of a run.
func (e *Executor) clean(r *staged) {
	var err error
	if r.init != nil {
		_ = unix.PidfdSendSignal(int(r.init.Fd()), unix.SIGKILL, nil, 0)
	}
	err = errors.Join(r.group.Stop(), r.group.Remove())
	if err != nil {
		e.log.Error("what a run left was not removed", "err", err)
	}
	r.ground.close()
	for _, f := range []*os.File{r.order.program, r.stdin, r.talk.f, r.init} {
		if f != nil {
			f.Close()
		}
	}
	if r.streams != nil {
		r.streams.Close()
	}
	for _, id := range r.order.ids {
		e.ids.Give(id)
	}
}

// start has the OCI runtime make the container, and returns when its first process
// has been heard of and the walls around it have been seen.
func (e *Executor) start(ctx context.Context, r *staged) error {
	ours, theirs, err := newTalk()
	if err != nil {
		return err
	}
	defer theirs.Close()
	r.talk = ours
	if err := r.talk.prepare(r.order.processes, e.engine.name == gvisor, e.filter); err != nil {
		return err
	}
	if err := ours.f.SetReadDeadline(time.Now().Add(setupTime)); err != nil { // before somebody makes it earlier
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = ours.f.SetReadDeadline(time.Now()) })
	defer stop()
	var engine *os.Process
	err = apart(r.order.from, func() (err error) {
		if r.ground, err = r.order.prepare(); err != nil {
			return err
		}
		stdout, stderr := r.streams.Writers()
		attr := &os.ProcAttr{Dir: "/", Env: []string{"PATH=" + interpreter.SearchPath}, Files: []*os.File{r.stdin, stdout, stderr, theirs}, Sys: &syscall.SysProcAttr{Setsid: true}}
		for _, f := range r.group.Enter(attr.Sys) { // this thread enters, whose end is near
			if _, err := unix.Write(int(f.Fd()), []byte("0")); err != nil {
				return fmt.Errorf("entering the cgroup of the run: %w", err)
			}
		}
		dir := r.ground.dir
		argv := e.engine.command(dir+"/bundle", dir+"/state", dir+"/log", r.order.name)
		engine, err = os.StartProcess(e.engine.path, argv, attr)
		return err
	})
	if err != nil {
		return err
	}
	theirs.Close()
	over := make(chan error, 1)
	go func() {
		state, err := engine.Wait()
		if err == nil && !state.Success() {
			err = fmt.Errorf("%s: %s", e.engine.name, state)
		}
		over <- err
	}()
	// Where the OCI runtime does not end it has been stopped with the run's cgroups by
	// the time that somebody waits for its end.
	w, err := r.talk.hear()
	if err == nil && w.tag == 'R' {
		err = e.inspect(r, w.pid)
	} else if err == nil {
		err = fmt.Errorf("the first process of the container failed: %w", syscall.Errno(-w.value))
	}
	if err == nil {
		if err = <-over; err == nil {
			return nil
		}
	} else {
		err = errors.Join(err, r.group.Stop(), <-over)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, errNotAsItMustBe) {
		return err
	}
	return fmt.Errorf("%w: %w: %s", ErrEngine, err, r.ground.logged())
}

// logged returns the end of what the OCI runtime wrote into its log.
func (g *ground) logged() string {
	fd, err := unix.Openat(int(g.folder.Fd()), "log", unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "it wrote no log"
	}
	f := os.NewFile(uintptr(fd), "log")
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 1<<20))
	return string(text[max(0, len(text)-4096):])
}

func (e *Executor) run(ctx context.Context, j job) (executor.Result, error) {
	r, err := e.stage(j)
	if err != nil {
		return executor.Result{}, fmt.Errorf("%w: %w", executor.ErrUnavailable, err)
	}
	defer e.clean(r)
	if err := e.start(ctx, r); err != nil {
		if ctx.Err() != nil {
			return executor.Result{}, context.Cause(ctx)
		}
		return executor.Result{}, fmt.Errorf("%w: %w", executor.ErrUnavailable, err)
	}
	if err := r.talk.letGo(); err != nil {
		return executor.Result{}, fmt.Errorf("%w: %w", executor.ErrUnavailable, err)
	}
	r.streams.Start()
	why, last := e.await(ctx, r, j.timeout)
	if r.init != nil {
		_ = unix.PidfdSendSignal(int(r.init.Fd()), unix.SIGKILL, nil, 0)
	}
	stopErr := r.group.Stop()
	out := executor.Result{PostureDigest: e.postures.Record(e.log, r.seen)}
	out.Stdout, out.Stderr, out.Truncated = r.streams.Finish(drainTime)
	if stopErr != nil {
		e.log.Error("the processes of a run could not be stopped", "err", stopErr)
	}
	if why == box.Cancelled {
		return executor.Result{}, e.underWay.Cause(ctx)
	}
	outOfMemory := r.group.OutOfMemory()
	if out.Ending, err = ending(why, last, outOfMemory); err != nil {
		return executor.Result{}, err
	}
	if left := int(last.number); why == box.Ended && last.tag == 'D' && left > 0 {
		out.Notes = append(out.Notes, box.Stopped(left))
	}
	if code, ok := out.Ending.ExitCode(); ok && outOfMemory {
		out.Notes = append(out.Notes, box.KilledWithin(code))
	}
	files, told := r.ground.run.Collect(j.harvest)
	out.Outputs, out.Notes = files, append(out.Notes, told...)
	return out, nil
}

// await returns why the run is over, and what the container said last.
func (e *Executor) await(ctx context.Context, r *staged, timeout time.Duration) (box.Reason, word) {
	var last word
	heard := make(chan struct{})
	_ = r.talk.f.SetReadDeadline(time.Time{})
	go func() {
		defer close(heard)
		if w, err := r.talk.hear(); err == nil {
			last = w
		}
	}()
	why := e.underWay.Await(ctx, heard, r.flooded, timeout)
	if why != box.Ended {
		_ = r.talk.f.SetReadDeadline(time.Now())
	}
	<-heard
	return why, last
}

func ending(why box.Reason, last word, outOfMemory bool) (executor.Ending, error) {
	switch {
	case why != box.Ended: // whatever the container said last
	case last.tag == 'F':
		return executor.Ending{}, fmt.Errorf("%w: starting the interpreter in the container: %w", executor.ErrUnavailable, syscall.Errno(-last.value))
	case last.tag != 'D' && outOfMemory:
		return executor.OutOfMemory(), nil // the whole container was killed
	case last.tag != 'D':
		return executor.Ending{}, fmt.Errorf("%w: the first process of a container was killed", ErrEngine)
	}
	return box.EndingOf(why, syscall.WaitStatus(last.value), outOfMemory, true), nil
}
