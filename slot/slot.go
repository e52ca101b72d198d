// Package slot is the seam between a runner and what bounds how many runs are out
// at once and how many calls wait. A runner has a [Pool] of its own process where
// it is given none; a store of several hosts has one that holds across them.
//
// A pool is fair between tenants: a free slot goes to the waiting tenant that has
// the fewest, among those to the one whose last slot is longest ago, and there to
// the call that has waited longest.
package slot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// Errors of a pool.
var (
	// ErrBusy: there was no slot in time, or no place in the queue. Try again; a
	// *BusyError says when.
	ErrBusy = errors.New("tracon: busy")

	// ErrUnavailable: whether there is a slot could not be found out, so there is
	// none. It wraps ErrBusy.
	ErrUnavailable = fmt.Errorf("%w: the slots cannot be reached", ErrBusy)

	// ErrLost: this host was out of reach for so long that its slots are given to
	// others. What ran in one was stopped.
	ErrLost = errors.New("tracon: this host lost its slots")
)

// A BusyError says that there was no room, and when it is worth to try again.
type BusyError struct{ RetryAfter time.Duration }

func (e *BusyError) Error() string {
	return fmt.Sprintf("%v; try again in %s", ErrBusy, e.RetryAfter)
}

// Unwrap returns ErrBusy.
func (e *BusyError) Unwrap() error { return ErrBusy }

// RetryAfter guesses when there is room: what waits, by how fast slots come
// back. It is at least a second and at most a minute.
func RetryAfter(held time.Duration, waiting, slots int) time.Duration {
	guess := held * time.Duration(waiting) / time.Duration(max(slots, 1))
	return min(max(guess.Round(time.Second), time.Second), time.Minute)
}

// A Pool gives slots to runs. It is safe for concurrent use.
type Pool interface {
	// Enter takes a place on the way to a slot, before the gates: a flood is turned
	// away before it writes to the log.
	//
	// # Errors
	//
	// A *BusyError where there is none, ErrUnavailable, and the cause of ctx.
	Enter(ctx context.Context, tenant string) (Place, error)

	// Count says what goes on in this process.
	Count() Count
}

// A Count says how many slots there are and how many of them one tenant may have, how
// many this process holds, and how many of its calls wait for one.
type Count struct{ Slots, PerTenant, InUse, Waiting int }

// A Place is one call's on its way to a slot.
type Place interface {
	// Wait takes a slot, at most once.
	//
	// # Errors
	//
	// After limit a *BusyError; ErrUnavailable; the cause of ctx.
	Wait(ctx context.Context, limit time.Duration) (Slot, error)

	// Leave gives the place back. It is called once, whether or not it led to a
	// slot, which stays.
	Leave()
}

// A Slot is the right to run one script.
type Slot interface {
	// Release gives it back. It is called once.
	Release()

	// Lost is closed when the slot is no longer this process's: what runs in it must
	// stop at once. Nil: it cannot be lost.
	Lost() <-chan struct{}
}

// What [Limits] mean by zero.
const (
	DefaultPerCPU = 2 // Slots: twice the processors
	DefaultQueue  = 1024
)

// Limits are the bounds of a pool.
type Limits struct {
	// Slots is how many scripts run at once. Zero means twice the processors.
	Slots int

	// SlotsPerTenant is how many of them one tenant may have. Zero means half, at
	// least one.
	SlotsPerTenant int

	// Queue is how many calls may be on their way to a slot, and QueuePerTenant how
	// many of them one tenant's. Zero means 1,024, and half of Queue.
	Queue, QueuePerTenant int
}

// OrDefaults returns l with every number set.
func (l Limits) OrDefaults() Limits {
	l.Slots = cmp.Or(l.Slots, DefaultPerCPU*runtime.NumCPU())
	l.SlotsPerTenant = min(cmp.Or(l.SlotsPerTenant, max(l.Slots/2, 1)), l.Slots)
	l.Queue = cmp.Or(l.Queue, DefaultQueue)
	l.QueuePerTenant = min(cmp.Or(l.QueuePerTenant, max(l.Queue/2, 1)), l.Queue)
	return l
}
