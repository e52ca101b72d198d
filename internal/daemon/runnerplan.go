package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/serve/limit"
	"github.com/tracon-go/tracon/serve/runnerapi"
	"github.com/tracon-go/tracon/wire/ticket"
)

// A runnerPlan is everything that one reading of the configuration gives a runner, before
// anything of it holds.
type runnerPlan struct {
	c         *config.Config
	reception gate.Reception
	keys      ticketKeys
	tls       *tls.Config // nil: there is no TLS
	limits    *limit.Limits
	link      fleet.Link    // the zero Link: it joins no fleet
	member    *fleet.Member // nil until it is joined, and where it joins none
}

// A runnerServer is one process that serves runs. Its plan is what requests go by, and
// changes as a whole.
type runnerServer struct {
	h       *House
	o       RunnerOptions
	notify  notify
	now     atomic.Pointer[runnerPlan]
	tickets *ticket.Verifier
	service *runnerapi.Service
	started time.Time // what a ticket is signed after that holds

	life     context.Context // of members before the one that there is
	endLife  context.CancelFunc
	retiring sync.WaitGroup
}

// Reception implements [gate.Receptions].
func (s *runnerServer) Reception(context.Context) (gate.Reception, error) {
	return s.now.Load().reception, nil
}

// Enter implements [runnerapi.Limiter].
func (s *runnerServer) Enter(ctx context.Context, p access.Principal, run bool) (leave func(), after time.Duration) {
	return s.now.Load().limits.Enter(ctx, p, run)
}

func (s *runnerServer) clients() map[string][]string { return s.now.Load().c.Runner.Clients }

// serverTLS asks the plan at each handshake.
func (s *runnerServer) serverTLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.now.Load().tls, nil }}
}

// prepare makes a plan. Nothing holds of one that fails.
func (s *runnerServer) prepare(ctx context.Context, c *config.Config) (p *runnerPlan, err error) {
	p = &runnerPlan{c: c}
	if p.reception, err = s.h.reception(ctx, c); err != nil {
		return nil, err
	}
	if p.keys, err = readTicketKeys(c); err != nil {
		return nil, err
	}
	if c.Serve.TLSCert != "" {
		if p.tls, err = runnerTLS(c); err != nil {
			return nil, err
		}
		p.tls.NextProtos = []string{"h2", "http/1.1"}
	}
	if c.Fleet.Join != "" {
		if p.link, err = fleetLink(c.Fleet, nil); err != nil {
			return nil, fmt.Errorf("joining the fleet: %w", err)
		}
	}
	p.limits = limit.New(limit.Config{KeyRate: c.Serve.KeyRate, TenantRate: c.Serve.TenantRate, RunRate: c.Serve.RunRate, AtOnce: c.Serve.AtOnce})
	return p, nil
}

// sameFleet reports whether a member by p does what one by o does.
func (p *runnerPlan) sameFleet(o *runnerPlan) bool {
	return reflect.DeepEqual(p.c.Fleet, o.c.Fleet) && slices.Equal(p.link.Seed, o.link.Seed) && p.link.CAs.Equal(o.link.CAs) &&
		slices.Equal(slices.Sorted(maps.Keys(p.reception.Runtimes)), slices.Sorted(maps.Keys(o.reception.Runtimes))) &&
		p.reception.Content == o.reception.Content
}

// join has the runner join the fleet as p says, if it says so.
func (s *runnerServer) join(ctx context.Context, p *runnerPlan) (err error) {
	if p.c.Fleet.Join == "" {
		return nil
	}
	if p.member, err = joinFleet(ctx, p, s); err != nil {
		return fmt.Errorf("joining the fleet: %w", err)
	}
	return nil
}

// reload reads the configuration again. It holds as a whole or not at all: what is wrong
// with it is told to the log, and the one before stays.
func (s *runnerServer) reload(ctx context.Context) {
	s.notify.tell("RELOADING=1")
	defer s.notify.tell("READY=1")
	if err := s.reread(ctx); err != nil {
		s.o.Logger.Error("not reloaded; the configuration before stays", "err", err)
		return
	}
	s.o.Logger.Info("reloaded", "enabled", s.now.Load().reception.Enabled, "runtimes", slices.Sorted(maps.Keys(s.now.Load().reception.Runtimes)))
}

func (s *runnerServer) reread(ctx context.Context) error {
	read, err := s.o.Load()
	if err != nil {
		return err
	}
	before := s.now.Load()
	c, kept := read.RunnerReload(before.c)
	if err := checkRunner(c, time.Now(), true); err != nil {
		return err
	}
	p, err := s.prepare(ctx, c)
	if err != nil {
		return err
	}
	if p.sameFleet(before) {
		p.member = before.member
	} else if err := s.join(ctx, p); err != nil {
		return err
	}
	if err := s.tickets.SetKeys(p.keys); err != nil {
		return err
	}
	s.now.Store(p)
	if old := before.member; old != nil && old != p.member {
		if p.member != nil && old.Drained() {
			p.member.Drain() // an operator's word holds until the next start
		}
		s.retiring.Go(func() {
			if err := old.Close(s.life); err != nil {
				s.o.Logger.Error("the membership before the reload did not end well", "err", err)
			}
		})
	}
	if len(kept) > 0 {
		s.o.Logger.Warn("these settings changed and hold only after a restart", "settings", kept)
	}
	return nil
}

// look reloads when it is told to, until ctx is done.
func (s *runnerServer) look(ctx context.Context, failed <-chan error) error {
	for {
		select {
		case err := <-failed:
			return fmt.Errorf("the listener of the runner: %w", err)
		case <-ctx.Done():
			return nil
		case <-s.o.Reload:
			s.reload(ctx)
		}
	}
}

// RunnerOptions are what a runner service needs besides its configuration. Load, Logger
// and Started are required.
type RunnerOptions struct {
	Load    func() (*config.Config, error) // reads the configuration again
	Reload  <-chan os.Signal               // each asks for a reload; nil: nobody does
	Hurry   <-chan struct{}                // closed when it is told to stop again: runs are stopped at once; nil: never
	Logger  *slog.Logger
	Version string
	Started func(address string) error // called once, when it listens
}
