//go:build linux && amd64

package microvm

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/internal/notes"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
	"github.com/tracon-go/tracon/gate"
	"golang.org/x/sys/unix"
)

const (
	// orderTime is how long an order may take until the script has begun, and what was
	// left until it has come. It is 64 MiB at most, each way.
	orderTime = 5 * time.Minute

	// leastSpace is what a script must be able to write: 1 MiB.
	leastSpace = 1 << 20

	// moreInodes is how many files and folders a run may make.
	moreInodes = 4096
)

// Execute runs the script of req. See [executor.Executor].
//
// # Errors
//
// executor.ErrInvalidRequest; one that wraps executor.ErrUnavailable when the script
// was not started: an interpreter of the host's, a runtime that has no disk in the kit,
// files that need more memory than the policy allows, a machine that does not come up
// (ErrMachine too); the cause of ctx when it was done. Any other error is a failed run.
func (e *Executor) Execute(ctx context.Context, req executor.Request) (executor.Result, error) {
	if !req.Valid() {
		return executor.Result{}, executor.ErrInvalidRequest
	}
	leave, err := e.underWay.Enter()
	if err != nil {
		return executor.Result{}, err
	}
	defer leave()
	ctx, stop := context.WithCancelCause(ctx) // also when the executor is closed
	defer stop(nil)
	defer context.AfterFunc(e.underWay.Closing(), func() { stop(context.Cause(e.underWay.Closing())) })()
	if ctx.Err() != nil {
		return executor.Result{}, context.Cause(ctx)
	}
	began := time.Now()
	o, s, err := e.stage(req)
	if err != nil {
		return executor.Result{}, fmt.Errorf("%w: %w", executor.ErrUnavailable, err)
	}
	v, err := e.up(ctx, s)
	if err != nil {
		if ctx.Err() != nil {
			return executor.Result{}, context.Cause(ctx)
		}
		return executor.Result{}, fmt.Errorf("%w: %w", executor.ErrUnavailable, err)
	}
	defer e.ahead.want(s, began)
	defer e.raze(v)
	res, err := e.run(ctx, v, o, req)
	if err != nil {
		return executor.Result{}, err
	}
	if code, ok := res.Ending.ExitCode(); ok && code != 0 {
		res.Notes = append(res.Notes, notes.Explain(failure(req, res.Stderr))...)
	}
	return res, nil
}

func failure(req executor.Request, stderr []byte) notes.Failure {
	f := notes.Failure{
		Bundle: req.Bundle(), Script: req.Script(), Module: req.Module(), Extension: req.Extension(), Runtime: "the runtime " + req.Interpreter().Name,
	}
	if len(stderr) < req.MaxOutputBytes() { // otherwise its end was cut
		f.Stderr = stderr
	}
	return f
}

