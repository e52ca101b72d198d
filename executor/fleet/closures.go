package fleet

import (
	"container/list"
	"strings"
	"sync"

	"github.com/tracon-go/tracon/bundle"
)

// closures are bundles that runs may need again, by tenant and digest: what one
// tenant's runs brought is kept for no other's. What is kept is what was hashed: a
// digest gives the very bytes. A tenant has half of the room at most; of one tenant,
// what was used longest ago goes first.
type closures struct {
	most int64 // bytes

	mu      sync.Mutex
	size    int64
	tenants map[string]int64
	order   *list.List // of *kept, what was used last in front
	by      map[owned]*list.Element
}

type owned struct{ tenant, digest string }

type kept struct {
	key  owned
	b    bundle.Bundle
	size int64
}

func newClosures(most int64) *closures {
	return &closures{most: most, tenants: map[string]int64{}, order: list.New(), by: map[owned]*list.Element{}}
}

func (c *closures) get(tenant, digest string) (bundle.Bundle, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.by[owned{tenant, strings.ToLower(digest)}]
	if e == nil {
		return bundle.Bundle{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*kept).b, true
}

// perFile is what a file takes besides its path and its bytes.
const perFile = 1 << 10

// weight is about what the bundle takes in memory.
func weight(b bundle.Bundle) int64 {
	files, n := b.Size()
	n += int64(files)*perFile + int64(len(b.Declaration()))
	for _, p := range b.Paths() {
		n += int64(len(p))
	}
	return n
}

// add keeps b for the tenant. The tenant's own older ones go for it, and where all of
// the room is taken those of whoever has most. What has more than half is not kept.
func (c *closures) add(tenant string, b bundle.Bundle) {
	v := &kept{owned{tenant, b.Digest().String()}, b, weight(b) + int64(len(tenant))}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.by[v.key]; e != nil {
		c.order.MoveToFront(e)
		return
	}
	if v.size > c.most/2 {
		return
	}
	for c.tenants[tenant]+v.size > c.most/2 {
		c.drop(tenant)
	}
	for c.size+v.size > c.most {
		most := ""
		for name, n := range c.tenants {
			if n > c.tenants[most] {
				most = name
			}
		}
		c.drop(most)
	}
	c.by[v.key] = c.order.PushFront(v)
	c.size += v.size
	c.tenants[tenant] += v.size
}

// drop forgets what the tenant used longest ago.
func (c *closures) drop(tenant string) {
	for e := c.order.Back(); e != nil; e = e.Prev() {
		v := e.Value.(*kept)
		if v.key.tenant != tenant {
			continue
		}
		c.order.Remove(e)
		delete(c.by, v.key)
		c.size -= v.size
		if c.tenants[tenant] -= v.size; c.tenants[tenant] == 0 {
			delete(c.tenants, tenant)
		}
		return
	}
}
