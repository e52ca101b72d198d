package executor

import (
	"io"
	"sync"
)

// FloodFactor is how often over its limit a stream may be before the script
// counts as flooding: 16 times.
const FloodFactor = 16

// A Capture keeps the first bytes of a stream and counts the rest. It never
// blocks the writer and never fails, so that a script that writes too much is
// drained while its memory here stays flat. It is safe for concurrent use.
type Capture struct {
	mu    sync.Mutex
	kept  []byte
	max   int
	seen  int64
	tap   func([]byte)
	flood func()
}

var _ io.Writer = (*Capture)(nil)

// NewCapture returns a Capture that keeps at most max bytes; zero or less keeps
// none. Tap, if not nil, is called with what is kept, in order. Flood, if not
// nil, is called once, when more than [FloodFactor] times max bytes were seen.
func NewCapture(max int, tap func([]byte), flood func()) *Capture {
	return &Capture{max: max, tap: tap, flood: flood}
}

// Write keeps what fits of p. It always returns len(p), nil.
func (c *Capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen += int64(len(p))
	if room := c.max - len(c.kept); room > 0 {
		part := p[:min(room, len(p))]
		c.kept = append(c.kept, part...)
		if c.tap != nil {
			c.tap(part)
		}
	}
	if c.flood != nil && c.seen > FloodFactor*int64(max(c.max, 1)) {
		c.flood()
		c.flood = nil
	}
	return len(p), nil
}

// Bytes returns a copy of what was kept, and whether more was seen than that.
func (c *Capture) Bytes() (kept []byte, truncated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]byte(nil), c.kept...), c.seen > int64(len(c.kept))
}
