package tracon

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// slots bounds how many runs are out, in all and for one tenant, and how many
// calls wait. It is fair: a free slot goes to the waiting tenant that has the
// fewest, and among those to the one that has waited longest for its turn.
type slots struct {
	total, perTenant      int
	queue, queuePerTenant int

	mu      sync.Mutex
	tenants map[string]*share // those with a slot or a place
	inUse   int
	places  int
	turn    uint64        // rises with every slot given
	held    time.Duration // how long a slot is held, as a moving average
}

// share is what one tenant has.
type share struct {
	inUse   int
	places  int
	served  uint64 // the turn of its last slot
	waiting []*waiter
}

type waiter struct{ ready chan struct{} }

// A place in the queue is taken before the gates, so that a flood is turned
// away before it writes to the log.
type place struct {
	s      *slots
	tenant string
}

// enter takes a place, or returns a *BusyError.
func (s *slots) enter(tenant string) (*place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.tenants[tenant]
	if sh == nil {
		sh = &share{}
	}
	if s.places >= s.queue || sh.places >= s.queuePerTenant {
		return nil, &BusyError{RetryAfter: s.retryAfter()}
	}
	s.tenants[tenant] = sh
	s.places++
	sh.places++
	return &place{s, tenant}, nil
}

// retryAfter guesses when there is room: what waits, by how fast slots come
// back. It is at least a second and at most a minute.
func (s *slots) retryAfter() time.Duration {
	guess := s.held * time.Duration(s.places) / time.Duration(s.total)
	return min(max(guess.Round(time.Second), time.Second), time.Minute)
}

// leave gives the place back. It is called once, whether or not it led to a slot.
func (p *place) leave() {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.s.places--
	p.s.tenants[p.tenant].places--
	p.s.forget(p.tenant)
}

// wait takes a slot, and returns what gives it back, to be called once. After
// at most limit it returns a *BusyError; when ctx is done, its cause.
func (p *place) wait(ctx context.Context, limit time.Duration) (release func(), err error) {
	w := &waiter{make(chan struct{})}
	p.s.mu.Lock()
	sh := p.s.tenants[p.tenant]
	sh.waiting = append(sh.waiting, w)
	p.s.dispatch()
	p.s.mu.Unlock()

	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = &BusyError{}
	}
	taken := time.Now()
	release = func() { p.s.release(p.tenant, time.Since(taken)) }
	if err == nil {
		return release, nil
	}
	if !p.s.withdraw(p.tenant, w) {
		release() // it was given at the same moment
	}
	if busy, ok := err.(*BusyError); ok {
		p.s.mu.Lock()
		busy.RetryAfter = p.s.retryAfter()
		p.s.mu.Unlock()
	}
	return nil, err
}

// withdraw takes w out of the queue, and reports false where w has a slot.
func (s *slots) withdraw(tenant string, w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.tenants[tenant]
	for i, other := range sh.waiting {
		if other == w {
			sh.waiting = append(sh.waiting[:i], sh.waiting[i+1:]...)
			return true
		}
	}
	return false
}

func (s *slots) release(tenant string, held time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held += (held - s.held) / 8
	s.inUse--
	s.tenants[tenant].inUse--
	s.forget(tenant)
	s.dispatch()
}

// forget drops the share of a tenant that has nothing, so that the map stays as
// small as what is going on. The turn of its last slot goes with it: whoever
// has nothing is served first anyway.
func (s *slots) forget(tenant string) {
	if sh := s.tenants[tenant]; sh.inUse == 0 && sh.places == 0 {
		delete(s.tenants, tenant)
	}
}

// dispatch gives free slots away. The queue is bounded, so the walk is too.
func (s *slots) dispatch() {
	for s.inUse < s.total {
		var next *share
		for _, sh := range s.tenants {
			if len(sh.waiting) == 0 || sh.inUse >= s.perTenant {
				continue
			}
			if next == nil || sh.inUse < next.inUse || sh.inUse == next.inUse && sh.served < next.served {
				next = sh
			}
		}
		if next == nil {
			return
		}
		w := next.waiting[0]
		next.waiting = next.waiting[1:]
		s.turn++
		next.served = s.turn
		next.inUse++
		s.inUse++
		close(w.ready)
	}
}

// count returns how many slots are held and how many calls wait for one.
func (s *slots) count() (inUse, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.tenants {
		waiting += len(sh.waiting)
	}
	return s.inUse, waiting
}

// A BusyError says that there was no room, and when it is worth to try again.
type BusyError struct{ RetryAfter time.Duration }

func (e *BusyError) Error() string {
	return fmt.Sprintf("%v; try again in %s", ErrBusy, e.RetryAfter)
}

// Unwrap returns ErrBusy.
func (e *BusyError) Unwrap() error { return ErrBusy }
