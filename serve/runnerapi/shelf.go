package runnerapi

import (
	"container/list"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

// A shelf keeps closures in memory, by owner and digest: what one uploaded no other
// learns of. Of one owner, what was used longest ago goes first.
type shelf struct {
	most int64

	mu    sync.Mutex
	all   int64
	peers map[string]int64
	at    map[shelved]*list.Element // of shelved and its bundle
	used  *list.List                // what was used last first
}

type shelved struct {
	peer   string
	digest bundle.Digest
}

// owner is whose closures those of the peer are: a peer of the same name that is let
// in for other tenants is another one (T09).
func owner(p gate.Peer) string {
	if p.AllTenants {
		return p.Name + "\n*"
	}
	tenants := slices.Clone(p.Tenants)
	slices.Sort(tenants)
	return p.Name + "\n" + strings.Join(slices.Compact(tenants), "\n") // no name has a line's end
}

type volume struct {
	key   shelved
	b     bundle.Bundle
	bytes int64
}

// perFile is what a file takes besides its path and its bytes.
const perFile = 1 << 10

func newShelf(most int64) *shelf {
	return &shelf{most: most, peers: map[string]int64{}, at: map[shelved]*list.Element{}, used: list.New()}
}

func (s *shelf) get(peer string, d bundle.Digest) (bundle.Bundle, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.at[shelved{peer, d}]
	if !ok {
		return bundle.Bundle{}, false
	}
	s.used.MoveToFront(e)
	return e.Value.(*volume).b, true
}

// put keeps b. The peer's own older ones go for it, and where all of the shelf is
// taken those of whoever has most.
func (s *shelf) put(peer string, b bundle.Bundle) error {
	files, bytes := b.Size()
	v := &volume{shelved{peer, b.Digest()}, b, bytes + int64(files)*perFile + int64(len(b.Declaration()))}
	for _, path := range b.Paths() {
		v.bytes += int64(len(path))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.bytes > s.most/2 {
		return fmt.Errorf("%w: a closure of %d bytes, and a peer has room for %d", bundle.ErrContent, v.bytes, s.most/2)
	}
	if e, ok := s.at[v.key]; ok {
		s.used.MoveToFront(e)
		return nil
	}
	for s.peers[peer]+v.bytes > s.most/2 {
		s.drop(peer)
	}
	for s.all+v.bytes > s.most {
		most := ""
		for name, n := range s.peers {
			if most == "" || n > s.peers[most] {
				most = name
			}
		}
		s.drop(most)
	}
	s.at[v.key] = s.used.PushFront(v)
	s.all += v.bytes
	s.peers[peer] += v.bytes
	return nil
}

// drop forgets what the peer used longest ago.
func (s *shelf) drop(peer string) {
	for e := s.used.Back(); e != nil; e = e.Prev() {
		v := e.Value.(*volume)
		if v.key.peer != peer {
			continue
		}
		s.used.Remove(e)
		delete(s.at, v.key)
		s.all -= v.bytes
		if s.peers[peer] -= v.bytes; s.peers[peer] == 0 {
			delete(s.peers, peer)
		}
		return
	}
}

// A budget bounds the bytes of requests that are being read or worked on, half of them
// of one peer.
type budget struct {
	most int64

	mu    sync.Mutex
	all   int64
	peers map[string]int64
}

func newBudget(most int64) *budget { return &budget{most: most, peers: map[string]int64{}} }

// take takes n bytes for the peer until they are given back, or says that it is busy.
func (b *budget) take(peer string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all+n > b.most || b.peers[peer]+n > b.most/2 {
		return &tracon.BusyError{RetryAfter: time.Second}
	}
	b.all += n
	b.peers[peer] += n
	return nil
}

// give gives n bytes of the peer back.
func (b *budget) give(peer string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all -= n
	if b.peers[peer] -= n; b.peers[peer] == 0 {
		delete(b.peers, peer)
	}
}
