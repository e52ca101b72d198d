package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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

// Runners asks every pool who is there, and returns those that answered, in the
// order of their pools and names.
func (e *Executor) Runners(ctx context.Context) ([]Runner, error) {
	var all []Runner
	for _, p := range e.pools {
		found, err := p.who(ctx)
		if err != nil {
			return nil, fmt.Errorf("fleet: pool %q: %w", p.Name, err)
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b Runner) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Info.Name, b.Info.Name), cmp.Compare(a.Member, b.Member))
	})
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
		return nil, fmt.Errorf("the server is not reached: %w", err)
	}
	var found []Runner
	for {
		wait, stop := context.WithTimeout(ctx, quiet)
		m, err := sub.NextMsgWithContext(wait)
		stop()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
			return found, nil
		case err != nil:
			return nil, err
		}
		info, err := wire.ReadInfo(bytes.NewReader(m.Data))
		if err != nil || info.Name == "" {
			continue // it says nothing that can be read
		}
		found = append(found, Runner{p.Name, m.Header.Get(headMember), info})
	}
}

// ErrNotThere is wrapped when no runner of the name answers.
var ErrNotThere = errors.New("fleet: there is no such runner")

// Drain has every runner of the name take no more runs from its pool, and returns
// how many there are. Those under way go on. It holds until the runner is started
// again.
func (e *Executor) Drain(ctx context.Context, name string) (int, error) {
	all, err := e.Runners(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, r := range all {
		if r.Info.Name != name {
			continue
		}
		i := slices.IndexFunc(e.pools, func(p *pool) bool { return p.Name == r.Pool })
		one, stop := context.WithTimeout(ctx, e.c.Reply)
		_, err := e.pools[i].conn.RequestWithContext(one, atSubject(r.Pool, name, token(r.Member))+".drain", nil)
		stop()
		if err != nil {
			return n, fmt.Errorf("fleet: runner %q: %w", name, err)
		}
		n++
	}
	if n == 0 {
		return 0, fmt.Errorf("%w: %q", ErrNotThere, name)
	}
	return n, nil
}
