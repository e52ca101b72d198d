package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/internal/ownfile"
	"github.com/tracon-go/tracon/internal/telemetry"
	"github.com/tracon-go/tracon/observe"
	"github.com/tracon-go/tracon/serve/limit"
	"github.com/tracon-go/tracon/serve/oidc"
	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/store"
)

// Names in the data folder of a server.
const (
	SocketFile = "tracon.sock" // where the verbs find it
	lockFile   = "serve.lock"
)

// DefaultDrain is how long runs may go on when a server is told to stop.
const DefaultDrain = 30 * time.Second

// Times of looking after itself.
const (
	lookEvery = time.Second      // whether the store must be opened again
	openAgain = 30 * time.Second // the longest wait between two tries
	lastWords = 5 * time.Second  // for answers and spans at the end
	hurryTime = 20 * time.Second // for the endings of runs that were stopped in a hurry
)

// ErrServing: another server has the data folder.
var ErrServing = errors.New("another `tracon serve` has this data folder; stop it, or name another with --data")

// ErrHurried: the server was told twice to stop, and not every ending could be written in
// time. The next start writes them, as unknown.
var ErrHurried = errors.New("told twice to stop, and the endings of some runs could not be written in time; the next start writes them as unknown")

// ServeOptions are what a server needs besides its configuration. Load, Logger and
// Started are required.
type ServeOptions struct {
	Load    func() (*config.Config, error) // reads the configuration again
	Reload  <-chan os.Signal               // each asks for a reload; nil: nobody does
	Hurry   <-chan struct{}                // closed when it is told to stop again: runs are stopped at once; nil: never
	Logger  *slog.Logger
	Version string
	Started func(Started) error // called once, when everything listens
}

// Started is what a server tells when it serves.
type Started struct {
	Address string         // of the API, with its scheme; empty: it has the socket alone
	Metrics string         // of /metrics without a key; empty: there is none
	Socket  string         // path; empty where the system has none
	First   *access.Secret // of the first key of the platform, which was made just now; nobody can have it again
}

// A server is one process that serves.
type server struct {
	o        ServeOptions
	log      *slog.Logger
	notify   notify
	tel      *telemetry.Telemetry
	observer *observe.Observer
	runs     *runs.Runs // of all generations
	doors    doors
	failures *limit.Failures // of credentials, at all doors

	now      atomic.Pointer[generation] // nil while the store cannot be opened
	stopping atomic.Bool
	life     context.Context // of generations that are retired
	endLife  context.CancelFunc
	retiring sync.WaitGroup

	// These are the main goroutine's alone.
	c       *config.Config
	retired []retired // generations before now, the oldest first
	waits   bool      // a reload, for one of them to end
}

// Serve serves until ctx is done, then stops as it should: it takes no more runs,
// waits for those under way as long as the configuration says, stops the others,
// and returns when the ending of each is written.
//
// # Errors
//
// *UnsafeError, ErrServing, and what kept it from starting; after that, only that
// something could not be written at the end.
func Serve(ctx context.Context, c *config.Config, o ServeOptions) (err error) {
	if err := checkServe(c, time.Now()); err != nil {
		return err
	}
	if err := ownfile.MakeFolder(c.Data); err != nil {
		return fmt.Errorf("the data folder: %w; make it, or name another with --data", err)
	}
	lock, err := ownfile.TakeSigned(ctx, filepath.Join(c.Data, lockFile))
	if err != nil {
		return fmt.Errorf("the data folder: %w", err)
	}
	if lock == nil {
		return ErrServing
	}
	s := &server{o: o, log: o.Logger, notify: newNotify(), failures: limit.NewFailures(o.Logger), c: c}
	s.life, s.endLife = context.WithCancel(context.Background())
	defer s.endLife()
	defer func() {
		if !errors.Is(err, ErrHurried) { // else the house is open still: the end of the process gives it back
			err = errors.Join(err, lock.Close())
		}
	}()
	if err := s.telemetry(ctx); err != nil {
		return err
	}
	defer s.lastSpans()
	if s.runs, err = runs.New(s, runs.Limits{}); err != nil {
		return err
	}
	first, err := s.start(ctx)
	if err != nil {
		return errors.Join(err, s.stop(ctx))
	}
	started := s.doors.started
	started.First = first
	if err := o.Started(started); err != nil {
		return errors.Join(err, s.stop(ctx))
	}
	s.notify.tell("READY=1")
	s.log.Info("serving", "address", started.Address, "socket", started.Socket, "version", o.Version)
	s.look(ctx)
	return s.stop(ctx)
}

