package schema

import (
	"container/list"
	"context"
	"sync"

	"github.com/tracon-go/tracon/bundle"
)

// maxCachedBytes bounds the schemas that are kept, by their text: compiled, a
// schema takes about forty times as much.
const maxCachedBytes = 2 << 20

// A cache keeps compiled schemas by the digest of their text, and errors too:
// a bad schema must not be cheaper to send than to refuse. Each is compiled
// once, however many ask at the same time.
type cache struct {
	most int

	mu    sync.Mutex
	byKey map[bundle.Digest]*list.Element
	order *list.List // of *kept, the last used first
	bytes int
}

type kept struct {
	key  bundle.Digest
	size int
	done chan struct{} // closed when p and err are there; nil from then on, under the lock
	p    *program
	err  error
}

func newCache(most int) *cache {
	return &cache{most: most, byKey: map[bundle.Digest]*list.Element{}, order: list.New()}
}

func (c *cache) get(ctx context.Context, text []byte, compile func([]byte) (*program, error)) (*program, error) {
	key := bundle.Sum(text)
	c.mu.Lock()
	if e, ok := c.byKey[key]; ok {
		c.order.MoveToFront(e)
		k := e.Value.(*kept)
		done := k.done
		c.mu.Unlock()
		if done == nil { // no channel: who made it may be of a bubble of synctest that is gone
			return k.p, k.err
		}
		select {
		case <-done:
			return k.p, k.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	k := &kept{key: key, size: min(len(text), maxCachedBytes/2), done: make(chan struct{})}
	c.byKey[key] = c.order.PushFront(k)
	c.bytes += k.size
	for c.order.Len() > 1 && (c.order.Len() > c.most || c.bytes > maxCachedBytes) {
		last := c.order.Remove(c.order.Back()).(*kept)
		delete(c.byKey, last.key)
		c.bytes -= last.size
	}
	c.mu.Unlock()
	k.p, k.err = compile(text) // it never panics; see there
	c.mu.Lock()
	defer c.mu.Unlock()
	close(k.done)
	k.done = nil
	return k.p, k.err
}
