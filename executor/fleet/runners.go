package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tracon-go/tracon/wire"
)

// A Runner is one that answered: a process that joined a pool.
type Runner struct {
	Pool   string
	Member string // tells two processes of one name apart
	Info   wire.Info
}

// quiet is how long nobody has answered before everybody has.
const quiet = 300 * time.Millisecond

// A Seen is what a look at one pool came to.
type Seen struct {
	Pool    Pool     // without its link
	Runners []Runner // those that answered, in the order of their names
	Err     error    // why nobody could be asked; nil: everybody was
}

// Look asks every pool who is there. Whoever answers is asked again at its name, where
// no other runner hears: a name is not a runner's word.
func (e *Executor) Look(ctx context.Context) []Seen {
	list := make([]Seen, len(e.pools))
	var all sync.WaitGroup
	for i, p := range e.pools {
		list[i].Pool = p.Pool
		list[i].Pool.Link = Link{}
		all.Go(func() {
			list[i].Runners, list[i].Err = p.who(ctx)
			slices.SortFunc(list[i].Runners, func(a, b Runner) int {
				return cmp.Or(cmp.Compare(a.Info.Name, b.Info.Name), cmp.Compare(a.Member, b.Member))
			})
		})
	}
	all.Wait()
	return list
}

// Runners is Look for those that answered in all pools, by the pools' names.
func (e *Executor) Runners(ctx context.Context) ([]Runner, error) {
	var all []Runner
	for _, s := range e.Look(ctx) {
		if s.Err != nil {
			return nil, fmt.Errorf("fleet: pool %q: %w", s.Pool.Name, s.Err)
		}
		all = append(all, s.Runners...)
	}
	slices.SortStableFunc(all, func(a, b Runner) int { return cmp.Compare(a.Pool, b.Pool) })
	return all, nil
}

func (p *pool) who(ctx context.Context) ([]Runner, error) {
	sub, err := p.conn.SubscribeSync(p.conn.NewInbox())
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := p.conn.PublishRequest(whoSubject(p.Name), sub.Subject, nil); err != nil {
		return nil, err
	}
	flush, stop := context.WithTimeout(ctx, DefaultReply)
	defer stop()
	if err := p.conn.FlushWithContext(flush); err != nil {
		if why := p.amiss.Load(); why != nil && !p.conn.IsConnected() {
			err = *why
		}
		return nil, fmt.Errorf("the server is not reached: %w", err)
	}
	var said []Runner
	for {
		wait, stop := context.WithTimeout(ctx, quiet)
		m, err := sub.NextMsgWithContext(wait)
		stop()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
			return p.verify(ctx, said)
		case err != nil:
			return nil, err
		}
		info, err := wire.ReadInfo(bytes.NewReader(m.Data))
		r := Runner{p.Name, m.Header.Get(headMember), info}
		same := func(o Runner) bool { return o.Info.Name == info.Name && o.Member == r.Member }
		if err != nil || !named(info.Name, r.Member) || slices.ContainsFunc(said, same) {
			continue // it says nothing that can be read, or nothing new
		}
		said = append(said, r)
	}
}

// verify returns those that answer at the names that were said, with what they tell
// there. One that is silent is not there.
func (p *pool) verify(ctx context.Context, said []Runner) ([]Runner, error) {
	one, stop := context.WithTimeout(ctx, DefaultReply)
	defer stop()
	var (
		mu    sync.Mutex
		found []Runner
		all   sync.WaitGroup
	)
	for _, r := range said {
		all.Go(func() {
			m, err := p.conn.RequestWithContext(one, atSubject(p.Name, r.Info.Name, token(r.Member))+".who", nil)
			if err != nil {
				return
			}
			info, err := wire.ReadInfo(bytes.NewReader(m.Data))
			if err != nil || info.Name != r.Info.Name {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, Runner{p.Name, r.Member, info})
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return found, nil
}

// ErrNotThere is wrapped when no runner of the name answers.
var ErrNotThere = errors.New("fleet: there is no such runner")

// Drain has every runner of the name take no more runs from its pool, and returns
// how many there are. Those under way go on. It holds until the runner is started
// again. One that left meanwhile is not there; one that does not answer keeps no other
// from being drained, and is in the error.
func (e *Executor) Drain(ctx context.Context, name string) (int, error) {
	all, err := e.Runners(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	var errs []error
	for _, r := range all {
		if r.Info.Name != name {
			continue
		}
		i := slices.IndexFunc(e.pools, func(p *pool) bool { return p.Name == r.Pool })
		one, stop := context.WithTimeout(ctx, e.c.Reply)
		_, err := e.pools[i].conn.RequestWithContext(one, atSubject(r.Pool, name, token(r.Member))+".drain", nil)
		stop()
		switch {
		case err == nil:
			n++
		case !errors.Is(err, nats.ErrNoResponders):
			errs = append(errs, fmt.Errorf("fleet: runner %q in pool %q: %w", name, r.Pool, err))
		}
	}
	if n == 0 && errs == nil {
		return 0, fmt.Errorf("%w: %q", ErrNotThere, name)
	}
	return n, errors.Join(errs...)
}
