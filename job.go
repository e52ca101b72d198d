package tracon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/slot"
	"github.com/tracon-go/tracon/toolcall"
)

// job is one admitted call on its way to its ending.
type job struct {
	r        *Runner
	req      executor.Request
	admitted time.Time
	waited   time.Duration
	slot     slot.Slot         // nil where there was none
	done     func(Observation) // everything is known
	raw      streams           // as the executor gave them; set by execute
}

type answer struct {
	out Outcome
	raw streams
	err error
}

// streams are what a script wrote, any bytes, within the limit.
type streams struct{ stdout, stderr []byte }

// Who decides what came of a call: the first of the two.
const (
	undecided int32 = iota
	byCaller        // has left and was told "cancelled"
	byKeeper        // has the executor's answer, or the wait limit has passed
)

var errWaitLimit = errors.New("tracon: the wait limit has passed")

// execute calls the executor once, and answers at the first of: its answer, the
// caller's cancellation, the wait limit. Slot and cancel are two clocks: the
// keeper holds the slot until the executor's answer or the wait limit, also for
// a caller who has left, else cancelling and calling again would multiply
// scripts.
func (j *job) execute(ctx context.Context) (Outcome, error) {
	var decided atomic.Int32
	ectx, stop := context.WithCancelCause(ctx)
	ended := make(chan answer, 1)
	go j.keep(ectx, stop, &decided, ended)
	select {
	case a := <-ended:
		j.raw = a.raw
		return a.out, a.err
	case <-ctx.Done():
		if decided.CompareAndSwap(undecided, byCaller) {
			return j.known(Outcome{}), cancelled(ctx)
		}
		a := <-ended // the answer was there first; it is being written
		j.raw = a.raw
		return a.out, a.err
	}
}

// keep calls the executor, holds the slot, and writes the ending.
func (j *job) keep(ctx context.Context, stop context.CancelCauseFunc, decided *atomic.Int32, ended chan<- answer) {
	j.req.Live().Start()
	start := time.Now()
	came := make(chan answer, 1)
	go func() { came <- j.call(ctx) }()
	limit := time.NewTimer(j.req.Timeout() + j.r.grace)
	defer limit.Stop()

	var a answer
	lost := false
	select {
	case a = <-came:
	case <-j.slot.Lost():
		// Another host may have it now, so the script must not go on.
		stop(slot.ErrLost)
		select {
		case <-came:
		case <-limit.C: // what the executor cannot stop is out even so
			j.r.abandon(came)
			a.out.Abandoned = true
		}
		lost = true
		a.err = fmt.Errorf("%w: %w", ErrExecutorFailed, slot.ErrLost)
	case <-limit.C:
		select {
		case a = <-came: // at the same moment
		default:
			stop(errWaitLimit)
			j.r.abandon(came)
			a.out = Outcome{Ending: executor.Expired(), Abandoned: true,
				Notes: []string{"the executor had not answered at the wait limit; its work may go on"}}
		}
	}
	a.out.Duration = time.Since(start).Truncate(time.Microsecond)
	if a.err != nil && ctx.Err() != nil && !a.out.Abandoned && !lost {
		decided.CompareAndSwap(undecided, byCaller) // the executor was told before the caller was
	}
	if !decided.CompareAndSwap(undecided, byKeeper) {
		a.err = cancelled(ctx)
	}
	stop(nil)
	a.out, a.err = j.finish(a.out, a.err)
	ended <- a
}

// abandon counts an execution until its answer comes.
func (r *Runner) abandon(came <-chan answer) {
	r.abandoned.Add(1)
	go func() {
		<-came
		r.abandoned.Add(-1)
	}()
}

