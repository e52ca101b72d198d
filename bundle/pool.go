package bundle

import (
	"runtime"
	"sync"
	"weak"
)

// A Pool lets equal bundles have their bytes in memory once, for as long as one of
// them is in use: a thousand calls that wait with the same content then hold it
// once. The zero Pool is empty and ready. It is safe for concurrent use.
type Pool struct {
	mu    sync.Mutex
	known map[Digest]weak.Pointer[closed]
}

// Share returns a bundle that is equal to b: one that was given before and is
// still in use, or b. Equal is what has the same digest, which was computed of the
// bytes of both.
func (p *Pool) Share(b Bundle) Bundle {
	if b.c == nil {
		return b
	}
	digest := b.Digest()
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.known[digest].Value(); c != nil {
		return Bundle{c}
	}
	if p.known == nil {
		p.known = map[Digest]weak.Pointer[closed]{}
	}
	p.known[digest] = weak.Make(b.c)
	runtime.AddCleanup(b.c, p.forget, digest)
	return b
}

// forget drops a digest of which no bundle is in use.
func (p *Pool) forget(digest Digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known[digest].Value() == nil { // another one may have come meanwhile
		delete(p.known, digest)
	}
}
