package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/handover"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/wire"
)

// Name is the executor's name in the log.
const Name = "fleet"

// Defaults of [Config] and [Joining].
const (
	DefaultWait  = 30 * time.Second
	DefaultBeat  = 2 * time.Second
	DefaultLost  = 10 * time.Second
	DefaultReply = 5 * time.Second
)

// A Config says where runs go. The zero Config has no pool: nothing runs.
type Config struct {
	Pools []Pool // required: a tenant without a pool runs nothing

	// Tier is the one that a runner must stand at. Required. The runners prove it to
	// themselves and say so, which makes it a claim.
	Tier grant.Tier

	// Sign makes the ticket by which the runner of that name knows that the gates of
	// this host said yes. Nil: runs go without, which a runner that joined refuses
	// unless it was told otherwise.
	Sign func(run wire.Run, runner string) (string, error)

	Wait  time.Duration // how long a run waits for a place at a runner, and no longer than it may run; zero: DefaultWait
	Lost  time.Duration // how long a runner is not heard of before it counts as gone; zero: DefaultLost
	Reply time.Duration // how long one acknowledgement is waited for; zero: DefaultReply

	Logger *slog.Logger // nil: nothing is told
}

// A Pool is some runners and the tenants whose runs they take: an account of the
// NATS server.
type Pool struct {
	Name    string // required
	Link    Link
	Label   string   // that a runner must have; empty: any
	Tenants []string // whose runs go there
	Others  bool     // and those of every tenant that no other pool names
}

// An Executor sends scripts to a fleet. Make one with [New]. It is safe for
// concurrent use.
type Executor struct {
	c     Config
	pools []*pool
	by    map[string]*pool // by tenant
	rest  *pool            // of every other tenant; nil: none
	once  sync.Once
}

var (
	_ executor.Executor = (*Executor)(nil)
	_ executor.Posturer = (*Executor)(nil)
)

type pool struct {
	Pool
	conn  *nats.Conn
	amiss atomic.Pointer[error] // why the server was not reached last; nil: it always was
}

func (p *pool) setAmiss(err error) { p.amiss.Store(&err) }

// New links to every pool. A server that cannot be reached yet is no error: until
// it is, runs are refused as not started.
func New(c Config) (*Executor, error) {
	c.Wait, c.Lost, c.Reply = cmp.Or(c.Wait, DefaultWait), cmp.Or(c.Lost, DefaultLost), cmp.Or(c.Reply, DefaultReply)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	e := &Executor{c: c, by: map[string]*pool{}}
	if !c.Tier.Valid() {
		return nil, fmt.Errorf("fleet: the tier %q is none", c.Tier)
	}
	if len(c.Pools) == 0 {
		return nil, errors.New("fleet: there is no pool of runners")
	}
	for _, p := range c.Pools {
		if err := e.add(p); err != nil {
			return nil, errors.Join(fmt.Errorf("fleet: pool %q: %w", p.Name, err), e.Close())
		}
	}
	return e, nil
}

func (e *Executor) add(p Pool) (err error) {
	added := &pool{Pool: p}
	switch {
	case p.Name == "" || len(p.Name) > wire.MaxName:
		return errors.New("it has no name")
	case slices.ContainsFunc(e.pools, func(o *pool) bool { return o.Name == p.Name }):
		return errors.New("it stands twice")
	case p.Others && e.rest != nil:
		return errors.New("two pools are for every other tenant")
	case !p.Others && len(p.Tenants) == 0:
		return errors.New("it is for no tenant")
	}
	for _, t := range p.Tenants {
		if e.by[t] != nil {
			return fmt.Errorf("tenant %q has two pools", t)
		}
		e.by[t] = added
	}
	if added.conn, err = p.Link.dial("tracon", hostInbox, e.c.Logger, added.setAmiss); err != nil {
		return err
	}
	if p.Others {
		e.rest = added
	}
	e.pools = append(e.pools, added)
	return nil
}

// Close ends the links. Runs under way end as unknown.
func (e *Executor) Close() error {
	e.once.Do(func() {
		for _, p := range e.pools {
			p.conn.Close()
		}
	})
	return nil
}

// Posture tells the tier that runners are asked for. Nobody here proved it.
func (e *Executor) Posture(context.Context) (executor.Posture, error) {
	return executor.Posture{Executor: Name, Tier: e.c.Tier, Claimed: true}, nil
}

// Execute implements [executor.Executor]. The run goes to one runner of the
// tenant's pool, at most once.
//
// # Errors
//
// executor.ErrInvalidRequest. Those of this package that wrap
// executor.ErrUnavailable before the run begins; those that wrap executor.ErrUnknown
// after it. An answer that does not hold wraps handover.ErrAnswer. When ctx is done
// its cause, joined with ErrUnconfirmed where the runner did not say that the script
// was stopped.
func (e *Executor) Execute(ctx context.Context, req executor.Request) (executor.Result, error) {
	if !req.Valid() {
		return executor.Result{}, executor.ErrInvalidRequest
	}
	if ctx.Err() != nil {
		return executor.Result{}, context.Cause(ctx)
	}
	p := cmp.Or(e.by[req.Tenant()], e.rest)
	if p == nil {
		return executor.Result{}, ErrNoPool
	}
	run, err := handover.Run(req, 0)
	if err != nil {
		return executor.Result{}, err
	}
	c := &call{e: e, pool: p, req: req, run: run}
	answer, err := c.make(ctx)
	if err != nil {
		return executor.Result{}, err
	}
	res, err := handover.Result(req, answer)
	if err == nil && !grant.Tier(answer.More.Tier).Meets(e.c.Tier) { // M09
		return executor.Result{}, fmt.Errorf("%w: it ran at the tier %.40q, and %q was asked for", handover.ErrAnswer, answer.More.Tier, e.c.Tier)
	}
	return res, err
}
