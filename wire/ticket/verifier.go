package ticket

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tracon-go/tracon/gate"
)

// MaxSpent is how many tickets of one peer are remembered as used. Where there are more
// within [Life], the next is refused.
const MaxSpent = 1 << 16

// A Verifier redeems tickets at one runner. It implements [gate.Tickets] and is safe
// for concurrent use.
//
// Which tickets are used it remembers in memory. So that none is used again after a
// restart, it takes none that was signed before it was made, or within [Skew]
// after. No two processes may have one runner's name.
type Verifier struct {
	runner string
	since  time.Time // only what was signed later is taken

	mu    sync.Mutex
	keys  map[string][]ed25519.PublicKey    // by peer
	spent map[string]map[[16]byte]time.Time // by peer: when it is forgotten
}

var _ gate.Tickets = (*Verifier)(nil)

// NewVerifier returns one for the runner of that name. Keys are those that each peer
// may sign with; a peer without a key has no ticket that holds.
//
// # Errors
//
// One that names the peer whose key is none, or an empty name of the runner.
func NewVerifier(runner string, keys map[string][]ed25519.PublicKey) (*Verifier, error) {
	if runner == "" {
		return nil, errors.New("ticket: the runner has no name")
	}
	v := &Verifier{runner: runner, spent: map[string]map[[16]byte]time.Time{}, since: time.Now().Add(Skew)}
	if err := v.SetKeys(keys); err != nil {
		return nil, err
	}
	return v, nil
}

// SetKeys has the peers sign with these keys from now on, and with no others. Which
// tickets are used stays known.
//
// # Errors
//
// One that names the peer whose key is none; then nothing changes.
func (v *Verifier) SetKeys(keys map[string][]ed25519.PublicKey) error {
	own := map[string][]ed25519.PublicKey{}
	for peer, list := range keys {
		for _, key := range list {
			if len(key) != ed25519.PublicKeySize {
				return fmt.Errorf("ticket: a key of the peer %q is no Ed25519 public key", peer)
			}
		}
		own[peer] = slices.Clone(list)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keys = own
	return nil
}

// Fingerprints returns those of the keys that the peer may sign with, and never nil.
func (v *Verifier) Fingerprints(peer string) []string {
	list := []string{}
	for _, key := range v.keysOf(peer) {
		list = append(list, Fingerprint(key))
	}
	return list
}

func (v *Verifier) keysOf(peer string) []ed25519.PublicKey {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.keys[peer]
}

// Redeem implements [gate.Tickets].
func (v *Verifier) Redeem(_ context.Context, text string, c gate.Claim) error {
	bad := func(why string) error { return fmt.Errorf("%w: %s", gate.ErrTicket, why) }
	t, payload, signature, err := read(text)
	if err != nil {
		return fmt.Errorf("%w: %w", gate.ErrTicket, err)
	}
	message := append([]byte(domain), payload...)
	if !slices.ContainsFunc(v.keysOf(c.Peer), func(key ed25519.PublicKey) bool { return ed25519.Verify(key, message, signature) }) {
		return bad("no key of the peer signed it")
	}
	now := time.Now()
	switch {
	case t.Terms != Terms{v.runner, c.Tenant, c.Run, c.Digest, c.Request}:
		return bad("it is for another runner, tenant, run, closure or request")
	case t.signed.After(now.Add(Skew)):
		return bad("it was signed in the future: one of the clocks is wrong")
	case t.ends.Sub(t.signed) > Life || !t.ends.After(t.signed):
		return bad("it holds for too long, or not at all")
	case !now.Before(t.ends.Add(Skew)):
		return bad("its time is over, or one of the clocks is wrong")
	case !t.signed.After(v.since):
		return bad("it was signed before the runner started, or just then: ask again; where that goes on, one of the clocks is wrong")
	}
	return v.spend(c.Peer, t, now)
}

// spend uses the ticket up.
func (v *Verifier) spend(peer string, t ticket, now time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	spent := v.spent[peer]
	if spent == nil {
		spent = map[[16]byte]time.Time{}
		v.spent[peer] = spent
	}
	if _, used := spent[t.nonce]; used {
		return fmt.Errorf("%w: it is used up", gate.ErrTicket)
	}
	if len(spent) >= MaxSpent {
		maps.DeleteFunc(spent, func(_ [16]byte, until time.Time) bool { return now.After(until) })
	}
	if len(spent) >= MaxSpent {
		return fmt.Errorf("%w: the peer has used too many of late", gate.ErrTicket)
	}
	spent[t.nonce] = t.ends.Add(Skew)
	return nil
}
