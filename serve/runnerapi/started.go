package runnerapi

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"time"
)

// For how long the ids of runs are remembered, and how many: half of them of one owner.
const (
	startedFor  = 15 * time.Minute
	startedMost = 1 << 16
)

// A started remembers the ids of runs that came without a ticket, which says by itself
// that it was used: so that one which is sent again, as by a proxy, does not run again
// (R21). Where there are too many, what came first is forgotten first.
type started struct {
	most int

	mu   sync.Mutex
	of   map[string]int // by owner
	at   map[one]*list.Element
	came *list.List // of arrival, what came last first
}

// one is a run of an owner, by the sum of its id: ids are as long as a peer likes.
type one struct {
	owner string
	id    [sha256.Size]byte
}

type arrival struct {
	one
	at time.Time
}

func newStarted(most int) *started {
	return &started{most: most, of: map[string]int{}, at: map[one]*list.Element{}, came: list.New()}
}

// add remembers the run, and reports whether it is new.
func (s *started) add(owner, id string) bool {
	key, now := one{owner, sha256.Sum256([]byte(id))}, time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.came.Back(); e != nil && now.Sub(e.Value.(arrival).at) > startedFor; e = s.came.Back() {
		s.drop(e)
	}
	if s.at[key] != nil {
		return false
	}
	if s.of[owner] >= s.most/2 {
		for e := s.came.Back(); e != nil; e = e.Prev() {
			if e.Value.(arrival).owner == owner {
				s.drop(e)
				break
			}
		}
	}
	if len(s.at) >= s.most {
		s.drop(s.came.Back())
	}
	s.at[key] = s.came.PushFront(arrival{key, now})
	s.of[owner]++
	return true
}

// forget lets the run be sent again: it was not started.
func (s *started) forget(owner, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.at[one{owner, sha256.Sum256([]byte(id))}]; e != nil {
		s.drop(e)
	}
}

func (s *started) drop(e *list.Element) {
	a := s.came.Remove(e).(arrival)
	delete(s.at, a.one)
	if s.of[a.owner]--; s.of[a.owner] == 0 {
		delete(s.of, a.owner)
	}
}
