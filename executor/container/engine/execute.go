//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/internal/notes"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
)

const (
	// setupTime is how long a container may take until its script can start. It takes
	// parts of a second; only an engine that hangs takes longer.
	setupTime = 60 * time.Second

	// afterTime is how long the first process may take to tell how a script ended, and
	// to hand its files over.
	afterTime = 60 * time.Second

	// leastSpace is what a script must be able to write: 1 MiB.
	leastSpace = 1 << 20
)

// Execute runs the script of req. See [executor.Executor].
//
// # Errors
//
// executor.ErrInvalidRequest; one that wraps executor.ErrUnavailable when the script
// was not started: an interpreter of the host, which no container of an engine shows; a
// runtime that is not there, or not in the engine yet (ErrImage too); files that need
// more memory than the policy allows; an engine that failed, hung or was gone
// (ErrEngine too). One that wraps ErrEngine and executor.ErrUnknown when that was so
// after the script was started; the cause of ctx when it was done. Any other error is a
// failed run.
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
		skill: req.Bundle(), inputs: req.Inputs(), stdin: req.Stdin(), timeout: req.Timeout(),
		output: req.MaxOutputBytes(), live: req.Live(), memory: req.Memory(), processes: req.Processes(),
	}
	j.harvest.Bytes, j.harvest.Files = req.MaxOutputs()
	j.harvest.Patterns = req.OutputPatterns()
	j.argv = interpreter.CommandOf(req, skillDir+"/"+req.Script())
	of, err := e.image(req.Interpreter(), &j)
	if err != nil {
		return executor.Result{}, fmt.Errorf("%w: %w", executor.ErrUnavailable, err)
	}
	j.env = interpreter.Environment(of, homeDir, tmpDir, req.Environment())
	res, err := e.run(ctx, j)
	if err != nil {
		return executor.Result{}, err
	}
	if code, ok := res.Ending.ExitCode(); ok && code != 0 {
		res.Notes = append(res.Notes, notes.Explain(notes.FailureOf(req, res.Stderr))...)
	}
	return res, nil
}

// image returns the runtime in which the interpreter lies, which must be the one that was
// probed. It says in j what image the engine has of it, and what is to be called when the
// engine has that no more.
func (e *Executor) image(in gate.Interpreter, j *job) (*image.Image, error) {
	if in.Image.IsZero() {
		return nil, fmt.Errorf("the interpreter %s is the host's, and a container of an engine shows nothing of the host; take one of a runtime (runtime:NAME:%s), or another executor", in.Path, in.Path)
	}
	known, err := e.runtimes.get(in.Image)
	if err != nil {
		return nil, fmt.Errorf("the runtime %q (%s): %w", in.Name, in.Image, err)
	}
	program, err := e.interpreters.OpenInside(known.image, in)
	if err != nil {
		return nil, err
	}
	program.Close()
	id, ok := e.runtimes.id(in.Image, known)
	if !ok {
		return nil, fmt.Errorf("%w: %q (%s) is brought there now; try again", ErrImage, in.Name, in.Image)
	}
	j.image, j.missing = id, func() { e.runtimes.missing(known); e.runtimes.id(in.Image, known) }
	return known.image, nil
}

// A job is what one container is made for: a script.
type job struct {
	image         string
	missing       func()
	argv, env     []string
	skill, inputs bundle.Bundle
	stdin         []byte
	timeout       time.Duration
	output        int
	live          *gate.Live
	memory        int64
	processes     int
	harvest       box.Harvest
}

// order returns what the job's container must be.
func (e *Executor) order(j job) (o order, err error) {
	files := map[string]int64{}
	inodes := map[string]int{}
	total := int64(len(j.stdin))
	for dir, b := range map[string]bundle.Bundle{skillDir: j.skill, filesDir: j.inputs} {
		for _, p := range b.Paths() {
			text, _, _ := b.Text(p)
			files[dir] += (int64(len(text)) + pageSize - 1) &^ (pageSize - 1)
			inodes[dir] += 1 + bundle.DefaultDepth
			total += int64(len(text))
		}
	}
	space := min(max(e.config.Space, 2*j.harvest.Bytes), (j.memory-total)/2)
	if space < leastSpace {
		return o, fmt.Errorf("the run's files need %d bytes of memory, and the policy allows %d in all; raise its limit of memory", total, j.memory)
	}
	o = order{
		name: "tracon-" + rand.Text(), image: j.image, labels: maps.Clone(e.labels), memory: j.memory, processes: j.processes, processors: e.config.Processors,
		cpuSeconds: int64(math.Ceil(j.timeout.Seconds()*max(1, e.config.Processors))) + 1, space: map[string]int64{}, inodes: map[string]int{}, podman: e.api.name == podman,
	}
	o.labels[labelRun] = o.name
	for _, dir := range folders {
		o.space[dir], o.inodes[dir] = space+files[dir], maxInodes+inodes[dir]
	}
	o.id, err = e.ids.Take()
	return o, err
}

