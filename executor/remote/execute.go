package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/handover"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/outbound"
	"github.com/tracon-go/tracon/wire"
	"github.com/tracon-go/tracon/wire/ticket"
)

// errSilent is the cause of the end of a request whose answer did not come in time.
var errSilent = errors.New("the answer did not come in time")

// Execute has the script run by the runner, once. When ctx is done the request ends,
// by which a runner knows that the run is not wanted any more; that it heeds that is
// not waited for.
//
// # Errors
//
// executor.ErrInvalidRequest, the cause of ctx, or an [*Error].
func (e *Executor) Execute(ctx context.Context, req executor.Request) (executor.Result, error) {
	if !req.Valid() {
		return executor.Result{}, executor.ErrInvalidRequest
	}
	within, cancel := context.WithTimeoutCause(ctx, req.Timeout()+e.c.Patience, errSilent)
	defer cancel()
	res, err := e.execute(within, req)
	if err != nil && ctx.Err() != nil {
		return executor.Result{}, context.Cause(ctx) // R24
	}
	return res, err
}

func (e *Executor) execute(ctx context.Context, req executor.Request) (executor.Result, error) {
	info, err := e.known(ctx, DefaultFresh)
	if err != nil {
		return executor.Result{}, unsent(err)
	}
	if want := e.c.Runner; want != "" && info.Name != want {
		e.forget() // whoever answers now may be replaced by the right one
		return executor.Result{}, &Error{Kind: Unsendable, Err: fmt.Errorf("the runner calls itself %.80q, and remote_name says %q", info.Name, want)}
	}
	if !info.Knows() {
		return e.plain(ctx, req)
	}
	run, err := handover.Run(req, min(info.MaxInline, wire.MaxInline))
	if err != nil {
		return executor.Result{}, &Error{Kind: Unsendable, Err: err}
	}
	uploaded := len(run.More.Files) == 0
	if uploaded {
		if err := e.upload(ctx, req.Bundle()); err != nil {
			return executor.Result{}, unsent(err)
		}
	}
	a, err := e.ask(ctx, req, info, run)
	if f, ok := errors.AsType[*Error](err); ok && f.Code == "bundle_unknown" && !f.Unknown && uploaded {
		// Nothing was started: the runner was started anew, or has forgotten the closure.
		e.uploads.forget(req.Digest())
		if err := e.upload(ctx, req.Bundle()); err != nil {
			return executor.Result{}, unsent(err)
		}
		a, err = e.ask(ctx, req, info, run)
	}
	if err != nil {
		return executor.Result{}, err
	}
	return result(req, a)
}

// result is what the answer says, if it is the request's.
func result(req executor.Request, a wire.Answer) (executor.Result, error) {
	res, err := handover.Result(req, a)
	if want := req.Standing().Tier; err == nil && !grant.Tier(a.More.Tier).Meets(want) {
		err = fmt.Errorf("it ran at the tier %.40q, and %q was asked for", a.More.Tier, want)
	}
	if err != nil {
		return executor.Result{}, &Error{Kind: Violation, Unknown: true, Err: err}
	}
	return res, nil
}

// ask signs the run, sends it and reads the answer.
func (e *Executor) ask(ctx context.Context, req executor.Request, info wire.Info, run wire.Run) (wire.Answer, error) {
	if e.c.Signer == nil && info.RequireTicket {
		return wire.Answer{}, &Error{Kind: Unsendable, Err: errors.New("the runner asks for tickets: set remote_ticket_key")}
	}
	if e.c.Signer != nil {
		commitment, err := run.Commitment()
		if err != nil {
			return wire.Answer{}, &Error{Kind: Unsendable, Err: err}
		}
		run.More.Ticket, err = e.c.Signer.Sign(ticket.Terms{Runner: e.c.Runner, Tenant: req.Tenant(), Run: req.ID(), Digest: req.Digest(), Request: commitment})
		if err != nil {
			return wire.Answer{}, &Error{Kind: Unsendable, Err: err}
		}
	}
	a, err := e.post(ctx, req, run, info.Shows() && handover.Wanted(req))
	if f, ok := errors.AsType[*Error](err); ok && f.Status != 0 {
		e.forget() // it may be another runner by now, or tell of itself anew
	}
	return a, err
}

// body is a request's. Until its last byte was taken nobody can have the run: JSON that
// lacks its end is none.
type body struct {
	text *bytes.Reader
	gone atomic.Bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.text.Read(p)
	if b.text.Len() == 0 {
		b.gone.Store(true)
	}
	return n, err
}

