package daemon

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/serve/limit"
	"github.com/tracon-go/tracon/serve/mcpserver"
	"github.com/tracon-go/tracon/serve/oidc"
)

// retireTime is how long requests may go on in a generation that is closed by force.
const retireTime = 10 * time.Second

// A generation is one house with its doors' handler, as one reading of the
// configuration says. A server has one at a time, and none while its store cannot be
// opened; those before it live on until the last of their requests and runs has ended.
type generation struct {
	house   *House
	runner  *tracon.Runner
	handler http.Handler
	mcp     *mcpserver.Handler

	mu      sync.Mutex
	inside  int
	retired bool
	idle    chan struct{} // closed when it is retired and nobody is inside
}

// generation opens the house that c tells of, starts it and puts the doors before it.
func (s *server) generation(ctx context.Context, c *config.Config, tokens *oidc.Verifier) (_ *generation, err error) {
	h, err := Open(ctx, c, s.log)
	if err != nil {
		return nil, err
	}
	g := &generation{house: h, idle: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close(context.WithoutCancel(ctx)))
		}
	}()
	h.Observer = s.observer
	h.Log.Watch(s.observer.Append)
	if err := h.AddRoots(); err != nil {
		return nil, err
	}
	if g.runner, err = h.Start(ctx); err != nil {
		return nil, err
	}
	auth, lim := newWho(h.Store, tokens, s.failures), operators{limits(c, h.Store)}
	if g.mcp, err = s.mcp(h, auth, lim); err != nil {
		return nil, err
	}
	g.handler, err = s.api(h, g.runner, auth, lim, g.mcp)
	return g, err
}

// limits are those of c, and of each tenant.
func limits(c *config.Config, book access.Finder) *limit.Limits {
	return limit.New(limit.Config{
		KeyRate: c.Serve.KeyRate, TenantRate: c.Serve.TenantRate, RunRate: c.Serve.RunRate, AtOnce: c.Serve.AtOnce,
		Tenant: func(ctx context.Context, name string) (access.Rates, error) {
			t, _, err := book.TenantAt(ctx, name)
			return t.Rates, err
		}})
}

// enter keeps g open until leave, and reports false where it is retired.
func (g *generation) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.retired {
		return false
	}
	g.inside++
	return true
}

// hold keeps g open until release for a run that begins inside it, retired or not: what
// came of the run is kept in g's store when the runner is done with it. Of one that
// nobody is inside any more nothing is held.
func (g *generation) hold() (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.retired && g.inside == 0 {
		return func() {}
	}
	g.inside++
	return g.leave
}

func (g *generation) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside--; g.retired && g.inside == 0 {
		close(g.idle)
	}
}

// retire lets nobody in any more. What it returns is closed when nobody is inside.
func (g *generation) retire() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.retired {
		if g.retired = true; g.inside == 0 {
			close(g.idle)
		}
	}
	return g.idle
}

// end retires g and closes it. When ctx is done first, its runs are stopped; requests
// that go on even so are left behind after a while.
func (g *generation) end(ctx context.Context) error {
	idle := g.retire()
	g.mcp.Retire() // else clients that only listen would stay inside
	select {
	case <-idle:
	case <-ctx.Done():
		stopped := g.house.Stop(ctx) // the runs, whose endings it writes
		select {
		case <-idle:
		case <-time.After(retireTime):
		}
		return errors.Join(stopped, g.house.Close(context.WithoutCancel(ctx)))
	}
	return g.house.Close(context.WithoutCancel(ctx))
}