// stage makes the order of a request, and says how large its machine must be.
func (e *Executor) stage(req executor.Request) (o frame.Orders, s size, err error) {
	in := req.Interpreter()
	switch {
	case req.Network() != gate.NoNetwork:
		return o, s, fmt.Errorf("the policy asks for the network %q, and a machine has none; take the executor sandbox", req.Network())
	case in.Image.IsZero() || in.Path == "":
		return o, s, fmt.Errorf("the allow-list's entry %q is a path of this host; a machine starts what lies in a runtime (%s: runtime:NAME:/usr/bin/…)", req.Extension(), req.Extension())
	}
	of, err := e.image(in)
	if err == nil {
		s.disk, err = e.kit.Disk(in.Image)
	}
	if err != nil {
		return o, s, fmt.Errorf("the runtime %q: %w", in.Name, err)
	}
	files, bytes := 0, int64(0)
	list := func(b bundle.Bundle) (list []frame.File) {
		for _, p := range b.Paths() {
			text, _, _ := b.Text(p)
			list = append(list, frame.File{Path: p, Size: len(text)})
			files += 1 + strings.Count(p, "/")
			bytes += (int64(len(text)) + pageSize - 1) &^ (pageSize - 1)
		}
		return list
	}
	most, _ := req.MaxOutputs()
	o = frame.Orders{
		Seed: frame.SeedBytes, Stdin: len(req.Stdin()), Declaration: len(req.Bundle().Declaration()), Digest: req.Digest().String(),
		Skill: list(req.Bundle()), Inputs: list(req.Inputs()), Plain: req.Module() == "",
		Flood: executor.FloodFactor*int64(max(req.MaxOutputBytes(), 1)) + 4*frame.MaxChunk,
		Interpreter: frame.Interpreter{
			Kind: string(interpreter.KindOf(req.Extension(), in.Path)), Command: interpreter.Command(req.Extension(), in.Path),
			Env:    interpreter.Environment(of, frame.HomeDir, frame.TmpDir, req.Environment()),
			Filter: e.filter, Memory: req.Memory(), Processes: req.Processes(), Input: len(req.Stdin()) > 0,
		},
	}
	o.Script = interpreter.CommandOf(req, frame.SkillDir+"/"+req.Script())[len(o.Command):]
	space := min(max(e.config.Space, 2*most), req.Memory()/2)
	if space < leastSpace {
		return o, s, fmt.Errorf("the policy allows %d bytes of memory; raise its limit", req.Memory())
	}
	o.Space, o.Shm, o.Inodes = space+bytes, space/4, moreInodes+files
	o.Rlimits = []frame.Rlimit{
		{What: unix.RLIMIT_CORE, Limit: 1}, // unlike 0, this also keeps the memory from a handler
		{What: unix.RLIMIT_CPU, Limit: uint64(math.Ceil(req.Timeout().Seconds()*max(1, e.config.Processors))) + 1}, {What: unix.RLIMIT_NOFILE, Limit: 256},
		{What: unix.RLIMIT_NPROC, Limit: uint64(req.Processes())}, {What: unix.RLIMIT_MEMLOCK, Limit: 64 << 10}, {What: unix.RLIMIT_MSGQUEUE, Limit: 0},
		{What: unix.RLIMIT_RTPRIO, Limit: 0}, {What: unix.RLIMIT_NICE, Limit: 0}, {What: unix.RLIMIT_SIGPENDING, Limit: 256}, {What: unix.RLIMIT_STACK, Limit: 8 << 20},
	}
	// The agent has the files as they come, as a closure, and laid out.
	s.memory = (machineMemory + req.Memory() + 3*bytes + 2*int64(o.Stdin) + sizeStep - 1) &^ (sizeStep - 1)
	s.tenant, s.accelerate, s.runtime = req.Tenant(), e.accelerate, in.Image
	return o, s, s.expect(o, e.config.BootTime/2, interpreter.Environment(of, frame.HomeDir, frame.TmpDir, nil))
}

// expect says which interpreter a machine of that size has ready: what all such runs have
// alike, where it is saved, and what this one has where it is made ahead. The interpreter
// may take so long. Variables of a policy's are not given to a machine before its run.
func (s *size) expect(o frame.Orders, most time.Duration, env []string) error {
	memory := o.Interpreter
	memory.Env, memory.Rlimits, memory.Memory, memory.Processes, memory.Input = env, nil, s.memory/2, readyProcesses, false
	text, err := json.Marshal(frame.Ready{Interpreter: memory, Most: int64(most)})
	s.loaded = string(text)
	if err == nil && o.Plain && slices.Equal(env, o.Env) && (o.Kind == frame.Python || o.Kind == frame.Node) {
		text, err = json.Marshal(frame.Ready{Interpreter: o.Interpreter, Most: int64(most), Wait: true})
		s.waits = string(text)
	}
	return err
}

// readyProcesses is how many an interpreter may start that has no script.
const readyProcesses = 64

const pageSize = 4 << 10

