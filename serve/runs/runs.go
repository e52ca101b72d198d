package runs

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/id"
)

// ErrNotFound: no such run of the tenant's is here. Its record may tell of it.
var ErrNotFound = errors.New("runs: not found")

// errStopped is why the runs of a host that stops are cancelled.
var errStopped = errors.New("the host stops")

// A Runner runs calls; *[tracon.Runner] does.
type Runner interface {
	Run(ctx context.Context, call gate.Call) (tracon.Outcome, error)
}

// Runs are the runs of one process. They are safe for concurrent use.
type Runs struct {
	runner Runner
	limits Limits
	out    sync.WaitGroup // runs that are under way

	mu        sync.Mutex
	closed    bool
	tenants   map[string]*share // those that have a run or a follower
	kept      *list.List        // of *run, in the order of their ends
	bytes     int64             // of those kept
	followers int
	timer     *time.Timer // forgets what is too old; nil where nothing is kept
}

// share is what one tenant has.
type share struct {
	runs      map[string]*run // by id: under way, and kept
	kept      *list.List      // of *run, in the order of their ends
	bytes     int64
	followers int
}

// New returns Runs over runner.
func New(runner Runner, l Limits) (*Runs, error) {
	l, err := l.orDefaults()
	if err != nil {
		return nil, err
	}
	if runner == nil {
		return nil, errors.New("runs: New needs a runner")
	}
	return &Runs{runner: runner, limits: l, tenants: map[string]*share{}, kept: list.New()}, nil
}

// Start begins call and returns once every gate has admitted it; from then on it
// runs on by itself, whatever becomes of ctx. Until then the end of ctx cancels
// it. A call without an id gets one; its Live is replaced.
//
// # Errors
//
// What the runner says of a call that was not admitted, or not run at all: nothing
// is kept of it. With any error the View has the call's id alone.
func (r *Runs) Start(ctx context.Context, call gate.Call) (View, error) {
	if ctx.Err() != nil {
		return View{ID: call.ID}, fmt.Errorf("%w: %w", tracon.ErrCancelled, context.Cause(ctx))
	}
	run, err := r.begin(context.WithoutCancel(ctx), &call)
	if err != nil {
		return View{ID: call.ID}, err
	}
	select {
	case <-run.call.Live.Admitted():
	case <-run.done:
	case <-ctx.Done():
		run.stop(context.Cause(ctx))
		<-run.done
	}
	if !run.admitted() {
		return View{ID: call.ID}, run.err
	}
	return run.view(), nil
}

// Do begins call and waits for its end. When ctx is done first, the run is
// cancelled. It returns the view of an admitted call, with what the runner said
// of it in it, and an error as Start does for any other.
func (r *Runs) Do(ctx context.Context, call gate.Call) (View, error) {
	run, err := r.begin(ctx, &call)
	if err != nil {
		return View{ID: call.ID}, err
	}
	<-run.done // the runner answers at once when ctx is done
	if !run.admitted() {
		return View{ID: call.ID}, run.err
	}
	return run.view(), nil
}

// begin starts what executes the call.
func (r *Runs) begin(ctx context.Context, call *gate.Call) (*run, error) {
	if call.ID == "" {
		call.ID = id.New()
	}
	call.Live = gate.NewLive(0)
	known := *call
	known.Arguments, known.Inputs = nil, nil
	ctx, stop := context.WithCancelCause(ctx)
	n := &run{call: known, begun: time.Now(), stop: stop, feed: newFeed(r.limits.LiveBytes), done: make(chan struct{})}
	if err := r.enter(n); err != nil {
		stop(err)
		return nil, err
	}
	whole := *call
	go func() {
		defer r.out.Done()
		defer stop(nil)
		n.execute(ctx, r.runner, whole)
		r.keep(n)
	}()
	return n, nil
}

func (r *Runs) enter(n *run) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return tracon.ErrClosed
	}
	s := r.share(n.call.Tenant)
	if s.runs[n.call.ID] != nil {
		return fmt.Errorf("runs: there is a run %s", n.call.ID)
	}
	s.runs[n.call.ID] = n
	r.out.Add(1)
	return nil
}

// share returns what the tenant has; release forgets it where that is nothing.
func (r *Runs) share(tenant string) *share {
	s := r.tenants[tenant]
	if s == nil {
		s = &share{runs: map[string]*run{}, kept: list.New()}
		r.tenants[tenant] = s
	}
	return s
}

func (r *Runs) release(tenant string) {
	if s := r.tenants[tenant]; s != nil && len(s.runs) == 0 && s.followers == 0 {
		delete(r.tenants, tenant)
	}
}

// find returns the tenant's admitted run.
func (r *Runs) find(tenant, id string) (*run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.tenants[tenant]; s != nil {
		if n := s.runs[id]; n != nil && n.admitted() {
			return n, nil
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrNotFound, id)
}

// Run returns what is known of the tenant's run, or ErrNotFound.
func (r *Runs) Run(tenant, id string) (View, error) {
	n, err := r.find(tenant, id)
	if err != nil {
		return View{}, err
	}
	return n.view(), nil
}

// Wait returns the tenant's run once it has ended. The run goes on when ctx is
// done.
//
// # Errors
//
// ErrNotFound, and the cause of ctx.
func (r *Runs) Wait(ctx context.Context, tenant, id string) (View, error) {
	n, err := r.find(tenant, id)
	if err != nil {
		return View{}, err
	}
	select {
	case <-n.done:
		return n.view(), nil
	case <-ctx.Done():
		return View{}, context.Cause(ctx)
	}
}

// List returns the tenant's runs that are here, the newest first: at most limit
// of those with an id below before, where that is not empty, and of the skill,
// where that is not.
func (r *Runs) List(tenant, skill, before string, limit int) []View {
	var found []*run
	r.mu.Lock()
	if s := r.tenants[tenant]; s != nil {
		for id, n := range s.runs {
			if n.admitted() && (before == "" || id < before) && (skill == "" || n.call.Skill == skill) {
				found = append(found, n)
			}
		}
	}
	r.mu.Unlock()
	slices.SortFunc(found, func(a, b *run) int { return strings.Compare(b.call.ID, a.call.ID) })
	views := make([]View, 0, min(len(found), max(limit, 0)))
	for _, n := range found[:cap(views)] {
		views = append(views, n.view())
	}
	return views
}

// Cancel stops the tenant's run on behalf of by, whom the log's ending then
// names, and returns what is known of it. A run that has ended stays as it is.
//
// # Errors
//
// ErrNotFound.
func (r *Runs) Cancel(tenant, id, by string) (View, error) {
	n, err := r.find(tenant, id)
	if err != nil {
		return View{}, err
	}
	n.stop(&tracon.Cancellation{By: by})
	return n.view(), nil
}

// Close takes no more calls and waits until those under way have ended. When ctx
// is done first it cancels them all, and waits for the runner's answers. Then
// everything is forgotten. Close the runner after it: that one waits for the
// endings in the log.
func (r *Runs) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		r.out.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		r.stopAll()
		<-ended
	}
	r.forgetAll()
	return nil
}

func (r *Runs) stopAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.tenants {
		for _, n := range s.runs {
			n.stop(errStopped)
		}
	}
}
