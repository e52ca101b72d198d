package remote

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/wire"
)

// askTime is the time in which a runner tells of itself.
const askTime = 10 * time.Second

// about is what the runner told of itself last. Its turn is held by whoever asks;
// others wait for the answer, or for their own context.
type about struct {
	turn chan struct{} // of one
	mu   sync.Mutex
	info wire.Info // the zero Info: it tells nothing, so it speaks R28 alone
	at   time.Time // zero: it is to be asked again
}

// Info asks the runner what it tells of itself. A runner that tells nothing is one that
// speaks the plain wire alone: the zero Info.
//
// # Errors
//
// An [*Error] of a request that came to nothing.
func (e *Executor) Info(ctx context.Context) (wire.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	r, err := e.request(ctx, http.MethodGet, "info", nil, 0)
	if err != nil {
		return wire.Info{}, &Error{Kind: Unsendable, Err: err}
	}
	answer, err := e.client.Do(r)
	if err != nil {
		return wire.Info{}, &Error{Kind: Unreachable, Err: told(err)}
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusGone, http.StatusNotImplemented:
		return wire.Info{}, nil // it knows POST runs alone
	}
	if answer.StatusCode/100 != 2 {
		f := problem(answer)
		f.Unknown = false // info starts nothing
		return wire.Info{}, f
	}
	info, err := wire.ReadInfo(answer.Body)
	switch {
	case errors.Is(err, wire.ErrMalformed):
		return wire.Info{}, nil // a page of something else: it knows nothing of this
	case err != nil:
		return wire.Info{}, &Error{Kind: Unreachable, Err: err}
	}
	return info, nil
}

// told returns what is remembered, and false where it is older than fresh.
func (a *about) told(fresh time.Duration) (wire.Info, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.info, !a.at.IsZero() && time.Since(a.at) < fresh
}

// known returns what the runner told at most fresh ago.
func (e *Executor) known(ctx context.Context, fresh time.Duration) (wire.Info, error) {
	a := &e.about
	if info, ok := a.told(fresh); ok {
		return info, nil
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return wire.Info{}, context.Cause(ctx)
	}
	if info, ok := a.told(fresh); ok { // somebody asked meanwhile
		return info, nil
	}
	info, err := e.Info(ctx)
	if err != nil {
		return wire.Info{}, err
	}
	a.mu.Lock()
	a.info, a.at = info, time.Now()
	a.mu.Unlock()
	return info, nil
}

// forget has the runner asked again before the next run.
func (e *Executor) forget() {
	e.about.mu.Lock()
	defer e.about.mu.Unlock()
	e.about.at = time.Time{}
}

// Posture returns what the runner claims: nobody here has proved it. Of one that tells
// nothing no wall is known, and the tier is the lowest.
func (e *Executor) Posture(ctx context.Context) (executor.Posture, error) {
	info, err := e.known(ctx, DefaultFresh)
	if err != nil {
		return executor.Posture{}, err
	}
	p := executor.Posture{Executor: Name, Tier: grant.Process, Claimed: true}
	if !info.Knows() {
		return p, nil
	}
	if t := grant.Tier(info.Tier); t.Valid() {
		p.Tier = t
	}
	for i, w := range info.Walls {
		if i == maxWalls {
			break
		}
		if grant.CheckName("wall", w.Name) == nil {
			p.Walls = append(p.Walls, executor.Wall{Name: w.Name, Stands: w.Stands, Proof: "the runner says so"})
		}
	}
	return p, nil
}

// maxWalls is how many walls of a runner are told of.
const maxWalls = 64
