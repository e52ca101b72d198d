package tracon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/turns"
	"github.com/tracon-go/tracon/slot"
	"github.com/tracon-go/tracon/toolcall"
)

// What a [Config] means by zero.
const (
	DefaultSlotsPerCPU = slot.DefaultPerCPU // Slots: twice the processors
	DefaultQueue       = slot.DefaultQueue
	DefaultSlotWait    = 30 * time.Second
	DefaultGrace       = 5 * time.Second
)

// Config configures a [Runner].
type Config struct {
	// Gate decides. Required.
	Gate *gate.Gate

	// Executor runs what the gate admits. Nil means the platform's default, which is
	// closed with the runner: on Linux the sandbox, elsewhere a plain local process.
	Executor executor.Executor

	// RequireCustomExecutor makes New fail with ErrDefaultExecutor when a built-in
	// executor of this host is what resolves, be it by silence or by being passed.
	RequireCustomExecutor bool

	// Calls keeps a record of every admitted call, in one transaction with its
	// ending. Nil keeps none: the log has the endings alone.
	Calls toolcall.Store

	// Receipts makes the receipt of each admitted call, for its Outcome. Nil makes
	// none.
	Receipts Receipts

	// Pool bounds how many scripts run at once, and how many calls wait: one that
	// several hosts share. Nil means one of this Runner, of the four numbers below,
	// which hold for no other.
	Pool slot.Pool

	// Slots is how many scripts run at once. Zero means twice the processors.
	Slots int

	// SlotsPerTenant is how many of them one tenant may have. Zero means half, at
	// least one.
	SlotsPerTenant int

	// Queue is how many calls may be on their way to a slot, and QueuePerTenant how
	// many of them one tenant's. Zero means 1,024, and half of Queue.
	Queue, QueuePerTenant int

	// SlotWait is how long a call waits for a slot. Zero means 30 s.
	SlotWait time.Duration

	// Grace is how long past a script's timeout the runner waits for the
	// executor's answer. Zero means 5 s.
	Grace time.Duration

	// Observer is told of every call. Nil: nobody is.
	Observer Observer

	// Logger gets what only the operator may see, such as an executor's own error.
	// Nil means slog.Default().
	Logger *slog.Logger
}

// A Runner takes calls through the gates to an executor. It is safe for
// concurrent use.
type Runner struct {
	gate     *gate.Gate
	exec     executor.Executor
	ours     bool   // the executor is one of this module's
	name     string // of the executor, where it does not say
	calls    toolcall.Store
	receipts Receipts
	later    later // the receipts that nobody waits for
	pool     slot.Pool
	turns    *turns.Turns // of those that pass the gates
	slotWait time.Duration
	grace    time.Duration
	observer Observer
	log      *slog.Logger
	close    func() error // of the default executor

	mu     sync.Mutex
	closed bool
	out    sync.WaitGroup // calls whose ending is not written yet
	base   context.Context
	cancel context.CancelCauseFunc

	abandoned atomic.Int64
	unwritten atomic.Int64
}

// New returns a Runner for c.
//
// # Errors
//
// ErrDefaultExecutor, see Config; another one when a field cannot hold or the
// default executor cannot be had on this host.
func New(c Config) (*Runner, error) {
	if c.Gate == nil {
		return nil, errors.New("tracon: Config needs a Gate")
	}
	for name, n := range map[string]int64{"Slots": int64(c.Slots), "SlotsPerTenant": int64(c.SlotsPerTenant), "Queue": int64(c.Queue),
		"QueuePerTenant": int64(c.QueuePerTenant), "SlotWait": int64(c.SlotWait), "Grace": int64(c.Grace)} {
		if n < 0 {
			return nil, fmt.Errorf("tracon: Config.%s is negative; zero means the default", name)
		}
	}
	if c.RequireCustomExecutor && isDefault(c.Executor) {
		return nil, ErrDefaultExecutor
	}
	closeDefault := func() error { return nil }
	if c.Executor == nil {
		e, err := newDefault(c.Logger)
		if err != nil {
			return nil, fmt.Errorf("tracon: the default executor: %w", err)
		}
		c.Executor, closeDefault = e, e.Close
	}
	r := &Runner{
		gate: c.Gate, exec: c.Executor, calls: c.Calls, receipts: c.Receipts, close: closeDefault,
		pool: &slots{Limits: slot.Limits{Slots: c.Slots, SlotsPerTenant: c.SlotsPerTenant, Queue: c.Queue, QueuePerTenant: c.QueuePerTenant}.OrDefaults(),
			tenants: map[string]*share{}},
		slotWait: cmp.Or(c.SlotWait, DefaultSlotWait), grace: cmp.Or(c.Grace, DefaultGrace),
		observer: c.Observer, log: cmp.Or(c.Logger, slog.Default()), turns: turns.New(gatesAtOnce),
	}
	if c.Pool != nil {
		r.pool = c.Pool
	}
	if r.observer == nil {
		r.observer = noObserver{}
	}
	r.ours, r.name = whose(c.Executor)
	r.base, r.cancel = context.WithCancelCause(context.Background())
	return r, nil
}

