package box

import (
	"log/slog"
	"sync"

	"github.com/tracon-go/tracon/bundle"
)

// mostPostures is how many are remembered: policies can make many.
const mostPostures = 1000

// Postures are those of runs that the log knows. The zero value knows none. It is safe
// for concurrent use.
type Postures struct {
	mu   sync.Mutex
	seen map[bundle.Digest]bool
}

// Record writes what stands behind the digest of a posture into the log, once, and
// returns the digest. No text is no posture.
func (p *Postures) Record(log *slog.Logger, text string) bundle.Digest {
	if text == "" {
		return bundle.Digest{}
	}
	d := bundle.Sum([]byte(text))
	p.mu.Lock()
	known := p.seen[d]
	if p.seen == nil {
		p.seen = map[bundle.Digest]bool{}
	}
	if len(p.seen) < mostPostures {
		p.seen[d] = true
	}
	p.mu.Unlock()
	if !known {
		log.Info("the walls around a script", "digest", d.String(), "posture", text)
	}
	return d
}