// post sends the run and reads the answer, which may show output before the end where
// live asks for that.
func (e *Executor) post(ctx context.Context, req executor.Request, run wire.Run, live bool) (wire.Answer, error) {
	text, err := run.Encode()
	if err == nil && len(text) > wire.MaxRun {
		err = fmt.Errorf("the run has %d bytes, at most %d travel", len(text), wire.MaxRun)
	}
	if err != nil {
		return wire.Answer{}, &Error{Kind: Unsendable, Err: err}
	}
	b := &body{text: bytes.NewReader(text)}
	r, err := e.request(ctx, http.MethodPost, "runs", b, len(text))
	if err != nil {
		return wire.Answer{}, &Error{Kind: Unsendable, Err: err}
	}
	if live {
		r.Header.Set("Accept", wire.LiveType+", "+plainType)
	}
	answer, err := e.client.Do(r)
	if err != nil {
		kind := HungUp
		switch {
		case !b.gone.Load():
			kind = Unreachable
		case context.Cause(ctx) == errSilent:
			kind = Silent
		}
		return wire.Answer{}, &Error{Kind: kind, Unknown: b.gone.Load(), Err: told(err)}
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode/100 != 2 {
		return wire.Answer{}, problem(answer)
	}
	read := func() (wire.Answer, error) { return wire.ReadAnswer(answer.Body, most(req)) }
	if kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type")); live && err == nil && kind == wire.LiveType {
		read = func() (wire.Answer, error) { return follow(req, answer.Body) }
	}
	a, err := read()
	if err == nil {
		return a, nil
	}
	if f, ok := errors.AsType[*Error](err); ok {
		return wire.Answer{}, f
	}
	f := &Error{Kind: HungUp, Unknown: true, Err: err}
	switch {
	case context.Cause(ctx) == errSilent:
		f.Kind = Silent
	case errors.Is(err, wire.ErrTooLarge), errors.Is(err, outbound.ErrTooLarge):
		f.Kind = TooLarge
	case errors.Is(err, wire.ErrMalformed):
		f.Kind = Garbled
	case errors.Is(err, handover.ErrShown):
		f.Kind = Violation
	}
	return wire.Answer{}, f
}

// follow reads an answer that shows output before its end. What it shows is in no result:
// that is the answer's alone. One that shows what cannot be the run's is none.
func follow(req executor.Request, body io.Reader) (wire.Answer, error) {
	frames, show := wire.NewFrames(body, most(req)), handover.NewShow(req)
	var end wire.Frame
	for {
		f, err := frames.Next()
		switch {
		case err == io.EOF && end.Problem != nil:
			// Its output was seen: that nothing was started is not so, whatever it says (M06).
			p := end.Problem
			return wire.Answer{}, &Error{Kind: Status, Unknown: true, Status: p.Status, Code: p.Code, Detail: p.Detail}
		case err == io.EOF:
			return *end.Answer, nil
		case err != nil:
			return wire.Answer{}, err
		case f.Output == nil:
			end = f
		default:
			if err := show.Take(*f.Output); err != nil {
				return wire.Answer{}, err
			}
		}
	}
}

// most is how many bytes the answer to req can have: a byte of a stream takes six as an
// escape and at most two more as base64, one of a file 4/3.
func most(req executor.Request) int64 {
	bytes, files := req.MaxOutputs()
	return min(wire.MaxAnswer, 2*8*int64(req.MaxOutputBytes())+bytes/3*4+int64(files)*2<<10+wire.MaxSmall)
}

// problem is what a status outside 2xx says. Only a runner's own word, or a status by
// which HTTP itself turns a request away, means that nothing was started; the rest may
// come from a proxy in front of a runner that is at work (M06).
func problem(answer *http.Response) *Error {
	f := &Error{Kind: Status, Unknown: true, Status: answer.StatusCode}
	p, err := wire.ReadProblem(answer.Body)
	if err == nil {
		f.Code, f.Detail, f.Unknown = p.Code, p.Detail, !p.NotStarted
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		f.Unknown = err == nil && !p.NotStarted
	}
	switch {
	case f.Unknown:
	case answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusTooManyRequests:
		f.Kind = Busy
	default:
		f.Kind = Refused
	}
	return f
}

// unsent is the error of what came before the run was sent.
func unsent(err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Kind: Unreachable, Err: err}
}

// told is err without the method and the address in front of it.
func told(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
