package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/internal/strictjson"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/slot"
	"github.com/tracon-go/tracon/toolcall"
)

// maxRunBody is the most bytes of a call: inputs of the default limit in base64, and
// the largest arguments that a policy can allow.
const maxRunBody = 52 << 20

// bodyRate is how many bytes a second of a large body must come.
const bodyRate = 256 << 10

// started is the answer to the start of a run.
type started struct {
	Status   int
	Location string `header:"Location"`
	Replayed string `header:"Tracon-Replayed" doc:"true, where an earlier call with the same Idempotency-Key has this outcome"`
	Body     client.Run
}

func (s *server) startRun(ctx context.Context, p access.Principal, in *struct {
	Prefer string `header:"Prefer" maxLength:"1024" doc:"respond-async, wait=SECONDS"`
	Key    string `header:"Idempotency-Key" maxLength:"255" doc:"under which the same call, sent again, runs once: visible ASCII"`
}) (*started, error) {
	r := callOf(ctx).request
	run, digest, err := s.readRun(p.Tenant, callOf(ctx).writer, r)
	if err != nil {
		return nil, err
	}
	n := newRun{
		call: gate.Call{ID: id.New(), Tenant: p.Tenant, Actor: p.Actor, Skill: run.Skill, Script: run.Script, Arguments: run.Arguments, Still: s.stillMay(r, p)},
		want: parsePrefer(r.Header.Values("Prefer")), data: run.OutputData, body: digest,
	}
	for _, f := range run.Inputs {
		n.call.Inputs = append(n.call.Inputs, bundle.File{Path: f.Path, Data: f.Data})
	}
	s.patience(ctx)
	if keys := r.Header.Values("Idempotency-Key"); len(keys) > 0 {
		if len(keys) > 1 {
			return nil, problem(client.BadRequest, "there are two Idempotency-Keys")
		}
		n.key = keys[0]
		return s.once(ctx, p, n)
	}
	if !n.want.detached() {
		v, err := s.Runs.Do(ctx, n.call)
		return s.outcome(ctx, p, v, err, n.data)
	}
	v, err := s.Runs.Start(ctx, n.call, nil)
	if err != nil {
		return nil, s.notRun(ctx, p, v.ID, err)
	}
	return s.await(ctx, p, n, v.ID)
}

// stillMay returns what says, while a call waits, whether its credential still holds for
// what it was, and may start runs.
func (s *server) stillMay(r *http.Request, as access.Principal) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := Again(s.Authenticator)(r.WithContext(ctx))
		switch {
		case errors.Is(err, ErrUnauthenticated), err == nil && !p.Same(as):
			return fmt.Errorf("%w: the credential of the call holds no longer", gate.ErrDenied)
		case err != nil:
			return err
		}
		if err := may(access.WriteRuns).check(ctx, s.Authorizer, p); err != nil {
			return fmt.Errorf("%w: who called may start runs no longer: %w", gate.ErrDenied, err)
		}
		return nil
	}
}

// newRun is a call, and what its caller wants to have of it.
type newRun struct {
	call gate.Call
	want preference
	data bool   // of the files, with the answer
	key  string // empty: none
	body bundle.Digest
}

// readRun reads the body of a new run, while the tenant's calls have room for it.
func (s *server) readRun(tenant string, w http.ResponseWriter, r *http.Request) (run client.NewRun, digest bundle.Digest, err error) {
	size := r.ContentLength
	if size < 0 { // whoever does not say how much it is sends little
		size = DefaultMaxBody
		r.Body = http.MaxBytesReader(w, r.Body, size)
	}
	if size > maxRunBody {
		return run, digest, problem(client.TooLarge, "the body is too large")
	}
	control := http.NewResponseController(w) // where a deadline can be set
	_ = control.SetReadDeadline(time.Now().Add(DefaultBodyTime + time.Duration(size/bodyRate)*time.Second))
	came := s.Runs.Body(tenant, size)
	defer came.Release()
	if _, err := io.CopyBuffer(came, r.Body, make([]byte, 8<<10)); came.Full() != nil {
		return run, digest, busy(w, came.Full())
	} else if err != nil {
		return run, digest, bodyProblem(err)
	}
	body := came.Bytes()
	_ = control.SetReadDeadline(time.Time{})
	r.Body = http.NoBody // else it is all kept while the run lasts
	run, err = decodeRun(body)
	return run, bundle.Sum(body), err
}

// decodeRun holds what the document says of a new run; the gates hold the rest.
func decodeRun(body []byte) (run client.NewRun, err error) {
	if err := strictjson.Unmarshal(body, &run); err != nil {
		return run, wrongJSON(err)
	}
	return run, checkRun(run)
}

