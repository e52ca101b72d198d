package httpapi

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// What holds a skill in memory, or reads the whole log, is done by few at once, in turns
// that are shared fairly between tenants. A turn is taken when the body is there, so
// that who sends slowly holds none.
const (
	heavyAtOnce = 8
	heavyWait   = 30 * time.Second // for a turn, before the answer is busy
)

// heavy waits for a turn of the tenant, and returns how it is given back.
func (s *server) heavy(ctx context.Context, tenant string) (done func(), err error) {
	waiting, stop := context.WithTimeoutCause(ctx, heavyWait, errBusy)
	defer stop()
	done, err = s.turns.Take(waiting, tenant)
	if errors.Is(err, errBusy) {
		err = problem(client.Busy, "too many large requests are under way; try again")
	}
	return done, err
}

var errBusy = errors.New("httpapi: no turn in time")

// going takes a place of the tenant for an answer of about that many bytes, which is
// given back when it was written: its turn is over by then, and who reads slowly has it
// held in memory. A small one needs none.
func (s *server) going(ctx context.Context, tenant string, size int64) (err error) {
	c := callOf(ctx)
	if size > DefaultMaxBody && c.sent == nil {
		c.sent, err = s.uploads.enter(tenant)
	}
	return err
}

// sizeOf is how many bytes the changes have to tell.
func sizeOf(list []client.Change) (n int64) {
	for _, c := range list {
		n += int64(len(c.Difference))
	}
	return n
}

// uploads counts the large bodies that are coming, waiting on disk, or going: a tenant
// that sends without end, or reads without an end, is told that it is busy, and others
// are not.
type uploads struct {
	mu     sync.Mutex
	all    int
	tenant map[string]int
}

const (
	uploadsAtOnce    = 32
	uploadsPerTenant = 4
)

// enter takes one more in for the tenant, or says busy. Done is called once.
func (u *uploads) enter(tenant string) (done func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all >= uploadsAtOnce || u.tenant[tenant] >= uploadsPerTenant {
		return nil, problem(client.Busy, "too many large bodies are under way; try again")
	}
	if u.tenant == nil {
		u.tenant = map[string]int{}
	}
	u.all++
	u.tenant[tenant]++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.all--
		if u.tenant[tenant]--; u.tenant[tenant] == 0 {
			delete(u.tenant, tenant)
		}
	}, nil
}