// lastSpans sends what waits for a collector; one that is gone is told in the log.
func (s *server) lastSpans() {
	ctx, stop := context.WithTimeout(context.Background(), lastWords)
	defer stop()
	_ = s.tel.Close(ctx)
}

func (s *server) telemetry(ctx context.Context) (err error) {
	s.tel, err = telemetry.New(ctx, telemetry.Config{Version: s.o.Version, Instance: id.New(), Traces: s.c.Serve.Traces, Share: s.c.Serve.TracesShare, Logger: s.log})
	if err != nil {
		return err
	}
	s.observer, err = observe.New(observe.Config{Traces: s.tel.Traces, Metrics: s.tel.Metrics, Names: s.c.Serve.MetricNames})
	if err != nil {
		return err
	}
	_, err = s.observer.Watch(observe.State{Stats: s.stats, Ready: s.ready})
	return err
}

// start opens the house and the doors, and makes the first key.
func (s *server) start(ctx context.Context) (first *access.Secret, err error) {
	if err := s.doors.open(s, s.c); err != nil {
		return nil, err
	}
	p, err := s.prepare(ctx, s.c)
	if err != nil {
		return nil, err
	}
	s.put(p)
	_, secret, made, err := p.g.house.Admin.FirstKey(ctx)
	if err != nil {
		return nil, err
	}
	s.doors.serve()
	if made {
		first = &secret
	}
	return first, nil
}

// A plan is everything that one reading of the configuration gives, before anything
// of it holds.
type plan struct {
	c     *config.Config
	g     *generation
	doors func() // has the doors as it says
}

// prepare makes a plan. Nothing holds of one that fails.
func (s *server) prepare(ctx context.Context, c *config.Config) (p plan, err error) {
	c.Fleet.Within = true
	p.c = c
	if p.doors, err = s.doors.prepare(c); err != nil {
		return p, err
	}
	var tokens *oidc.Verifier
	if c.Serve.OIDCIssuer != "" {
		if tokens, err = newOIDC(c); err != nil {
			return p, err
		}
	}
	p.g, err = s.generation(ctx, c, tokens)
	return p, err
}

// put has the plan hold, and sends the generation before it into retirement.
func (s *server) put(p plan) {
	before := s.now.Swap(p.g)
	p.doors()
	s.c = p.c
	if before != nil {
		s.retire(before)
	}
}

// look looks after itself until ctx is done: it reloads when it is told to, and opens
// a store again that takes no more changes until somebody does.
func (s *server) look(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-s.o.Reload:
			s.reload(ctx)
		case <-tick.C:
			if err := s.lost(ctx); err != nil {
				s.reopen(ctx, err)
			} else if s.owes(ctx) {
				s.renew(ctx)
			} else if s.waits && s.old() < maxOld {
				s.reload(ctx)
			}
		}
	}
}

// lost says why the store must be opened again, or nil. A store that cannot be
// reached is no such thing: it is reached again by itself.
func (s *server) lost(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, lastWords)
	defer stop()
	err := s.now.Load().house.Store.Ready(ctx)
	if errors.Is(err, store.ErrPoisoned) || errors.Is(err, store.ErrFenced) {
		return err
	}
	return nil
}

