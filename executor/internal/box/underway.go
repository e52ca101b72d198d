package box

import (
	"context"
	"sync"
)

// UnderWay counts the runs of an executor until that is closed. It is safe for
// concurrent use.
type UnderWay struct {
	refuse  error
	closing context.Context
	stop    func()

	mu     sync.Mutex
	closed bool
	count  int
	runs   sync.WaitGroup
}

// NewUnderWay returns an UnderWay that refuses runs with one error once it was closed,
// and stops those that are under way then with the other.
func NewUnderWay(refuse, stop error) *UnderWay {
	u := &UnderWay{refuse: refuse}
	closing, cancel := context.WithCancelCause(context.Background())
	u.closing, u.stop = closing, func() { cancel(stop) }
	return u
}

// Enter counts a run in. Leave is called once when it is over.
func (u *UnderWay) Enter() (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil, u.refuse
	}
	u.runs.Add(1)
	u.count++
	return u.leave, nil
}

func (u *UnderWay) leave() {
	u.mu.Lock()
	u.count--
	u.mu.Unlock()
	u.runs.Done()
}

// Count returns how many runs there are.
func (u *UnderWay) Count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.count
}

// Closing is done once Close was called; its cause is why runs are stopped.
func (u *UnderWay) Closing() context.Context { return u.closing }

// Close lets no more runs in, stops those that are under way and waits for them. It
// reports whether it is the first call; what is left to close is for that one.
func (u *UnderWay) Close() (first bool) {
	u.mu.Lock()
	first = !u.closed
	u.closed = true
	u.mu.Unlock()
	u.stop()
	u.runs.Wait()
	return first
}
