package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/toolcall"
)

// cancelTime is how long an interrupted run's cancellation may take.
const cancelTime = 15 * time.Second

func (r *remote) Explain(ctx context.Context, c gate.Call) ([]gate.Verdict, error) {
	x, err := r.c.Explain(ctx, client.Explain{Skill: c.Skill, Script: c.Script, Arguments: c.Arguments})
	if err != nil {
		return nil, r.told(ctx, err, nil)
	}
	var verdicts []gate.Verdict
	for _, v := range x.Gates {
		verdicts = append(verdicts, gate.Verdict{Gate: gate.Name(v.Gate), Answer: gate.Answer(v.Answer), Detail: v.Detail, Remedy: v.Remedy})
	}
	return verdicts, nil
}

// Run starts the run and waits for its end. Where nobody watches, that is one request,
// and the server stops the run when this program goes, however it goes. Where somebody
// does, the run is followed, and stopped by name.
func (r *remote) Run(ctx context.Context, c gate.Call) (ran, error) {
	n := client.NewRun{Skill: c.Skill, Script: c.Script, Arguments: c.Arguments, OutputData: true}
	for _, f := range c.Inputs {
		n.Inputs = append(n.Inputs, client.Input{Path: f.Path, Data: f.Data})
	}
	var run client.Run
	var err error
	if c.Live == nil {
		if run, err = r.c.StartRun(ctx, n, client.RunOptions{}); err == nil {
			run, err = r.whole(ctx, run)
		}
	} else {
		run, err = r.follow(ctx, n, c.Live)
	}
	if err != nil {
		return r.notRun(ctx, err)
	}
	return r.ofRun(run)
}

// follow starts the run, shows what it writes, and returns it with its files.
func (r *remote) follow(ctx context.Context, n client.NewRun, live *gate.Live) (client.Run, error) {
	run, err := r.c.StartRun(ctx, n, client.RunOptions{Detach: true})
	if err != nil {
		return run, err
	}
	id := run.ID
	for e, err := range r.c.FollowRun(ctx, id, 0) {
		if err != nil {
			break // the run itself tells what came of it
		}
		switch e.Kind {
		case client.EventOutput:
			stream := gate.Stdout
			if e.Output.Stream == "stderr" {
				stream = gate.Stderr
			}
			live.Send(stream, []byte(e.Output.Text))
		case client.EventEnd:
			run = e.Run
		}
	}
	if run.State == client.RunEnded {
		return r.whole(ctx, run)
	}
	// Somebody interrupted it, or the connection broke: nobody watches it any more.
	after, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer stop()
	if _, err := r.c.CancelRun(after, id); err != nil {
		return run, &begun{id, fmt.Sprintf("the run %s could not be stopped: %v", id, err)}
	}
	if run, err = r.c.Run(after, id); err != nil {
		return run, &begun{id, fmt.Sprintf("what came of the run %s was not told: %v", id, err)}
	}
	if run.State != client.RunEnded {
		return run, &begun{id, fmt.Sprintf("the run %s was told to stop, and has not ended yet", id)}
	}
	return r.whole(after, run)
}

// whole gets what of a run that has ended did not come with it: files, and streams that the
// server left out.
func (r *remote) whole(ctx context.Context, run client.Run) (client.Run, error) {
	for i, f := range run.Outputs {
		if f.Data != nil || f.Size == 0 {
			continue
		}
		data, err := inPlace(ctx, func(b *bytes.Buffer) error { return r.c.RunOutput(ctx, run.ID, f.Path, b) })
		if err != nil {
			return run, &begun{run.ID, fmt.Sprintf("the file %s of the run %s: %v", f.Path, run.ID, err)}
		}
		run.Outputs[i].Data = data
	}
	for _, stream := range []struct {
		name string
		text **string
		size int
	}{{"stdout", &run.Stdout, run.StdoutBytes}, {"stderr", &run.Stderr, run.StderrBytes}} {
		if !run.OutputLeftOut || *stream.text != nil || stream.size == 0 {
			continue
		}
		data, err := inPlace(ctx, func(b *bytes.Buffer) error { return r.c.RunStream(ctx, run.ID, stream.name, b) })
		if err != nil {
			return run, &begun{run.ID, fmt.Sprintf("what the run %s wrote to %s: %v", run.ID, stream.name, err)}
		}
		text := string(data)
		*stream.text = &text
	}
	return run, nil
}