// wrongJSON says what of a body does not fit.
func wrongJSON(err error) error {
	p := problem(client.BadRequest, "the body is not what this takes")
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		p.Errors = []client.Wrong{{Location: "body" + audit.Clip(e.Pointer), Message: audit.Clip(e.Text)}}
	}
	return p
}

func checkRun(n client.NewRun) error {
	wrong := func(where, what string) error {
		p := problem(client.Invalid, "the body is not what this takes")
		p.Errors = []client.Wrong{{Location: where, Message: what}}
		return p
	}
	switch {
	case n.Skill == "" || len(n.Skill) > 512:
		return wrong("body.skill", "it has 1 to 512 bytes")
	case n.Script == "" || len(n.Script) > 512:
		return wrong("body.script", "it has 1 to 512 bytes")
	case len(n.Inputs) > 2048:
		return wrong("body.inputs", "it has 2,048 files at most")
	}
	return nil
}

// busy is the problem of something that there is no room for, with when to come again.
func busy(w http.ResponseWriter, err error) *client.Problem {
	after := time.Second
	if b, ok := errors.AsType[*slot.BusyError](err); ok {
		after = max(after, b.RetryAfter)
	}
	w.Header().Set("Retry-After", strconv.Itoa(int((after+time.Second-1)/time.Second)))
	return problem(client.Busy, "too much is under way; Retry-After says when to come again")
}

// patience lets the answer take as long as the run.
func (s *server) patience(ctx context.Context) {
	_ = http.NewResponseController(callOf(ctx).writer).SetWriteDeadline(time.Time{}) // where there is one
}

