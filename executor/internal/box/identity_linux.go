package box

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"sync"
)

// Identities gives each run of a host that is root a user and a group of its
// own, which own nothing on the host. A host that is not root has one, and runs
// are that.
type Identities struct {
	from, count int // none: from is -1

	mu    sync.Mutex
	taken map[int]bool
}

// ErrNoIdentity: every identity has a run.
var ErrNoIdentity = errors.New("box: too many runs at once for the identities that there are")

// identityRanges are those that no distribution gives to anybody, the largest
// first (systemd, "Users, Groups, UIDs and GIDs"): a container has the second
// alone.
var identityRanges = [][2]int{{0x7000_0000, 0x1000_0000 - 1}, {60578, 606}}

// ErrNoRange: this is root in a user namespace that has no identities to give away.
var ErrNoRange = fmt.Errorf("this is root in a user namespace that has no identities to give away: map the users and groups %d to %d into it", identityRanges[1][0], identityRanges[1][0]+identityRanges[1][1]-1)

// FindIdentities returns those that this host can give.
func FindIdentities() (*Identities, error) {
	if os.Geteuid() != 0 {
		return &Identities{from: -1}, nil
	}
	users, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return nil, err
	}
	groups, err := os.ReadFile("/proc/self/gid_map")
	if err != nil {
		return nil, err
	}
	for _, r := range identityRanges {
		if covers(string(users), r) && covers(string(groups), r) {
			return &Identities{from: r[0], count: r[1], taken: map[int]bool{}}, nil
		}
	}
	return nil, ErrNoRange
}

// SmallIdentities returns those that also the user namespace of a container has, for
// runs of which another program makes containers.
func SmallIdentities() *Identities {
	r := identityRanges[len(identityRanges)-1]
	return &Identities{from: r[0], count: r[1], taken: map[int]bool{}}
}

// Range returns the first of the identities, and how many there are.
func (i *Identities) Range() (first, count int) { return i.from, i.count }

// covers reports whether the map of a user namespace has the whole range.
func covers(text string, r [2]int) bool {
	for line := range strings.Lines(text) {
		var inside, outside, count int
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err == nil && inside <= r[0] && r[0]+r[1] <= inside+count {
			return true
		}
	}
	return false
}

// Take returns an identity that no run of this process has, or -1.
func (i *Identities) Take() (int, error) {
	if i.from < 0 {
		return -1, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for range 1000 {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(i.count)))
		if err != nil {
			return 0, err
		}
		if id := i.from + int(n.Int64()); !i.taken[id] {
			i.taken[id] = true
			return id, nil
		}
	}
	return 0, ErrNoIdentity
}

// Give gives an identity back; -1 is none.
func (i *Identities) Give(id int) {
	if id < 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.taken, id)
}