// run gives the machine its order, and returns what came of it.
func (e *Executor) run(ctx context.Context, v *vm, o frame.Orders, req executor.Request) (executor.Result, error) {
	if err := e.begin(ctx, v, o, req); err != nil {
		return executor.Result{}, err
	}
	flooded := make(chan struct{}, 2)
	flood := func() { flooded <- struct{}{} }
	tap := func(s gate.Stream) func([]byte) { return func(p []byte) { req.Live().Send(s, p) } }
	stdout := executor.NewCapture(req.MaxOutputBytes(), tap(gate.Stdout), flood)
	stderr := executor.NewCapture(req.MaxOutputBytes(), tap(gate.Stderr), flood)
	var end frame.End
	var heard error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end, heard = v.follow(stdout, stderr)
	}()
	why := e.underWay.Await(ctx, ended, flooded, req.Timeout())
	if why != box.Ended {
		v.child.kill()
		v.until(time.Now())
		<-ended
	}
	out := executor.Result{PostureDigest: e.record(v.seen)}
	var cutOut, cutErr bool
	out.Stdout, cutOut = stdout.Bytes()
	out.Stderr, cutErr = stderr.Bytes()
	out.Truncated = cutOut || cutErr
	switch {
	case why == box.Cancelled || heard != nil && ctx.Err() != nil: // R24, also when both came at the same moment
		return executor.Result{}, context.Cause(ctx)
	case why != box.Ended:
		out.Ending = box.EndingOf(why, 0, false, true)
		out.Notes = append(out.Notes, "the script was stopped with its machine, and what it wrote into files is gone")
		return out, nil
	case heard != nil:
		return executor.Result{}, e.broken(v, heard)
	}
	out.Ending = box.EndingOf(why, status(end), end.OutOfMemory, true)
	if end.Left > 0 {
		out.Notes = append(out.Notes, box.Stopped(int(end.Left)))
	}
	if code, ok := out.Ending.ExitCode(); ok && end.OutOfMemory {
		out.Notes = append(out.Notes, box.KilledWithin(code))
	}
	var told []string
	var err error
	if out.Outputs, told, err = e.collect(ctx, v, req); err != nil {
		if ctx.Err() != nil {
			return executor.Result{}, context.Cause(ctx)
		}
		return executor.Result{}, e.broken(v, err)
	}
	out.Notes = append(out.Notes, told...)
	return out, nil
}

// status is what the kernel of a host would say.
func status(end frame.End) syscall.WaitStatus {
	if end.Signal != 0 {
		return syscall.WaitStatus(end.Signal)
	}
	return syscall.WaitStatus(uint32(end.Code) << 8)
}

// broken is the error for a machine that was told of the script, and ended without a
// word or said what it cannot say.
func (e *Executor) broken(v *vm, err error) error {
	v.child.kill()
	if isGone(err) {
		err = errors.New("it ended without a word")
	}
	if v.group.OutOfMemory() {
		err = fmt.Errorf("%w; its monitor was out of memory", err)
	}
	return fmt.Errorf("%w: %w; the monitor said %s", ErrMachine, err, v.child.said)
}

// begin gives the machine its order, and returns when the script has begun.
func (e *Executor) begin(ctx context.Context, v *vm, o frame.Orders, req executor.Request) error {
	v.control.f.Close() // whoever takes the monitor over has nobody there to speak with
	v.until(time.Now().Add(orderTime))
	stop := context.AfterFunc(ctx, func() { v.until(time.Now()) })
	defer v.until(time.Time{})
	defer stop()
	o.Time = time.Now().UnixNano() // a machine has no clock of its own
	seed := make([]byte, frame.SeedBytes)
	_, _ = rand.Read(seed) // it never fails
	data := []string{string(seed), string(req.Stdin()), string(req.Bundle().Declaration())}
	for _, b := range []bundle.Bundle{req.Bundle(), req.Inputs()} {
		for _, p := range b.Paths() {
			text, _, _ := b.Text(p)
			data = append(data, text)
		}
	}
	err := v.order(o, data...)
	if err == nil {
		err = v.started()
	}
	var f *failed
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &f): // the script has not begun, and the machine will hear of no other
		return fmt.Errorf("%w: %w: %w", executor.ErrUnavailable, ErrMachine, err)
	}
	return e.broken(v, err)
}

// collect asks the machine for what is wanted of what the script left.
func (e *Executor) collect(ctx context.Context, v *vm, req executor.Request) ([]bundle.File, []string, error) {
	v.until(time.Now().Add(orderTime))
	stop := context.AfterFunc(ctx, func() { v.until(time.Now()) })
	defer stop()
	tree, err := v.listing()
	if err != nil {
		return nil, nil, err
	}
	var failed error
	fetch := func(number uint32, most uint64) ([]byte, error) {
		if failed != nil {
			return nil, failed
		}
		var b []byte
		b, failed = v.fetch(number, most)
		return b, failed
	}
	h := box.Harvest{Patterns: req.OutputPatterns()}
	h.Bytes, h.Files = req.MaxOutputs()
	reach := box.OutputsDir + "/"
	if slices.ContainsFunc(req.Bundle().Paths(), func(p string) bool { return p == box.OutputsDir || strings.HasPrefix(p, reach) }) {
		reach = frame.OutputsDir + "/"
	}
	files, told := box.AdoptNodes(newLeft(tree, fetch), req.Bundle(), req.Inputs(), laid, reach).Collect(h)
	if failed != nil || ctx.Err() != nil {
		return nil, nil, errors.Join(failed, ctx.Err())
	}
	return files, told, nil
}
