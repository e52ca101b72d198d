package httpapi

import (
	"sync"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// What holds a skill in memory or on disk, or reads the whole log, is done by few at
// once, and by fewer for one tenant, so that one that uploads without end hurts itself
// alone.
const (
	heavyAtOnce    = 16
	heavyPerTenant = 4
)

type heavy struct {
	mu     sync.Mutex
	all    int
	tenant map[string]int
}

// enter takes one more in for the tenant, or says busy. Done is called once.
func (h *heavy) enter(tenant string) (done func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all >= heavyAtOnce || h.tenant[tenant] >= heavyPerTenant {
		return nil, problem(client.Busy, "too many large requests are under way; try again")
	}
	if h.tenant == nil {
		h.tenant = map[string]int{}
	}
	h.all++
	h.tenant[tenant]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all--
		if h.tenant[tenant]--; h.tenant[tenant] == 0 {
			delete(h.tenant, tenant)
		}
	}, nil
}