// call calls the executor. Whatever it does, an answer comes of it.
func (j *job) call(ctx context.Context) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{err: fmt.Errorf("%w: it panicked: %v", ErrExecutorFailed, p)}
		}
		a.err = j.masked(a.err)
	}()
	res, err := j.r.exec.Execute(ctx, j.req)
	switch {
	case errors.Is(err, executor.ErrUnavailable):
		return answer{err: fmt.Errorf("%w: %w", ErrExecutorUnavailable, err)}
	case errors.Is(err, executor.ErrUnknown):
		return answer{err: fmt.Errorf("%w: %w", ErrUnknown, err)}
	case err != nil:
		return answer{err: fmt.Errorf("%w: %w", ErrExecutorFailed, err)}
	case res.Ending.IsZero():
		return answer{err: fmt.Errorf("%w: it reported no ending", ErrExecutorFailed)}
	}
	most := j.req.MaxOutputBytes()
	raw := func(b []byte) []byte {
		b = j.req.Mask(b, res.Truncated)
		return b[:min(len(b), most)]
	}
	a = answer{out: j.outcome(res), raw: streams{raw(res.Stdout), raw(res.Stderr)}}
	if a.out.Replaced {
		a.out.StdoutBytes, a.out.StderrBytes = a.raw.stdout, a.raw.stderr
	}
	return a
}

// masked is err without secrets in its words, which the operator's log and span have.
func (j *job) masked(err error) error {
	if err == nil {
		return nil
	}
	plain := err.Error()
	if text := string(j.req.Mask([]byte(plain), false)); text != plain {
		return &maskedError{text, err}
	}
	return err
}

// A maskedError is an error in other words.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }

// outcome applies the limits again to what an executor returned (R25).
func (j *job) outcome(res executor.Result) Outcome {
	out := Outcome{Ending: res.Ending, Truncated: res.Truncated, PostureDigest: res.PostureDigest}
	masked := func(b []byte) []byte { return j.req.Mask(b, res.Truncated) }
	for _, s := range []struct {
		to   *string
		from []byte
	}{{&out.Stdout, res.Stdout}, {&out.Stderr, res.Stderr}} {
		text, cut, replaced := clip(s.from, j.req.MaxOutputBytes(), res.Truncated, masked)
		*s.to = text
		out.Truncated = out.Truncated || cut
		out.Replaced = out.Replaced || replaced
	}
	maxBytes, maxFiles := j.req.MaxOutputs()
	kept, notes := files(res.Outputs, maxBytes, maxFiles)
	out.Outputs = kept
	for _, n := range slices.Concat(res.Notes, notes) {
		out.Notes = append(out.Notes, string(j.req.Mask([]byte(n), false)))
	}
	return out
}

// finish writes the ending and the record in one transaction, gives the slot
// back, and tells the observer. It returns what the caller gets.
func (j *job) finish(out Outcome, err error) (Outcome, error) {
	out = j.known(out)
	out.Ended = time.Now().UTC().Truncate(time.Microsecond)
	ctx := context.Background() // the ending is written whether or not somebody still waits for it
	ending, facts := j.ending(out, err)
	var commit func(context.Context, audit.Pending) error
	if j.r.calls != nil {
		rec := j.record(out, ending)
		commit = func(ctx context.Context, p audit.Pending) error { return j.r.calls.AddCall(ctx, rec, p) }
	}
	_, werr := j.r.gate.End(ctx, j.req, ending, facts, commit)
	if errors.Is(werr, toolcall.ErrExists) { // two calls came with one id; the log has both endings even so
		_, werr = j.r.gate.End(ctx, j.req, ending, facts, nil)
	}
	if j.slot != nil {
		j.slot.Release()
	}
	if err != nil && Code(out, err) != "cancelled" {
		j.r.log.Warn("a call failed", "run", j.req, "ending", ending, "err", err)
	}
	if werr != nil {
		j.r.unwritten.Add(1)
		if !errors.Is(werr, audit.ErrUnavailable) {
			werr = fmt.Errorf("%w: %w", audit.ErrUnavailable, werr)
		}
		j.r.log.Error("an ending could not be written", "run", j.req, "ending", ending, "err", werr)
	}
	err = errors.Join(err, werr)
	j.done(Observation{Request: j.req, Outcome: out, Err: err})
	if err != nil && werr == nil {
		return j.known(Outcome{Duration: out.Duration, Ended: out.Ended, Abandoned: out.Abandoned}), err
	}
	return out, err
}