// owes reports whether endings of calls could not be written, and can be now.
func (s *server) owes(ctx context.Context) bool {
	g := s.now.Load()
	if g.runner.Stats().Unwritten == 0 || s.old() > 0 {
		return false
	}
	ctx, stop := context.WithTimeout(ctx, lastWords)
	defer stop()
	return g.house.Store.Ready(ctx) == nil
}

// renew opens another house beside the one that owes endings, which ends when its
// runs have. It then counts as one that died, so that those endings are written, as
// unknown: on PostgreSQL by whichever host is first, else when the next house opens.
func (s *server) renew(ctx context.Context) {
	p, err := s.prepare(ctx, s.c)
	if err != nil {
		s.log.Error("endings are owed, and another house cannot be opened yet", "err", err)
		return
	}
	s.put(p)
	s.log.Warn("endings of calls could not be written while the store could not be reached; they are written as unknown")
}

// reopen closes the house whose store takes no more changes, and opens it again as
// often as it takes. The endings that could not be written are written by the house
// that is opened, as unknown.
func (s *server) reopen(ctx context.Context, why error) {
	s.log.Error("the store takes no more changes, and is opened again", "err", why)
	now, stop := context.WithCancel(ctx)
	stop()
	if err := s.now.Swap(nil).end(now); err != nil {
		s.log.Warn("the store did not close well, as was to be expected", "err", err)
	}
	wait := lookEvery
	for ctx.Err() == nil {
		p, err := s.prepare(ctx, s.c)
		if err == nil {
			s.put(p)
			s.log.Info("the store was opened again")
			return
		}
		s.log.Error("the store cannot be opened yet", "err", err, "again", wait.String())
		select {
		case <-ctx.Done():
		case <-s.o.Reload:
			s.rereadOnly()
		case <-time.After(wait):
		}
		wait = min(2*wait, openAgain)
	}
}

// ready says why no run can be started, or nil.
func (s *server) ready(ctx context.Context) error {
	if s.stopping.Load() {
		return errStops
	}
	g := s.inside()
	if g == nil {
		return errors.New("the store is being opened again")
	}
	defer g.leave()
	return g.house.Ready(ctx)
}

func (s *server) stats() tracon.Stats {
	g := s.inside()
	if g == nil {
		return tracon.Stats{}
	}
	defer g.leave()
	return g.runner.Stats()
}

// Run implements runs.Runner by the runner that there is.
func (s *server) Run(ctx context.Context, call gate.Call) (tracon.Outcome, error) {
	g := s.inside()
	if g == nil {
		call.Live.Close()
		return tracon.Outcome{}, tracon.ErrClosed
	}
	defer g.leave()
	return g.runner.Run(ctx, call)
}

// stop ends everything in its order. When somebody is in a hurry, runs are stopped at
// once, and their endings have a time.
func (s *server) stop(ctx context.Context) error {
	s.stopping.Store(true)
	s.notify.tell("STOPPING=1")
	s.log.Info("stopping", "drain", s.drain().String())
	until, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.drain())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.end(until) }()
	select {
	case err := <-ended:
		return err
	case <-s.o.Hurry:
	}
	s.log.Warn("told again to stop; runs are stopped now", "wait", hurryTime.String())
	cancel()
	select {
	case err := <-ended:
		return err
	case <-time.After(hurryTime):
		return ErrHurried
	}
}

// drain is how long runs may go on.
func (s *server) drain() time.Duration { return cmp.Or(s.c.Serve.Drain, DefaultDrain) }

// end waits for the runs, and stops those that go on when until is done.
func (s *server) end(until context.Context) error {
	closed := s.doors.close()
	context.AfterFunc(until, s.endLife)
	errs := []error{s.runs.Close(until)}
	closed()
	if g := s.now.Swap(nil); g != nil {
		errs = append(errs, g.end(until))
	}
	s.retiring.Wait()
	err := errors.Join(errs...)
	if err == nil {
		s.log.Info("stopped")
	}
	return err
}
