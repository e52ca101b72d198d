package remote

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/wire"
)

// Bounds of uploads.
const (
	uploadsAtOnce = 2    // each has a closure in memory a second time
	maxKnown      = 1024 // digests that are remembered as uploaded
)

// uploads are the closures that the runner has, as far as is known.
type uploads struct {
	places chan struct{}

	mu    sync.Mutex
	known map[bundle.Digest]bool
	turns map[bundle.Digest]chan struct{} // one asks for each; closed when it is done
}

func newUploads() *uploads {
	return &uploads{places: make(chan struct{}, uploadsAtOnce), known: map[bundle.Digest]bool{}, turns: map[bundle.Digest]chan struct{}{}}
}

// begin reports whether d is known, else whether it is the caller's turn, who then
// calls end, and else what to wait for.
func (u *uploads) begin(d bundle.Digest) (known bool, wait <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known[d] {
		return true, nil
	}
	if turn := u.turns[d]; turn != nil {
		return false, turn
	}
	u.turns[d] = make(chan struct{})
	return false, nil
}

func (u *uploads) end(d bundle.Digest, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	close(u.turns[d])
	delete(u.turns, d)
	if !ok {
		return
	}
	if len(u.known) >= maxKnown {
		clear(u.known) // asking anew costs a HEAD
	}
	u.known[d] = true
}

func (u *uploads) forget(d bundle.Digest) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.known, d)
}

// upload makes certain that the runner has the closure, as far as is known. It is sent
// once, however many runs need it.
func (e *Executor) upload(ctx context.Context, b bundle.Bundle) error {
	d := b.Digest()
	for {
		known, wait := e.uploads.begin(d)
		switch {
		case known:
			return nil
		case wait == nil:
			err := e.send(ctx, b)
			e.uploads.end(d, err == nil)
			return err
		}
		select {
		case <-wait: // whoever sent it may have failed by its own context
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// send asks whether the runner has the closure, and sends it where it has not.
func (e *Executor) send(ctx context.Context, b bundle.Bundle) error {
	select {
	case e.uploads.places <- struct{}{}:
		defer func() { <-e.uploads.places }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	path := "bundles/" + b.Digest().String()
	switch status, err := e.start(ctx, http.MethodHead, path, nil); {
	case err != nil && status != http.StatusNotFound:
		return err
	case err == nil:
		return nil
	}
	text, err := wire.ClosureOf(b).Encode()
	if err == nil && len(text) > wire.MaxClosure {
		err = fmt.Errorf("the closure has %d bytes, at most %d travel", len(text), wire.MaxClosure)
	}
	if err != nil {
		return &Error{Kind: Unsendable, Err: err}
	}
	_, err = e.start(ctx, http.MethodPut, path, text)
	return err
}

// start makes a request that starts no script.
func (e *Executor) start(ctx context.Context, method, path string, text []byte) (status int, err error) {
	var r *http.Request
	if text == nil {
		r, err = e.request(ctx, method, path, nil, 0)
	} else {
		r, err = e.request(ctx, method, path, bytes.NewReader(text), len(text))
	}
	if err != nil {
		return 0, &Error{Kind: Unsendable, Err: err}
	}
	answer, err := e.client.Do(r)
	if err != nil {
		return 0, &Error{Kind: Unreachable, Err: told(err)}
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode/100 == 2 {
		return answer.StatusCode, nil
	}
	f := problem(answer)
	f.Unknown = false
	return answer.StatusCode, f
}
