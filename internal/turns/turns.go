// Package turns bounds how many calls do something at once, in all and for one
// tenant: whoever sends a flood makes others wait for one turn at most, and not
// for all of its own.
package turns

import (
	"context"
	"sync"
)

// Turns are those that there are. They are safe for concurrent use.
type Turns struct {
	all  chan struct{}
	each int

	mu      sync.Mutex
	tenants map[string]*share // those that hold a turn or wait for one
}

// share is what one tenant may hold.
type share struct {
	turns chan struct{}
	calls int // that hold one or wait
}

// New returns n turns, at least one. A tenant may hold half of them, at least one.
func New(n int) *Turns {
	n = max(n, 1)
	return &Turns{all: make(chan struct{}, n), each: max(n/2, 1), tenants: map[string]*share{}}
}

// Take waits for a turn of the tenant, and returns how it is given back, which is
// done once.
//
// # Errors
//
// The cause of ctx, when that is done first: there is nothing to give back.
func (t *Turns) Take(ctx context.Context, tenant string) (leave func(), err error) {
	s := t.enter(tenant)
	// The tenant's own come first: of those who wait for one of all, no tenant has
	// more than its share, and they get it in the order in which they came.
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		t.leave(tenant)
		return nil, context.Cause(ctx)
	}
	select {
	case t.all <- struct{}{}:
	case <-ctx.Done():
		<-s.turns
		t.leave(tenant)
		return nil, context.Cause(ctx)
	}
	return func() {
		<-t.all
		<-s.turns
		t.leave(tenant)
	}, nil
}

func (t *Turns) enter(tenant string) *share {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.tenants[tenant]
	if s == nil {
		s = &share{turns: make(chan struct{}, t.each)}
		t.tenants[tenant] = s
	}
	s.calls++
	return s
}

// leave forgets a tenant that has no call, so that there are no more than calls.
func (t *Turns) leave(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.tenants[tenant]; s.calls > 1 {
		s.calls--
	} else {
		delete(t.tenants, tenant)
	}
}
