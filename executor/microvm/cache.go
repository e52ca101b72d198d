//go:build linux && amd64

package microvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/microvm/internal/snapshot"
)

// A saved is a machine that waited for its first order when it was saved. Its memory is a
// sealed file: a monitor has a private copy of each page that its machine changes, and
// shares the others, which nobody can change.
type saved struct {
	key     bundle.Digest
	memory  *os.File
	state   *os.File // the devices'; sealed
	counter int      // what the machine was told of the processor's

	// Of the cache, under its lock.
	made  chan struct{} // closed: it was made, or not
	err   error         // why it was not, or is restored no more
	since time.Time     // of err
	users int
	fails int // restores that failed, one after the other
	late  int // the cache's count when it was used last
	gone  bool
}

const (
	// mostSaved is how many saved machines are held in memory, some 90 MiB each.
	mostSaved = 8
	// mostFails is after how many restores that failed one after the other a saved
	// machine is restored no more.
	mostFails = 3
	// unsavedTime is for how long none is made after one could not be.
	unsavedTime = 5 * time.Minute
	// counterPart is by which part the rate of the processor's counter may differ from
	// what a saved machine was told.
	counterPart = 500
)

// A cache has the saved machines in memory. It is safe for concurrent use.
type cache struct {
	store *snapshot.Store // nil: no machine is saved
	work  sync.WaitGroup  // what is being made

	mu     sync.Mutex
	making bool // one is
	count  int
	list   map[bundle.Digest]*saved
}

// errNoRestore is why a saved machine is restored no more.
var errNoRestore = fmt.Errorf("it could not be restored %d times", mostFails)

// errMaking is why a run boots its machine: another kind is being made.
var errMaking = errors.New("another one is being saved")

// take returns the saved machine of the key, which f makes where none is held. It is made
// for all who want it, however long each of them waits: where it took a run longer than
// that has, none would ever be saved else. As it may be in no run's slot any more, there
// is one at a time. It is held until release is called.
func (c *cache) take(ctx context.Context, key bundle.Digest, f func() (*saved, error)) (s *saved, release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.list[key]; old != nil && old.err != nil && time.Since(old.since) >= unsavedTime {
		c.drop(old)
	}
	if s = c.list[key]; s == nil {
		if c.making {
			return nil, nil, errMaking
		}
		s = c.make(key, f)
	}
	c.use(s)
	c.mu.Unlock()
	select {
	case <-s.made:
	case <-ctx.Done():
	}
	c.mu.Lock()
	if err = context.Cause(ctx); err == nil {
		err = s.err
	}
	if err != nil {
		c.release(s)
		return nil, nil, err
	}
	return s, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.release(s)
	}, nil
}

// make has f make one. The lock is held.
func (c *cache) make(key bundle.Digest, f func() (*saved, error)) *saved {
	s := &saved{key: key, made: make(chan struct{})}
	if c.list == nil {
		c.list = map[bundle.Digest]*saved{}
	}
	c.list[key] = s
	c.use(s) // it is held until it is made
	c.making = true
	c.work.Go(func() {
		made, err := f()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.making = false
		if s.err, s.since = err, time.Now(); err == nil {
			s.memory, s.state, s.counter = made.memory, made.state, made.counter
		} else if errors.Is(err, errHung) {
			c.drop(s) // that is no reason for those who come later
		}
		close(s.made)
		c.release(s)
	})
	return s
}

func (c *cache) use(s *saved) {
	s.users++
	c.count++
	s.late = c.count
	for len(c.list) > mostSaved { // the one that was used last is never that
		var oldest *saved
		for _, o := range c.list {
			if oldest == nil || o.late < oldest.late {
				oldest = o
			}
		}
		c.drop(oldest)
	}
}

// drop takes it from the list. The lock is held, as for the others.
func (c *cache) drop(s *saved) {
	if c.list[s.key] == s {
		delete(c.list, s.key)
	}
	s.gone = true
	if s.users == 0 {
		s.close()
	}
}

func (c *cache) release(s *saved) {
	if s.users--; s.users == 0 && s.gone {
		s.close()
	}
}

func (s *saved) close() {
	for _, f := range []*os.File{s.memory, s.state} {
		if f != nil {
			f.Close()
		}
	}
}

// told says whether a machine was restored of it.
func (c *cache) told(s *saved, restored bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.fails++; restored {
		s.fails = 0
	}
	if s.fails == mostFails {
		s.err, s.since = errNoRestore, time.Now() // it stays in the list, so that no other is made at once
		_ = c.store.Remove(s.key)                 // but then one is
	}
}

// clear lets go of all, when what is being made is made.
func (c *cache) clear() {
	c.work.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.list {
		c.drop(s)
	}
}