// await waits for the end of a run that goes on by itself, as long as its caller wants,
// and answers with how far it has come.
func (s *server) await(ctx context.Context, p access.Principal, n newRun, id string) (*started, error) {
	wait, stop := ctx, context.CancelFunc(func() {})
	if limit := n.want.limit(); limit >= 0 {
		wait, stop = context.WithTimeout(ctx, limit)
	}
	defer stop()
	v, err := s.Runs.Wait(wait, p.Tenant, id)
	if err == nil {
		return s.outcome(ctx, p, v, nil, n.data)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	// It is not awaited any longer, or not kept any more.
	run, err := s.run(ctx, p.Tenant, id)
	if err != nil {
		return nil, err
	}
	return s.state(ctx, run, n.data), nil
}

// state is the answer for a run as far as it has come.
func (s *server) state(ctx context.Context, run client.Run, data bool) *started {
	status := http.StatusOK
	if run.State != client.RunEnded {
		status = http.StatusAccepted
	}
	return &started{Status: status, Location: s.Prefix + "/v1/runs/" + run.ID, Body: s.carried(ctx, run, data)}
}

// outcome is the answer for a run that has ended, or never began.
func (s *server) outcome(ctx context.Context, p access.Principal, v runs.View, err error, data bool) (*started, error) {
	if err == nil && !wasStarted(v) {
		err = v.Err
	}
	if err != nil {
		return nil, s.notRun(ctx, p, v.ID, err)
	}
	return s.state(ctx, toRun(v, data), data), nil
}

// wasStarted reports whether the script of a run that has ended was started, or may
// have been, and what came of it is known.
func wasStarted(v runs.View) bool {
	if errors.Is(v.Err, gate.ErrDenied) {
		return false
	}
	switch v.Code() {
	case "busy", "executor_unavailable", "audit_unavailable":
		return false
	}
	return true
}

// notRun is the problem of a call that was not run, with the code of [tracon.Code].
func (s *server) notRun(ctx context.Context, p access.Principal, id string, err error) error {
	var told *client.Problem
	code := tracon.Code(tracon.Outcome{}, err)
	denial, refused := errors.AsType[*gate.Denial](err)
	switch {
	case code == "unknown":
		return err
	case errors.Is(err, tracon.ErrClosed):
		told = problem(client.Unavailable, "the host stops")
	case code == "busy":
		told = busy(callOf(ctx).writer, err)
	case refused && code == string(denial.Gate):
		told = problem(client.Code(code), denial.ModelText())
		if access.Check(ctx, s.Authorizer, p, access.ReadAudit) == nil { // it stands in the tenant's log too
			told.Reason, told.Remedy = denial.Err.Error(), denial.Remedy
		}
	default:
		told = problem(client.Code(code), tracon.ModelText(tracon.Outcome{}, err))
	}
	told.Run = id
	if told.Status >= 500 && !errors.Is(err, tracon.ErrCancelled) {
		s.Logger.ErrorContext(ctx, "a call was not run", "request", callOf(ctx).id, "run", id, "code", told.Code, "err", err)
	}
	return told
}

// A call that is under its gates, or on another host, is looked for again after
// soonest, then each time after twice as long, latest at the most.
const soonest, latest = 20 * time.Millisecond, time.Second

// once runs the call of an Idempotency-Key, unless it was begun before: then it answers
// with what came of that (case 53). The caller may see it: it was let in by now.
func (s *server) once(ctx context.Context, p access.Principal, n newRun) (*started, error) {
	if err := idempotency.CheckKey(n.key); err != nil {
		return nil, problem(client.BadRequest, "the Idempotency-Key has 1 to 255 bytes of visible ASCII")
	}
	claim := idempotency.Claim{Tenant: p.Tenant, Key: n.key, Body: n.body, Run: n.call.ID, At: time.Now(), Instance: s.Instance}
	limit := n.want.limit()
	for since, pause := time.Now(), soonest; ; pause = min(2*pause, latest) {
		found, err := s.Store.Begin(ctx, claim)
		if err != nil {
			return nil, err
		}
		switch found.State {
		case idempotency.Conflict:
			return nil, problem(client.KeyReused, "the Idempotency-Key stands for another call; take a new one")
		case idempotency.Begun:
			return s.first(ctx, p, n)
		case idempotency.Done:
			return s.replayed(ctx, p, n, found)
		}
		if v, err := s.Runs.Run(p.Tenant, found.Run); err == nil {
			out, err := s.await(ctx, p, n, v.ID)
			if err != nil {
				return nil, err
			}
			return replay(out), nil
		}
		if run, err := s.run(ctx, p.Tenant, found.Run); err == nil { // it ended and nobody kept its answer
			return replay(s.state(ctx, run, n.data)), nil
		}
		// Another host has it, or this one has not admitted it yet.
		if limit >= 0 && time.Since(since) >= limit {
			return replay(s.state(ctx, client.Run{ID: found.Run, Tenant: p.Tenant, Actor: p.Actor, Skill: n.call.Skill, Script: n.call.Script,
				State: client.RunQueued, Begun: found.Begun}, false)), nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func replay(a *started) *started {
	a.Replayed = "true"
	return a
}

// first runs the call that its key stands for from now on, and keeps what came of it.
// It goes on when its caller leaves: who sends a key means to ask again.
func (s *server) first(ctx context.Context, p access.Principal, n newRun) (*started, error) {
	kept := context.WithoutCancel(ctx)
	v, err := s.Runs.Start(ctx, n.call, func(v runs.View) { s.keepAnswer(kept, n, v) })
	if err != nil {
		s.keyError(ctx, v.ID, s.Store.Drop(kept, p.Tenant, n.key, v.ID))
		return nil, s.notRun(ctx, p, v.ID, err)
	}
	return s.await(ctx, p, n, v.ID)
}

// keepAnswer keeps what came of an admitted call under its key. Where it was not
// started the key stands for nothing again; where its ending could not be written it
// stays, and the record will tell.
func (s *server) keepAnswer(ctx context.Context, n newRun, v runs.View) {
	switch {
	case v.Code() == "audit_unavailable":
	case !wasStarted(v):
		s.keyError(ctx, v.ID, s.Store.Drop(ctx, v.Tenant, n.key, v.ID))
	default:
		run := toRun(v, n.data)
		if textOf(run)+dataOf(run) > idempotency.MaxAnswer {
			run = toRun(v, false)
		}
		text := encode(run)
		if len(text) > idempotency.MaxAnswer {
			text = encode(toRun(v, false))
		}
		s.keyError(ctx, v.ID, s.Store.Finish(ctx, v.Tenant, n.key, v.ID, text))
	}
}

func (s *server) keyError(ctx context.Context, run string, err error) {
	if err != nil {
		s.Logger.ErrorContext(ctx, "what an Idempotency-Key stands for could not be kept", "run", run, "err", err)
	}
}

// replayed is the answer that was kept, else what is known of the run. Of one that may
// have been admitted and has no record nothing is known.
func (s *server) replayed(ctx context.Context, p access.Principal, n newRun, found idempotency.Found) (*started, error) {
	var run client.Run
	if found.Answer == nil || json.Unmarshal(found.Answer, &run) != nil || run.ID != found.Run || run.Tenant != p.Tenant {
		var err error
		run, err = s.run(ctx, p.Tenant, found.Run)
		switch {
		case errors.Is(err, toolcall.ErrNotFound):
			run = recordedRun(toolcall.Record{ID: found.Run, Tenant: p.Tenant, Actor: p.Actor, Skill: n.call.Skill, Script: n.call.Script, Ending: "unknown", Admitted: found.Begun})
			run.Audit, run.Digest = nil, ""
		case err != nil:
			return nil, err
		}
	}
	return replay(s.state(ctx, s.settled(ctx, run), n.data)), nil
}

func encode(run client.Run) []byte {
	text, err := json.Marshal(run)
	if err != nil { // nothing in a Run can fail to be written
		panic(err)
	}
	return text
}
