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
	"github.com/tracon-go/tracon/slot"
)

// ErrNotFound: no such run of the tenant's is here. Its record may tell of it.
var ErrNotFound = errors.New("runs: not found")

// busyAfter is when to come again where there is no room.
const busyAfter = 5 * time.Second

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
	held      int64       // bytes of the calls under way
	timer     *time.Timer // forgets what is too old; nil where nothing is kept
}

// share is what one tenant has.
type share struct {
	runs      map[string]*run // by id: under way, and kept
	kept      *list.List      // of *run, in the order of their ends
	bytes     int64
	followers int
	held      int64
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
// it. A call without an id gets one; its Live is replaced. Ended, if it is not nil,
// is called with what came of an admitted call, whoever waits for it; Close waits
// until it has returned.
//
// # Errors
//
// What the runner says of a call that was not admitted, or not run at all: nothing
// is kept of it. With any error the View has the call's id alone.
func (r *Runs) Start(ctx context.Context, call gate.Call, ended func(View)) (View, error) {
	if ctx.Err() != nil {
		return View{ID: call.ID}, fmt.Errorf("%w: %w", tracon.ErrCancelled, context.Cause(ctx))
	}
	run, err := r.begin(context.WithoutCancel(ctx), &call, ended)
	if err != nil {
		return View{ID: call.ID}, err
	}
	select {
	case <-run.admitted:
	case <-run.done:
	case <-ctx.Done():
		run.stop(context.Cause(ctx))
		<-run.done
	}
	if !closed(run.admitted) {
		return View{ID: call.ID}, run.err
	}
	return run.view(), nil
}

// Do begins call and waits for its end. When ctx is done first, the run is
// cancelled. It returns the view of an admitted call, with what the runner said
// of it in it, and an error as Start does for any other.
func (r *Runs) Do(ctx context.Context, call gate.Call) (View, error) {
	run, err := r.begin(ctx, &call, nil)
	if err != nil {
		return View{ID: call.ID}, err
	}
	<-run.done // the runner answers at once when ctx is done
	if !closed(run.admitted) {
		return View{ID: call.ID}, run.err
	}
	return run.view(), nil
}

// begin starts what executes the call.
func (r *Runs) begin(ctx context.Context, call *gate.Call, ended func(View)) (*run, error) {
	if call.ID == "" {
		call.ID = id.New()
	}
	call.Live = gate.NewLive(0)
	known := *call
	known.Arguments, known.Inputs, known.Live, known.Still = nil, nil, nil, nil // what is kept of it costs little
	ctx, stop := context.WithCancelCause(ctx)
	n := &run{call: known, admitted: call.Live.Admitted(), started: call.Live.Started(), begun: time.Now().UTC().Truncate(time.Microsecond), stop: stop,
		feed: newFeed(r.limits.LiveBytes), done: make(chan struct{})}
	n.live.Store(call.Live)
	leave, err := r.enter(n, *call)
	if err != nil {
		stop(err)
		return nil, err
	}
	release := held(ctx)
	whole := *call
	go func() {
		defer r.out.Done()
		defer release()
		defer leave()
		defer stop(nil)
		n.execute(ctx, r.runner, whole)
		if r.keep(n); ended != nil && closed(n.admitted) {
			ended(n.view())
		}
	}()
	return n, nil
}

// enter notes the run of call, and returns what gives back what it holds.
func (r *Runs) enter(n *run, call gate.Call) (leave func(), err error) {
	size := int64(len(call.Arguments))
	for _, f := range call.Inputs {
		size += int64(len(f.Path) + len(f.Data))
	}
	if leave, err = r.Hold(call.Tenant, size); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.share(call.Tenant)
	switch {
	case r.closed:
		err = tracon.ErrClosed
	case s.runs[call.ID] != nil:
		err = fmt.Errorf("runs: there is a run %s", call.ID)
	default:
		s.runs[call.ID] = n
		r.out.Add(1)
		return leave, nil
	}
	r.giveBack(call.Tenant, size)
	return nil, err
}

// Hold takes n of the bytes that the tenant's calls may have while they are under
// way, for a door that has read that much of a call. Release gives them back; it may be
// called again. Start and Do hold what their call has by themselves.
//
// # Errors
//
// A *slot.BusyError where there is no room.
func (r *Runs) Hold(tenant string, n int64) (release func(), err error) {
	return r.hold(tenant, n, 0)
}

// HoldMore is Hold for a call that has some of those bytes already and grows: an
// eighth of them all, and of the tenant's, is left to calls that are small.
func (r *Runs) HoldMore(tenant string, n int64) (release func(), err error) {
	return r.hold(tenant, n, 8)
}

// hold takes n bytes where one part of so many is left; zero: where they are there.
func (r *Runs) hold(tenant string, n, part int64) (release func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.share(tenant)
	all, each := r.limits.CallBytes, r.limits.CallBytesPerTenant
	if part > 0 {
		all, each = all-all/part, each-each/part
	}
	if r.held+n > all || s.held+n > each {
		r.release(tenant)
		return nil, fmt.Errorf("runs: the calls under way have too many bytes: %w", &slot.BusyError{RetryAfter: busyAfter})
	}
	r.held += n
	s.held += n
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.giveBack(tenant, n)
	}), nil
}

func (r *Runs) giveBack(tenant string, n int64) {
	r.held -= n
	r.share(tenant).held -= n
	r.release(tenant)
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
	if s := r.tenants[tenant]; s != nil && len(s.runs) == 0 && s.followers == 0 && s.held == 0 {
		delete(r.tenants, tenant)
	}
}

// find returns the tenant's admitted run.
func (r *Runs) find(tenant, id string) (*run, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.tenants[tenant]; s != nil {
		if n := s.runs[id]; n != nil && closed(n.admitted) {
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
			if closed(n.admitted) && (before == "" || id < before) && (skill == "" || n.call.Skill == skill) {
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
