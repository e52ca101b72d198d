package notary

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/tracon-go/tracon/audit"
)

// What the entries of the log's own administration are called, and their facts.
const (
	subjectKey    = "key"    // the first key of an origin
	subjectRotate = "rotate" // the next one
	subjectAccept = "accept-loss"
	factKey       = "key"
	factTo        = "to"
	factPlace     = "place"   // whose key it is, where several hosts have one: see [Notary.place]
	factGivenUp   = "givenUp" // checkpoints of which a loss was accepted: see [said]
)

// said is what the log itself says of who signs it.
type said struct {
	keys    map[string][]audit.PublicKey // by origin
	first   map[string]audit.PublicKey   // the last one that was made in a place
	givenUp map[string]bool              // checkpoints of which a loss was accepted, as [tells] writes them: where one is the last of its place, it counts no more
}

// keyOf returns the key that an entry names as one that signs; "" for none.
func keyOf(e audit.Entry) audit.PublicKey {
	switch {
	case e.Kind != audit.Keeping:
	case e.Subject == subjectKey:
		return audit.PublicKey(e.Fact(factKey))
	case e.Subject == subjectRotate:
		return audit.PublicKey(e.Fact(factTo))
	}
	return ""
}

// says reads the entries of the log's own administration.
func (n *Notary) says(ctx context.Context) (said, error) {
	s := said{map[string][]audit.PublicKey{}, map[string]audit.PublicKey{}, map[string]bool{}}
	for leaf, err := range n.c.Log.Entries(ctx, n.c.Tenant, 0) {
		if err != nil {
			return said{}, err
		}
		e := leaf.Entry
		if k, err := audit.ParsePublicKey(string(keyOf(e))); err == nil {
			s.keys[k.Origin()] = append(s.keys[k.Origin()], k)
			if e.Subject == subjectKey {
				s.first[e.Fact(factPlace)] = k
			}
		}
		if e.Kind == audit.Keeping && e.Subject == subjectAccept {
			for line := range strings.Lines(e.Fact(factGivenUp)) {
				s.givenUp[strings.TrimSuffix(line, "\n")] = true
			}
		}
	}
	return s, nil
}

// tells is a checkpoint as one line of the log.
func tells(c audit.Checkpoint) string {
	return fmt.Sprintf("%s %d %s", c.Origin, c.Tree.Size, c.Tree.Root)
}

// place is a name for the data folder on this machine that tells nothing of either.
func (n *Notary) place() string {
	host, _ := os.Hostname() // without one, the folder alone
	sum := sha256.Sum256([]byte(host + "\x00" + n.c.Data))
	return hex.EncodeToString(sum[:12])
}