// whose reports whether e is of a room of this module, and its type's name. A
// tier that another one tells of itself is a claim, whatever it says.
func whose(e executor.Executor) (ours bool, name string) {
	t := reflect.TypeOf(e)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return strings.HasPrefix(t.PkgPath(), reflect.TypeFor[executor.Executor]().PkgPath()+"/"), t.String()
}

// Standing returns how strong the executor is. One that tells no posture is of
// the lowest tier.
func (r *Runner) Standing(ctx context.Context) (gate.Standing, error) {
	p, ok := r.exec.(executor.Posturer)
	if !ok {
		return gate.Standing{Executor: r.name, Tier: grant.Process, Claimed: true}, nil
	}
	posture, err := p.Posture(ctx)
	if err != nil {
		return gate.Standing{}, fmt.Errorf("%w: its posture: %w", ErrExecutorUnavailable, err)
	}
	s := gate.Standing{Executor: posture.Executor, Tier: posture.Tier, Claimed: posture.Claimed || !r.ours}
	for _, w := range posture.Walls {
		s.Walls = append(s.Walls, gate.Wall{Name: w.Name, Stands: w.Stands, Remedy: w.Remedy})
	}
	return s, nil
}

// Ready says why no call can run, whatever it asks for, or nil. It runs nothing
// and writes nothing. After a failure to write the log it says so until the host
// has opened its store again.
//
// # Errors
//
// ErrClosed after [Runner.Close], audit.ErrUnavailable, ErrExecutorUnavailable.
func (r *Runner) Ready(ctx context.Context) error {
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	if closed {
		return ErrClosed
	}
	if err := r.gate.Ready(ctx); err != nil {
		return err
	}
	_, err := r.Standing(ctx)
	return err
}

// Explain asks every gate about call and runs nothing; see [gate.Gate.Explain].
func (r *Runner) Explain(ctx context.Context, call gate.Call) ([]gate.Verdict, error) {
	s, err := r.Standing(ctx)
	if err != nil {
		return nil, err
	}
	return r.gate.Explain(ctx, call, s), nil
}

// Stats says what is going on.
type Stats struct {
	Slots     int   // that there are
	PerTenant int   // slots that one tenant may have
	InUse     int   // slots that are held
	Waiting   int   // calls that wait for one
	Abandoned int64 // executions that passed their wait limit and are still out
	Unwritten int64 // calls whose ending could not be written; see [Recover]
}

// Stats returns what is going on now.
func (r *Runner) Stats() Stats {
	n := r.pool.Count()
	return Stats{n.Slots, n.PerTenant, n.InUse, n.Waiting, r.abandoned.Load(), r.unwritten.Load()}
}

// Run takes call through the gates, waits for a slot, and runs it once. It
// never tries again. When ctx is done it answers at once with ErrCancelled; the
// slot stays taken until the executor has answered or the wait limit has passed.
//
// # Errors
//
// A *gate.Denial when a gate refused, before or after the wait. ErrBusy,
// ErrCancelled, ErrExecutorUnavailable, ErrExecutorFailed, and
// audit.ErrUnavailable as they say. When the ending could not be written the
// Outcome is returned with the error. With any error of a call that was admitted
// the Outcome says which call it was, what it was to run, and its Receipt. Any other error means that something
// could not be read, and nothing ran. [Code] and [ModelText] read both results.
func (r *Runner) Run(ctx context.Context, call gate.Call) (Outcome, error) {
	out, _, err := r.run(ctx, call, func(ctx context.Context, s gate.Standing) (gate.Request, error) { return r.gate.Admit(ctx, call, s) }, r.prove)
	return out, err
}

