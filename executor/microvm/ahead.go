//go:build linux && amd64

package microvm

import (
	"slices"
	"sync"
	"time"
)

// aheadTime is how long a machine waits for its call at most, and after how long a call
// makes nobody expect another one.
const aheadTime = time.Minute

// mostKinds is how many kinds of machines are remembered as asked for.
const mostKinds = 256

// ahead keeps machines that were restored before their call came. Each was made for one
// tenant, in a cgroup of that tenant's, serves one call of it, and is thrown away like any
// other: what it saves is the time of restoring it and of starting its interpreter, which
// was started in that very machine and has chance of its own.
//
// A machine is made when a run has ended that began not long after one of its kind had
// ended. Where more runs are under way than there are processors none is made, and only one
// is made at a time. It is safe for concurrent use.
type ahead struct {
	most   int           // machines that wait or are being made; zero: none
	memory int64         // bytes that they may take together, if each takes all that it may
	lasts  time.Duration // how long one waits: aheadTime
	make   func(size) (*vm, error)
	raze   func(*vm)
	busy   func() bool

	mu      sync.Mutex
	closed  bool
	waiting []waiting // the one that was made first comes first
	wanted  []size    // to be made, with the one that is being made
	asked   map[size]time.Time
	timer   *time.Timer
	work    sync.WaitGroup
	served  int // how many were taken
}

// waiting is a machine that waits.
type waiting struct {
	v     *vm
	size  size
	since time.Time
}

// takes is how many bytes such a machine may take.
func (s size) takes() int64 { return s.memory + monitorMemory }

// take returns the machine of that size which was made first and waits, or nil. Where none
// waits with the same interpreter one with another will do.
func (a *ahead) take(s size) *vm {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire()
	i := slices.IndexFunc(a.waiting, func(w waiting) bool { return w.size == s })
	if i < 0 {
		s.waits = ""
		i = slices.IndexFunc(a.waiting, func(w waiting) bool {
			w.size.waits = ""
			return w.size == s
		})
	}
	if i < 0 {
		return nil
	}
	v := a.waiting[i].v
	a.waiting = slices.Delete(a.waiting, i, i+1)
	a.served++
	return v
}

// count returns how many wait.
func (a *ahead) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire()
	return len(a.waiting)
}

// expire lets go of what has waited for too long. The lock is held.
func (a *ahead) expire() {
	a.waiting = slices.DeleteFunc(a.waiting, func(w waiting) bool {
		over := a.closed || time.Since(w.since) >= a.lasts
		if over {
			a.work.Go(func() { a.raze(w.v) }) // nobody waits for that
		}
		return over
	})
}

// want says that a run of that size is over, which began then.
func (a *ahead) want(s size, began time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.most <= 0 || a.busy() {
		return
	}
	last, known := a.asked[s]
	if a.asked == nil || !known && len(a.asked) >= mostKinds {
		a.asked = map[size]time.Time{}
	}
	a.asked[s] = time.Now()
	if !known || began.Sub(last) >= a.lasts {
		return
	}
	all := slices.Clone(a.wanted)
	for _, w := range a.waiting {
		all = append(all, w.size)
	}
	same, memory := 0, s.takes()
	for _, o := range all {
		memory += o.takes()
		if o.tenant == s.tenant {
			same++
		}
	}
	// One tenant does not take all.
	if len(all) >= a.most || same >= max(1, a.most/2) || memory > a.memory {
		return
	}
	if a.wanted = append(a.wanted, s); len(a.wanted) == 1 {
		a.work.Go(a.fill)
	}
}

// fill makes what is wanted.
func (a *ahead) fill() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.wanted) > 0 {
		s := a.wanted[0]
		var v *vm
		if !a.closed {
			a.mu.Unlock()
			v, _ = a.make(s) // who comes next is told why not
			a.mu.Lock()
		}
		a.wanted = a.wanted[1:]
		if v == nil {
			continue
		}
		a.waiting = append(a.waiting, waiting{v, s, time.Now()})
		a.expire()
		if a.timer == nil && !a.closed {
			a.timer = time.AfterFunc(a.lasts, a.tick)
		}
	}
}

// tick lets go of what has waited for too long, and comes again while others wait.
func (a *ahead) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire()
	if a.timer = nil; len(a.waiting) > 0 && !a.closed {
		a.timer = time.AfterFunc(a.lasts-time.Since(a.waiting[0].since), a.tick)
	}
}

// close removes all, makes no more, and returns when they are gone.
func (a *ahead) close() {
	a.mu.Lock()
	a.closed = true
	a.expire()
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	a.mu.Unlock()
	a.work.Wait()
}
