package toolset

import (
	"sync"
	"time"
)

// patience bounds loops: a model that sends refused calls one after the other has to
// wait, longer each time, until a call gets through. The gates have logged and counted
// each refusal up to then; the calls after it never reach them.
type patience struct {
	most int

	mu     sync.Mutex
	actors map[[2]string]*strikes
}

type strikes struct {
	count int
	until time.Time // the next call before is answered by a wait
	last  time.Time
}

// What bounds the waits and the memory of them.
const (
	longestWait = time.Minute
	forgetAfter = 10 * time.Minute
	mostActors  = 10_000
)

func newPatience(most int) *patience {
	return &patience{most: most, actors: map[[2]string]*strikes{}}
}

// wait returns how long the actor has to wait first; zero: not at all.
func (p *patience) wait(tenant, actor string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.actors[[2]string{tenant, actor}]; s != nil {
		return max(0, time.Until(s.until))
	}
	return 0
}

// note takes what came of a call.
func (p *patience) note(tenant, actor string, refused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key, now := [2]string{tenant, actor}, time.Now()
	if !refused {
		delete(p.actors, key)
		return
	}
	s := p.actors[key]
	if s == nil || now.Sub(s.last) > forgetAfter {
		p.makeRoom(now)
		s = &strikes{}
		p.actors[key] = s
	}
	s.count++
	s.last = now
	if over := s.count - p.most; over >= 0 {
		s.until = now.Add(min(longestWait, time.Second<<min(over, 6)))
	}
}

// makeRoom forgets who is long gone, and where all are here, the one whose last refusal
// lies farthest back.
func (p *patience) makeRoom(now time.Time) {
	if len(p.actors) < mostActors {
		return
	}
	var oldest [2]string
	var at time.Time
	for key, s := range p.actors {
		if now.Sub(s.last) > forgetAfter {
			delete(p.actors, key)
		} else if at.IsZero() || s.last.Before(at) {
			oldest, at = key, s.last
		}
	}
	if len(p.actors) >= mostActors {
		delete(p.actors, oldest)
	}
}