const pageSize = 4096

// A run is a container that is under way.
type run struct {
	order   order
	talk    *talk
	streams [2]*executor.Capture
	flooded chan struct{}
	seen    string // what was seen of the walls
	comes   bool   // the engine may make the container yet

	tree  *tree
	nodes box.Nodes // open since before the script
	laid  time.Time
}

// open has the engine make a container and start its first process. Whatever comes of
// it, close is to be called.
func (e *Executor) open(ctx context.Context, o order, output int, live *gate.Live) (*run, error) {
	r := &run{order: o, flooded: make(chan struct{}, 2)}
	flood := func() { r.flooded <- struct{}{} }
	for i, s := range []gate.Stream{gate.Stdout, gate.Stderr} {
		r.streams[i] = executor.NewCapture(output, func(p []byte) { live.Send(s, p) }, flood)
	}
	var err error
	if r.comes, err = e.create(ctx, o); err != nil {
		return r, err
	}
	attached, err := e.api.attach(ctx, o.name)
	if err != nil {
		return r, err
	}
	r.talk = newTalk(attached.Conn, attached.Reader, r.streams[0], r.streams[1])
	return r, e.api.start(ctx, o.name)
}

// createTime is how long the engine's answer is waited for when nobody asks for the
// container any more. It is less than the grace of a run that is stopped.
const createTime = 4 * time.Second

// create has the engine make a container. An engine does so also when nobody waits for its
// answer any more, and a container that is not there yet cannot be removed: so the answer
// is waited for a little, and where there is none, the container comes, perhaps.
func (e *Executor) create(ctx context.Context, o order) (comes bool, err error) {
	asked, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	made := make(chan error, 1)
	go func() { made <- e.api.create(asked, o) }()
	select {
	case err = <-made:
		return false, err
	case <-ctx.Done():
	}
	select {
	case <-made:
		return false, context.Cause(ctx)
	case <-time.After(createTime):
		return true, context.Cause(ctx)
	}
}

// close stops what is left of the container, and removes it: at once, or as soon as the
// engine does.
func (e *Executor) close(r *run) {
	if r.talk != nil {
		r.talk.close()
	}
	if err := e.api.remove(context.Background(), r.order.name); err != nil {
		e.log.Error("what a run left was not removed", "err", err)
		e.keeper.add(r.order.name, time.Time{})
	}
	if r.comes {
		e.keeper.add(r.order.name, time.Now().Add(answerTime))
	}
	e.ids.Give(r.order.id)
}

// setup brings a container so far that its script can start.
func (e *Executor) setup(r *run, j job) (err error) {
	if r.seen, err = e.inspect(r); err != nil {
		return err
	}
	if r.laid, err = r.talk.lay(j.skill, j.inputs, j.stdin); err != nil {
		return err
	}
	r.tree = newTree(r.talk)
	for dir, n := range map[string]*box.Node{skillDir: &r.nodes.Skill, filesDir + inputsDir: &r.nodes.Inputs, filesDir + outputsDir: &r.nodes.Outputs, filesDir: &r.nodes.Around} {
		if *n, err = r.tree.root(dir); err != nil {
			return fmt.Errorf("opening %s in the container: %w", dir, err)
		}
	}
	return nil
}

func (e *Executor) run(ctx context.Context, j job) (executor.Result, error) {
	o, err := e.order(j)
	if err != nil {
		return executor.Result{}, fmt.Errorf("%w: %w", executor.ErrUnavailable, err)
	}
	before, stop := e.bounded(ctx, setupTime)
	defer stop()
	r, err := e.open(before, o, j.output, j.live)
	defer e.close(r)
	// A talk ends when its connection is closed, which any of these may do.
	hang := func(ctx context.Context) func() bool {
		return context.AfterFunc(ctx, func() { r.talk.conn.Close() })
	}
	sent := false
	if err == nil {
		unhang := hang(before)
		if err = e.setup(r, j); err == nil {
			end := j.timeout + patience*time.Second
			sent, err = r.talk.begin(launch{argv: j.argv, env: j.env, filter: e.filter, seconds: int64(math.Ceil(end.Seconds()))})
		}
		if err == nil && !unhang() {
			err = context.Cause(before)
		}
	}
	if err != nil {
		return executor.Result{}, e.notRun(ctx, j, sent, err)
	}
	stop()

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, s := range []*sorter{r.talk.stdout, r.talk.stderr} {
			select {
			case <-s.ended:
			case <-r.talk.over:
				return
			}
		}
	}()
	why := e.underWay.Await(ctx, ended, r.flooded, j.timeout)
	after, stop := context.WithTimeout(context.WithoutCancel(ctx), afterTime)
	defer stop()
	if why != box.Ended {
		return e.cut(ctx, r, why)
	}
	defer hang(after)()
	defer hang(ctx)()
	res, err := e.finish(after, r, j)
	if err != nil && (ctx.Err() != nil || e.underWay.Closing().Err() != nil) {
		return executor.Result{}, e.underWay.Cause(ctx)
	}
	return res, err
}