// placeTime is how long a part of a run is asked for while the server says that too many are.
const placeTime = time.Minute

// inPlace returns what get wrote, once the server has a place for it.
func inPlace(ctx context.Context, get func(*bytes.Buffer) error) ([]byte, error) {
	for until := time.Now().Add(placeTime); ; {
		var b bytes.Buffer
		err := get(&b)
		p, ok := errors.AsType[*client.Problem](err)
		if !ok || p.Code != client.Busy || time.Now().After(until) {
			return b.Bytes(), err
		}
		select {
		case <-time.After(max(p.RetryAfter, time.Second)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// notRun is what came of a call that did not come to its end.
func (r *remote) notRun(ctx context.Context, err error) (ran, error) {
	p, ok := errors.AsType[*client.Problem](err)
	if ctx.Err() != nil { // the server stops what it ran for us
		return ran{model: "The call was cancelled."}, fmt.Errorf("%w: %w", tracon.ErrCancelled, context.Cause(ctx))
	}
	if b, ok := errors.AsType[*begun](err); ok {
		out := ran{}
		out.ID = b.id
		return out, hint(b, "it may have run: `tracon calls show %s` tells", b.id)
	}
	if !ok && neverSent(err) {
		return ran{}, &coded{r.told(ctx, err, nil), client.Unavailable}
	}
	if !ok {
		return ran{}, hint(fmt.Errorf("no answer came: %w", err), "it may have run: `tracon calls list` tells, once the server is there again")
	}
	out := ran{model: p.Detail}
	for _, name := range gate.Names() {
		if string(name) != string(p.Code) {
			continue
		}
		d := &gate.Denial{Gate: name, Err: errors.New(p.Detail), Remedy: p.Remedy}
		if p.Reason != "" {
			d.Err = errors.New(p.Reason)
		}
		return out, d
	}
	out.ID = p.Run
	return out, &coded{r.told(ctx, err, nil), p.Code}
}

// begun is why a run that was started was not followed to its end. It hides the
// server's problem, which is of another request.
type begun struct {
	id   string
	text string
}

func (e *begun) Error() string { return e.text }

// failures are the codes of runs that came to no ending of their own.
var failures = map[string]error{
	"busy": tracon.ErrBusy, "audit_unavailable": audit.ErrUnavailable, "executor_unavailable": tracon.ErrExecutorUnavailable,
	"executor_failed": tracon.ErrExecutorFailed, "cancelled": tracon.ErrCancelled,
}

// ofRun is what came of a run that has ended.
func (r *remote) ofRun(run client.Run) (ran, error) {
	out := ran{model: run.Text, Outcome: tracon.Outcome{ID: run.ID, Truncated: run.Truncated, Replaced: run.Replaced,
		StdoutBytes: run.Stdout64, StderrBytes: run.Stderr64, Notes: run.Notes, Abandoned: run.Abandoned,
		Duration: seconds(run.DurationSeconds), Waited: seconds(run.WaitedSeconds), GrantID: run.Grant,
		Standing: gate.Standing{Executor: run.Executor, Tier: grant.Tier(run.Tier)}}}
	if run.Stdout != nil {
		out.Stdout = *run.Stdout
	}
	if run.Stderr != nil {
		out.Stderr = *run.Stderr
	}
	for _, f := range run.Outputs {
		out.Outputs = append(out.Outputs, bundle.File{Path: f.Path, Data: f.Data})
	}
	if run.Audit != nil {
		out.audit = &auditJSON{run.Audit.Index, run.Audit.Hash, run.Audit.Receipt}
	}
	if d, err := bundle.ParseDigest(run.Digest); err == nil {
		out.Digest = d
	}
	switch {
	case failures[run.Code] != nil:
		err := failures[run.Code]
		if run.CancelledBy != "" {
			err = fmt.Errorf("%w by %s", err, run.CancelledBy)
		}
		return out, err
	case run.ExitCode != nil:
		out.Ending = executor.Exited(*run.ExitCode)
	case run.Signal != nil:
		out.Ending = executor.Signaled(*run.Signal)
	default:
		for _, e := range []executor.Ending{executor.Expired(), executor.OutOfMemory(), executor.PolicyViolation(), executor.OutputFlood()} {
			if e.Name() == run.Ending {
				out.Ending = e
			}
		}
	}
	for _, name := range gate.Names() { // a gate that said no after the wait for a slot
		if string(name) == run.Code {
			return out, &gate.Denial{Gate: name, Err: errors.New(run.Text)}
		}
	}
	if out.Ending.IsZero() {
		return out, errors.New("nobody knows how the run " + run.ID + " ended")
	}
	return out, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (r *remote) GrantsAtOnce() bool { return false }

func (r *remote) OpenHint() string {
	return fmt.Sprintf("`tracon policy set --enabled --interpreters …` for tenant %s; the host's part is the platform's: `tracon policy set --host …`", r.tenant)
}

func (r *remote) Calls(ctx context.Context, f toolcall.Filter) ([]toolcall.Record, error) {
	list, err := r.c.CallsBefore(ctx, f.Skill, f.Before, f.Limit)
	calls := []toolcall.Record{}
	for _, c := range list {
		calls = append(calls, ofCall(c))
	}
	return calls, r.told(ctx, err, nil)
}

func (r *remote) Usage(ctx context.Context, f toolcall.DailyFilter) ([]toolcall.Daily, error) {
	day := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.DateOnly)
	}
	list, err := r.c.Usage(ctx, f.Skill, day(f.From), day(f.To), f.Limit)
	if err != nil {
		return nil, r.told(ctx, err, nil)
	}
	sums := []toolcall.Daily{}
	for _, u := range list {
		at, err := time.Parse(time.DateOnly, u.Day)
		if err != nil {
			return nil, fmt.Errorf("the server names the day %q", u.Day)
		}
		sums = append(sums, toolcall.Daily{Day: at, Skill: u.Skill, Calls: u.Calls, Succeeded: u.Succeeded,
			Duration: seconds(u.DurationSeconds), Waited: seconds(u.WaitedSeconds), OutputBytes: u.OutputBytes})
	}
	return sums, nil
}

func (r *remote) Call(ctx context.Context, id string) (toolcall.Record, []audit.Leaf, error) {
	c, err := r.c.Call(ctx, id)
	if err != nil {
		return toolcall.Record{}, nil, r.told(ctx, err, fmt.Errorf("%w: %s", toolcall.ErrNotFound, id))
	}
	var leaves []audit.Leaf
	for leaf, err := range r.Entries(ctx, entryFilter{from: c.AdmissionIndex, run: id}) {
		if err != nil {
			return toolcall.Record{}, nil, err
		}
		if leaves = append(leaves, leaf); len(leaves) == 2 {
			break // its admission and its ending
		}
	}
	return ofCall(c), leaves, nil
}

func ofCall(c client.Call) toolcall.Record {
	return toolcall.Record{ID: c.ID, Tenant: c.Tenant, Actor: c.Actor, Skill: c.Skill, Script: c.Script, Digest: c.Digest, ScriptDigest: c.ScriptDigest,
		Grant: c.Grant, Executor: c.Executor, Tier: c.Tier, ArgumentsBytes: c.ArgumentsBytes, ArgumentsDigest: c.ArgumentsDigest, Arguments: c.Arguments,
		Admitted: c.Admitted, Ended: c.Ended, Waited: seconds(c.WaitedSeconds), Duration: seconds(c.DurationSeconds), Ending: c.Ending,
		ExitCode: c.ExitCode, Signal: c.Signal, Abandoned: c.Abandoned, StdoutBytes: c.StdoutBytes, StderrBytes: c.StderrBytes,
		OutputFiles: c.OutputFiles, OutputBytes: c.OutputBytes, Truncated: c.Truncated, Notes: c.Notes, AdmissionIndex: c.AdmissionIndex}
}