// A door takes what was asked for through its gates.
type door func(ctx context.Context, s gate.Standing) (gate.Request, error)

// A receipt adds what proves the call, or has it made, when its ending is written.
type receipt func(ctx context.Context, j *job, out Outcome, err error) Outcome

// run is Run through a door: call is what is asked for there. It returns the streams
// as the executor gave them, too.
func (r *Runner) run(ctx context.Context, call gate.Call, through door, proof receipt) (Outcome, streams, error) {
	defer call.Live.Close()
	ctx, observed := r.observer.Call(ctx, call)
	if !r.begin() {
		observed(Observation{Err: ErrClosed})
		return Outcome{}, streams{}, ErrClosed
	}
	ctx, stop := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(r.base, func() { stop(context.Cause(r.base)) })

	job, err := r.admit(ctx, call.Tenant, through)
	if err != nil && job == nil { // refused or turned away: there is no ending to write
		unhook()
		stop(nil)
		r.out.Done()
		observed(Observation{Err: err})
		return Outcome{}, streams{}, err
	}
	r.out.Add(1) // until the receipt is there
	defer r.out.Done()
	job.done = func(o Observation) {
		unhook()
		stop(nil)
		observed(o)
		r.out.Done()
	}
	var out Outcome
	if err == nil {
		out, err = job.execute(ctx)
	} else { // admitted, and did not reach the executor
		out, err = job.finish(Outcome{}, err)
	}
	return proof(ctx, job, out, err), job.raw, err
}

func (r *Runner) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.out.Add(1)
	return true
}

// admit takes a place, the gates and a slot. It returns a job once the call is
// admitted, with an error when it does not reach the executor even so.
func (r *Runner) admit(ctx context.Context, tenant string, through door) (*job, error) {
	if ctx.Err() != nil {
		return nil, cancelled(ctx)
	}
	p, err := r.pool.Enter(ctx, tenant)
	if err != nil {
		if ctx.Err() != nil {
			err = cancelled(ctx)
		}
		return nil, err
	}
	defer p.Leave()
	req, err := r.pass(ctx, tenant, through)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, gate.ErrDenied) {
			err = cancelled(ctx)
		}
		return nil, err
	}
	since := time.Now()
	j := &job{r: r, req: req, admitted: req.Live().AdmittedAt()}
	if j.admitted.IsZero() { // nobody looks
		j.admitted = since.UTC().Truncate(time.Microsecond)
	}
	held, err := p.Wait(ctx, r.slotWait)
	j.waited = time.Since(since).Truncate(time.Microsecond)
	if err == nil {
		if err = r.gate.Confirm(ctx, req); err == nil {
			j.slot = held
			return j, nil
		}
		held.Release()
	}
	if ctx.Err() != nil && !errors.Is(err, gate.ErrDenied) {
		err = cancelled(ctx)
	}
	return j, err
}

// gatesAtOnce is how many calls pass the gates at once, half of them of one tenant:
// enough to share the log's commits, and few enough that thousands which come in
// one moment do not each hold what reading and deciding takes.
const gatesAtOnce = 64

// pass goes through the door's gates, when it is the tenant's turn.
func (r *Runner) pass(ctx context.Context, tenant string, through door) (gate.Request, error) {
	leave, err := r.turns.Take(ctx, tenant)
	if err != nil {
		return gate.Request{}, err
	}
	defer leave()
	s, err := r.Standing(ctx)
	if err != nil {
		return gate.Request{}, err
	}
	return through(ctx, s)
}

func cancelled(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ErrCancelled, context.Cause(ctx))
}

// Close takes no more calls, waits until the ending of each one that is under
// way is written, and writes the refusals that were counted. When ctx is done first it stops them all, and waits for
// their endings: at most as long as the longest wait limit.
func (r *Runner) Close(ctx context.Context) error {
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
		r.cancel(errors.New("the host stops"))
		<-ended
	}
	r.cancel(ErrClosed)
	return errors.Join(r.gate.Flush(context.WithoutCancel(ctx)), r.close())
}