// bounded returns a context that is done with ctx, when the executor is closed, and
// after so long.
func (e *Executor) bounded(ctx context.Context, d time.Duration) (context.Context, func()) {
	made, cancel := context.WithTimeoutCause(ctx, d, errHangs)
	stop := context.AfterFunc(e.underWay.Closing(), cancel)
	return made, func() { stop(); cancel() }
}

var errHangs = errors.New("the engine hangs")

// notRun says why a script was not started, or, when it was sent, that it may have been.
func (e *Executor) notRun(ctx context.Context, j job, sent bool, err error) error {
	if ctx.Err() != nil || e.underWay.Closing().Err() != nil {
		return e.underWay.Cause(ctx)
	}
	if errors.Is(err, ErrImage) && j.missing != nil {
		j.missing()
	}
	if !errors.Is(err, ErrEngine) && !errors.Is(err, ErrImage) && !errors.Is(err, errNotAsItMustBe) && !errors.Is(err, errTooLarge) {
		err = fmt.Errorf("%w: %w", ErrEngine, err)
	}
	if sent {
		return fmt.Errorf("%w: %w", executor.ErrUnknown, err)
	}
	return fmt.Errorf("%w: %w", executor.ErrUnavailable, err)
}

// result returns what a run's streams have, which are read no more.
func (r *run) result() (res executor.Result) {
	var cut [2]bool
	res.Stdout, cut[0] = r.streams[0].Bytes()
	res.Stderr, cut[1] = r.streams[1].Bytes()
	res.Truncated = cut[0] || cut[1]
	return res
}

// cut ends a run that has not ended by itself.
func (e *Executor) cut(ctx context.Context, r *run, why box.Reason) (executor.Result, error) {
	stopErr := e.api.remove(context.WithoutCancel(ctx), r.order.name)
	r.talk.close()
	if why == box.Cancelled {
		return executor.Result{}, e.underWay.Cause(ctx)
	}
	if stopErr != nil { // its first process stops it a little later
		e.log.Error("a container could not be stopped", "err", stopErr)
	}
	res := r.result()
	res.Ending, res.PostureDigest = box.EndingOf(why, 0, false, true), e.postures.Record(e.log, r.seen)
	return res, nil
}

// finish asks how a script ended, and takes the files that it left.
func (e *Executor) finish(ctx context.Context, r *run, j job) (executor.Result, error) {
	end, err := r.talk.end()
	if err != nil {
		return e.died(ctx, r, err)
	}
	switch {
	case end.forked < 0:
		return executor.Result{}, fmt.Errorf("%w: starting a process in the container: %w", executor.ErrUnavailable, syscall.Errno(-end.forked))
	case end.failed < 0:
		return executor.Result{}, fmt.Errorf("%w: starting the interpreter in the container: %w", executor.ErrUnavailable, syscall.Errno(-end.failed))
	}
	res := r.result()
	why := box.Ended
	if end.late { // which is long after the host would have stopped it
		why = box.Expired
	}
	res.Ending, res.PostureDigest = box.EndingOf(why, syscall.WaitStatus(end.status), end.outOfMemory, true), e.postures.Record(e.log, r.seen)
	if end.stopped > 0 && why == box.Ended {
		res.Notes = append(res.Notes, box.Stopped(end.stopped))
	}
	if code, ok := res.Ending.ExitCode(); ok && end.outOfMemory {
		res.Notes = append(res.Notes, box.KilledWithin(code))
	}
	reach := "../" + box.OutputsDir + "/"
	if has(j.skill, box.OutputsDir) {
		reach = outputsDir + "/"
	}
	files, told := box.AdoptNodes(r.nodes, j.skill, j.inputs, r.laid, reach).Collect(j.harvest)
	if r.tree.err != nil { // what is missing is not the script's fault
		return executor.Result{}, failed("taking the files of a run", r.tree.err)
	}
	res.Outputs, res.Notes = files, append(res.Notes, told...)
	return res, nil
}

// died says how a run ended whose container ended without a word.
func (e *Executor) died(ctx context.Context, r *run, err error) (executor.Result, error) {
	s, there, lookErr := e.api.state(ctx, r.order.name)
	if lookErr == nil && there && s.OOMKilled && !s.Running {
		res := r.result()
		res.Ending, res.PostureDigest = executor.OutOfMemory(), e.postures.Record(e.log, r.seen)
		return res, nil
	}
	if lookErr == nil && !there {
		lookErr = errors.New("somebody removed it")
	}
	return executor.Result{}, fmt.Errorf("%w: %w", executor.ErrUnknown, failed("a container ended without a word", errors.Join(err, lookErr)))
}
