package fleet

import (
	"container/list"
	"strings"
	"sync"

	"github.com/tracon-go/tracon/bundle"
)

// closures are bundles that runs may need again, the one that was used last in
// front. What is kept is what was hashed: a digest gives the very bytes.
type closures struct {
	most int64 // bytes; the newest is kept whatever it has

	mu    sync.Mutex
	size  int64
	order *list.List // of bundle.Bundle
	by    map[string]*list.Element
}

func newClosures(most int64) *closures {
	return &closures{most: most, order: list.New(), by: map[string]*list.Element{}}
}

func (c *closures) get(digest string) (bundle.Bundle, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.by[strings.ToLower(digest)]
	if e == nil {
		return bundle.Bundle{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(bundle.Bundle), true
}

func (c *closures) add(b bundle.Bundle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := b.Digest().String()
	if e := c.by[key]; e != nil {
		c.order.MoveToFront(e)
		return
	}
	_, n := b.Size()
	c.size += n
	c.by[key] = c.order.PushFront(b)
	for c.size > c.most && c.order.Len() > 1 {
		last := c.order.Remove(c.order.Back()).(bundle.Bundle)
		delete(c.by, last.Digest().String())
		_, n := last.Size()
		c.size -= n
	}
}
