package tracon

import (
	"context"
	"sync"
	"time"

	"github.com/tracon-go/tracon/slot"
)

// slots is the [slot.Pool] of one process. It bounds how many runs are out, in all
// and for one tenant, and how many calls wait.
type slots struct {
	slot.Limits

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

// Enter implements [slot.Pool].
func (s *slots) Enter(_ context.Context, tenant string) (slot.Place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.tenants[tenant]
	if sh == nil {
		sh = &share{}
	}
	if s.places >= s.Queue || sh.places >= s.QueuePerTenant {
		return nil, &BusyError{RetryAfter: s.retryAfter()}
	}
	s.tenants[tenant] = sh
	s.places++
	sh.places++
	return &place{s, tenant}, nil
}

func (s *slots) retryAfter() time.Duration { return slot.RetryAfter(s.held, s.places, s.Slots) }

// Leave implements [slot.Place].
func (p *place) Leave() {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.s.places--
	p.s.tenants[p.tenant].places--
	p.s.forget(p.tenant)
}

// held is a slot that was given.
type held struct {
	s      *slots
	tenant string
	since  time.Time
}

// Release implements [slot.Slot].
func (h *held) Release() { h.s.release(h.tenant, time.Since(h.since)) }

// Lost implements [slot.Slot]: what is this process's own stays so.
func (h *held) Lost() <-chan struct{} { return nil }

// Wait implements [slot.Place].
func (p *place) Wait(ctx context.Context, limit time.Duration) (_ slot.Slot, err error) {
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
	h := &held{p.s, p.tenant, time.Now()}
	if err == nil {
		return h, nil
	}
	if !p.s.withdraw(p.tenant, w) {
		h.Release() // it was given at the same moment
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
	for s.inUse < s.Slots {
		var next *share
		for _, sh := range s.tenants {
			if len(sh.waiting) == 0 || sh.inUse >= s.SlotsPerTenant {
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

// Count implements [slot.Pool].
func (s *slots) Count() slot.Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := slot.Count{Slots: s.Slots, PerTenant: s.SlotsPerTenant, InUse: s.inUse}
	for _, sh := range s.tenants {
		c.Waiting += len(sh.waiting)
	}
	return c
}

// A BusyError says that there was no room, and when it is worth to try again.
type BusyError = slot.BusyError
