package runs

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/gate"
)

// A Stage is how far a run has come.
type Stage string

// The stages, in their order.
const (
	Queued  Stage = "queued" // admitted; it waits for a slot
	Running Stage = "running"
	Ended   Stage = "ended"
)

// A View is what is known of a run.
type View struct {
	ID      string
	Tenant  string
	Actor   string // who started it
	Skill   string
	Script  string
	Begun   time.Time // when it was admitted
	Stage   Stage
	Ended   time.Time      // zero until it has ended; as its record has it, where that is known
	Outcome tracon.Outcome // once it has ended; shared, so read only
	Err     error          // the same, as the runner returned it: for the operator
}

// Code returns what [tracon.Code] says of an ended run, else "".
func (v View) Code() string {
	if v.Stage != Ended {
		return ""
	}
	return tracon.Code(v.Outcome, v.Err)
}

// run is one call from its coming until it is forgotten.
type run struct {
	call     gate.Call                 // without its arguments, its inputs and its live output
	admitted <-chan struct{}           // closed when every gate has said yes
	started  <-chan struct{}           // closed when it has its slot
	live     atomic.Pointer[gate.Live] // nil once it has ended
	begun    time.Time                 // when the call came
	stop     context.CancelCauseFunc
	feed     *feed
	done     chan struct{} // closed when the fields below are set

	ended time.Time
	out   tracon.Outcome
	err   error
	size  int64 // how many bytes it costs to keep it; set after done

	// Under the lock of Runs.
	inAll, inTenant *list.Element // where it is kept; nil until it has ended
}

// execute takes the call through the runner, and the live output into the feed.
func (r *run) execute(ctx context.Context, runner Runner, call gate.Call) {
	var pump sync.WaitGroup
	pump.Go(func() { r.feed.pump(call.Live) })
	r.out, r.err = runner.Run(ctx, call) // it ends the live output
	call.Live.Close()                    // a runner of somebody else's may not
	pump.Wait()
	r.ended = r.out.Ended
	if r.ended.IsZero() {
		r.ended = time.Now().UTC().Truncate(time.Microsecond)
	}
	close(r.done)
	r.live.Store(nil)
	r.feed.add(Event{Kind: End})
	r.size = r.cost()
}

func (r *run) view() View {
	live := r.live.Load() // before done is looked at
	v := View{ID: r.call.ID, Tenant: r.call.Tenant, Actor: r.call.Actor, Skill: r.call.Skill, Script: r.call.Script, Begun: r.begun, Stage: Queued}
	switch {
	case closed(r.done):
		v.Stage, v.Ended, v.Outcome, v.Err = Ended, r.ended, r.out, r.err
		if at := r.out.Admitted; !at.IsZero() {
			v.Begun = at
		}
		return v
	case closed(r.started):
		v.Stage = Running
	}
	if at := live.AdmittedAt(); !at.IsZero() {
		v.Begun = at
	}
	return v
}

// cost is how many bytes it costs to keep r, which has ended.
func (r *run) cost() int64 {
	const itself = 2048 // about what a run is without any output
	n := itself + int64(len(r.out.Stdout)+len(r.out.Stderr)+len(r.out.StdoutBytes)+len(r.out.StderrBytes)) + r.feed.bytes()
	for _, s := range r.out.Notes {
		n += int64(len(s))
	}
	for _, f := range r.out.Outputs {
		n += int64(len(f.Path) + len(f.Data))
	}
	return n
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
