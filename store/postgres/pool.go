package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tracon-go/tracon/slot"
	"github.com/tracon-go/tracon/store"
)

// A lease is one call's row: a place, and then a slot.
type lease struct {
	h      *Host
	tenant string
	epoch  *epoch
	n      int64         // of its row
	ready  chan struct{} // closed when it has a slot

	// Of Host.mu.
	waits bool
	given bool // the steward has seen that it has a slot
	taken bool // Wait has returned it
	since time.Time
}

// An op is something that the steward does for a call, with others in one transaction.
type op struct {
	what  verb
	lease *lease
	done  chan error // of capacity 1
}

type verb int

const (
	enter  verb = iota // takes a place
	wait               // waits for a slot
	remove             // gives back what there is; tried until it is done
)

// do has the steward do what for l. Where ctx ends first, what was not begun is not
// done; what was done is undone.
func (h *Host) do(ctx context.Context, what verb, l *lease) error {
	o := &op{what, l, make(chan error, 1)}
	h.mu.Lock()
	if h.fenced {
		h.mu.Unlock()
		return fmt.Errorf("%w: %w", slot.ErrUnavailable, store.ErrFenced)
	}
	h.ops = append(h.ops, o)
	h.mu.Unlock()
	h.wake()
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
	case <-l.epoch.lost:
		// The database is out of reach, and so may be the answer.
		if what == wait {
			return fmt.Errorf("%w: %w", slot.ErrUnavailable, slot.ErrLost)
		}
	}
	if !h.withdraw(o) && what == enter { // it is under way, or done
		go func() {
			if err := <-o.done; err == nil {
				h.drop(l)
			}
		}()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", slot.ErrUnavailable, slot.ErrLost)
}

// withdraw reports whether o was not begun, and then it never is.
func (h *Host) withdraw(o *op) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.Index(h.ops, o)
	if i < 0 {
		return false
	}
	h.ops = slices.Delete(h.ops, i, i+1)
	return true
}

// drop gives back what l has. It does not wait for it.
func (h *Host) drop(l *lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.calls, l.n)
	h.ops = append(h.ops, &op{remove, l, make(chan error, 1)})
	h.wake()
}

// Enter implements [slot.Pool].
func (h *Host) Enter(ctx context.Context, tenant string) (slot.Place, error) {
	h.mu.Lock()
	l := &lease{h: h, tenant: tenant, epoch: h.epoch, ready: make(chan struct{})}
	h.mu.Unlock()
	if err := h.do(ctx, enter, l); err != nil {
		return nil, err
	}
	return l, nil
}

// Count implements [slot.Pool].
func (h *Host) Count() slot.Count {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := slot.Count{Slots: h.o.Limits.Slots, PerTenant: h.o.Limits.SlotsPerTenant}
	for _, l := range h.calls {
		switch {
		case l.given:
			c.InUse++
		case l.waits:
			c.Waiting++
		}
	}
	return c
}

// busy is the answer where there is no room.
func (h *Host) busy(waiting int) error {
	return &slot.BusyError{RetryAfter: slot.RetryAfter(h.held, waiting, h.o.Limits.Slots)}
}

// Wait implements [slot.Place].
func (l *lease) Wait(ctx context.Context, limit time.Duration) (slot.Slot, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	err := l.h.do(ctx, wait, l)
	if err == nil {
		select {
		case <-l.ready:
			l.h.mu.Lock()
			l.taken = true
			l.h.mu.Unlock()
			return held{l}, nil
		case <-l.epoch.lost:
			err = fmt.Errorf("%w: %w", slot.ErrUnavailable, slot.ErrLost)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.waits = false // Leave takes the row away, and with it a slot that came at the same moment
	if err == errLimit {
		err = l.h.busy(len(l.h.calls))
	}
	return nil, err
}

// errLimit is the cause of the end of a wait for a slot.
var errLimit error = &slot.BusyError{}

// Leave implements [slot.Place].
func (l *lease) Leave() {
	l.h.mu.Lock()
	taken := l.taken
	l.h.mu.Unlock()
	if !taken {
		l.h.drop(l)
	}
}

// held is a lease with a slot.
type held struct{ l *lease }

// Release implements [slot.Slot].
func (s held) Release() {
	h := s.l.h
	h.mu.Lock()
	h.held += (time.Since(s.l.since) - h.held) / 8
	h.mu.Unlock()
	h.drop(s.l)
}

// Lost implements [slot.Slot].
func (s held) Lost() <-chan struct{} { return s.l.epoch.lost }
