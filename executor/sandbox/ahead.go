//go:build linux && (amd64 || arm64)

package sandbox

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// waitTime is how long a box waits for its call at most, and after how long a call
// makes nobody expect another one.
const waitTime = 30 * time.Second

// mostKinds is how many kinds of boxes are remembered as asked for.
const mostKinds = 256

// Ahead keeps boxes that were made before their call came. Each was made for one
// tenant, in a cgroup of that tenant's, serves one call of it, and is thrown away
// like any other: what it saves is the time of making it, nothing else. A call for
// which none waits has one made.
//
// A box is made when a run has ended and one of its kind had not long before, since
// a third is likely then: made while the script ran, it would take up to 1 ms from
// it. Where more runs are under way than there are processors none is made, and only
// one is made at a time. It is safe for concurrent use.
type ahead struct {
	most  int                       // boxes that wait or are being made; zero: none
	make  func(kind) (*hull, error) // returns one that waits
	raze  func(*hull)
	busy  func() bool      // the next call would wait for a processor all the same
	fresh func(*hull) bool // nothing that it shows was replaced on the host

	mu      sync.Mutex
	closed  bool
	mounts  *mountWatch
	changes int     // how often the host's mounts changed
	waiting []*hull // the one that was made first comes first
	wanted  []kind  // to be made, with the one that is being made
	asked   map[kind]time.Time
	timer   *time.Timer
	work    sync.WaitGroup
	served  int // how many were taken
}

// take returns a box of the kind that waits, or nil.
func (a *ahead) take(k kind) *hull {
	h := a.next(k)
	if h == nil {
		return nil
	}
	// No other call waits for this: a folder of the host may be slow to answer.
	if !a.fresh(h) {
		a.drop(h)
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.served++
	return h
}

// next takes the box of the kind that was made first from those that wait, or nil.
func (a *ahead) next(k kind) *hull {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire()
	i := slices.IndexFunc(a.waiting, func(h *hull) bool { return h.kind == k })
	if i < 0 {
		return nil
	}
	h := a.waiting[i]
	a.waiting = slices.Delete(a.waiting, i, i+1)
	return h
}

// expire lets go of what has waited for too long, and of all when something was
// mounted on the host or taken away: a box shows the mounts of when it was made.
func (a *ahead) expire() {
	changed := len(a.waiting)+len(a.wanted) > 0 && a.mounts.changed()
	if changed {
		a.changes++
	}
	a.waiting = slices.DeleteFunc(a.waiting, func(h *hull) bool {
		over := changed || a.closed || time.Since(h.since) >= waitTime
		if over {
			a.drop(h)
		}
		return over
	})
}

// spare lets go of all that wait, returns when they are gone, and reports whether
// there were any.
func (a *ahead) spare() bool {
	a.mu.Lock()
	list := a.waiting
	a.waiting = nil
	a.mu.Unlock()
	for _, h := range list {
		a.raze(h)
	}
	return len(list) > 0
}

// drop removes a box, which nobody waits for.
func (a *ahead) drop(h *hull) { a.work.Go(func() { a.raze(h) }) }

// want says that a run of the kind is over.
func (a *ahead) want(k kind) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.most <= 0 || a.busy() {
		return
	}
	last, known := a.asked[k]
	if a.asked == nil || !known && len(a.asked) >= mostKinds {
		a.asked = map[kind]time.Time{}
	}
	a.asked[k] = time.Now()
	if !known || time.Since(last) >= waitTime {
		return
	}
	// One tenant does not take all.
	same := 0
	for _, h := range a.waiting {
		if h.kind.tenant == k.tenant {
			same++
		}
	}
	for _, w := range a.wanted {
		if w.tenant == k.tenant {
			same++
		}
	}
	if len(a.waiting)+len(a.wanted) >= a.most || same >= max(1, a.most/2) {
		return
	}
	if a.wanted = append(a.wanted, k); len(a.wanted) == 1 {
		a.work.Go(a.fill)
	}
}

// fill makes what is wanted.
func (a *ahead) fill() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.wanted) > 0 {
		a.expire()
		k, before := a.wanted[0], a.changes
		var h *hull
		if !a.closed {
			a.mu.Unlock()
			made, err := a.make(k)
			a.mu.Lock()
			if err == nil { // else the next call of its kind is told
				h = made
			}
		}
		a.expire() // with the one that was made still wanted, so that it notices
		a.wanted = a.wanted[1:]
		switch {
		case h == nil:
		case a.closed || a.changes != before:
			a.drop(h)
		default:
			a.waiting = append(a.waiting, h)
			if a.timer == nil {
				a.timer = time.AfterFunc(waitTime, a.tick)
			}
		}
	}
}

// tick lets go of what has waited for too long, and comes again while others wait.
func (a *ahead) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire()
	if a.timer = nil; len(a.waiting) > 0 {
		a.timer = time.AfterFunc(waitTime-time.Since(a.waiting[0].since), a.tick)
	}
}

// letGo removes all, makes no more, and returns when they are gone.
func (a *ahead) letGo() {
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

// close is called when no run is under way, and none will be.
func (a *ahead) close() {
	a.letGo()
	a.mounts.close()
}

// A mountWatch notices when something is mounted in our mount namespace, or taken
// away. Nil notices nothing.
type mountWatch struct{ fd int }

func watchMounts() (*mountWatch, error) {
	fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &mountWatch{fd}, nil
}

// changed reports whether that has happened since it was asked last.
func (w *mountWatch) changed() bool {
	if w == nil {
		return false
	}
	for {
		waits := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLPRI}}
		if _, err := unix.Poll(waits, 0); err != unix.EINTR {
			return err != nil || waits[0].Revents != 0
		}
	}
}

func (w *mountWatch) close() {
	if w != nil {
		unix.Close(w.fd)
	}
}