// known is out with what stands of the call since it was admitted, whatever comes
// of it.
func (j *job) known(out Outcome) Outcome {
	out.ID, out.Admitted, out.Waited, out.Receipt = j.req.ID(), j.admitted, j.waited, j.req.Receipt()
	out.Digest, out.GrantID, out.Standing = j.req.Digest(), j.req.GrantID(), j.req.Standing()
	return out
}

// ending names what came of the call, with what else the log says of it. An
// executor's own words stay out: a tenant can read its log.
func (j *job) ending(out Outcome, err error) (string, []audit.Fact) {
	facts := []string{
		"duration", out.Duration.Round(time.Microsecond).String(),
		"waited", out.Waited.Round(time.Microsecond).String(),
	}
	if d, ok := errors.AsType[*gate.Denial](err); ok {
		return "refused", audit.Facts(append(facts, "gate", string(d.Gate), "reason", d.Err.Error())...)
	}
	if code := Code(out, err); err != nil {
		if c, ok := errors.AsType[*Cancellation](err); ok && code == "cancelled" {
			facts = append(facts, "cancelledBy", audit.Clip(c.By))
		}
		return code, audit.Facts(facts...)
	}
	if n, ok := out.Ending.ExitCode(); ok {
		facts = append(facts, "exitCode", fmt.Sprint(n))
	}
	if n, ok := out.Ending.Signal(); ok {
		facts = append(facts, "signal", fmt.Sprint(n))
	}
	yes := map[bool]string{true: "yes"}
	return out.Ending.Name(), audit.Facts(append(facts,
		"stdoutBytes", fmt.Sprint(len(out.Stdout)), "stdoutCommitment", j.commitment(out.Stdout),
		"stderrBytes", fmt.Sprint(len(out.Stderr)), "stderrCommitment", j.commitment(out.Stderr),
		"outputFiles", fmt.Sprint(len(out.Outputs)),
		"posture", postureOf(out),
		"truncated", yes[out.Truncated], "abandoned", yes[out.Abandoned])...)
}

// postureOf names what the executor saw of the walls around this run.
func postureOf(out Outcome) string {
	if out.PostureDigest.IsZero() {
		return ""
	}
	return out.PostureDigest.String()
}

// commitment ties a stream to the log without showing it, as the gate does with
// the arguments, and under the same salt: a short output could be guessed from
// a plain digest.
func (j *job) commitment(text string) string {
	return bundle.Sum(append(j.req.ArgumentsSalt(), text...)).String()
}

func (j *job) record(out Outcome, ending string) toolcall.Record {
	req := j.req
	rec := toolcall.Record{
		ID: req.ID(), Tenant: req.Tenant(), Actor: req.Actor(), Skill: req.Skill(), Script: req.Script(),
		Digest: req.Digest(), ScriptDigest: req.ScriptDigest(), Grant: req.GrantID(),
		Executor: req.Standing().Executor, Tier: string(req.Standing().Tier),
		ArgumentsBytes: len(req.Arguments()), ArgumentsDigest: bundle.Sum(req.Arguments()), ArgumentsSalt: req.ArgumentsSalt(),
		Admitted: j.admitted, Ended: out.Ended, Waited: j.waited, Duration: out.Duration,
		Ending: ending, Abandoned: out.Abandoned, StdoutBytes: len(out.Stdout), StderrBytes: len(out.Stderr),
		OutputFiles: len(out.Outputs), Truncated: out.Truncated, Notes: out.Notes, AdmissionIndex: req.Receipt().Index(),
	}
	if req.KeepArguments() {
		if masked := req.Mask(req.Arguments(), false); json.Valid(masked) { // a secret may be a number
			rec.Arguments = string(masked)
		}
	}
	if n, ok := out.Ending.ExitCode(); ok {
		rec.ExitCode = &n
	}
	if n, ok := out.Ending.Signal(); ok {
		rec.Signal = &n
	}
	for _, f := range out.Outputs {
		rec.OutputBytes += int64(len(f.Data))
	}
	return rec
}
