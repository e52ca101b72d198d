package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/wire"
)

// A Joining says how a runner takes runs of a pool. Link, Pool, Name, Runtimes,
// Work and Info are required.
type Joining struct {
	Link     Link
	Pool     string
	Name     string     // of the runner; tickets are bound to it
	Runtimes []string   // whose runs it takes
	Tier     grant.Tier // that it stands at; it takes runs that ask for less, too
	Labels   []string   // that it takes runs for, besides those that ask for none

	// Work runs one run whose closure it is given, and answers when its end is
	// written. It is called from many goroutines at once, and is stopped by ctx, whose
	// cause is ErrUnwanted, ErrHostLost or that of Close. All gates are behind it:
	// nothing here is authenticated but that whoever sent the run may speak in the
	// pool. Where the control plane wants to see what the script writes, Work calls show
	// with it, one piece after the other and no more when it has returned. Show does not
	// wait for the control plane: what cannot be sent is lost.
	Work func(ctx context.Context, run wire.Run, closure bundle.Bundle, show func(wire.Output)) (wire.Answer, error)
	// Explain tells what is sent of an error of Work. Nil: that it failed, and no more.
	Explain func(wire.Run, error) wire.Problem
	// Info tells what the runner is and does. Its Slots bound the runs that are taken,
	// and its SlotsPerTenant those of one tenant; zero: Slots.
	Info func(context.Context) (wire.Info, error)

	// After is when it begins to take runs; before, it says that it is busy. A runner
	// that was just started takes no tickets yet. Zero: at once.
	After time.Time

	Content  bundle.Limits // of a closure
	Closures int64         // bytes of closures that are kept for later runs, half of them of one tenant; zero: DefaultClosures

	Beat  time.Duration // between two heartbeats of a run; zero: DefaultBeat, and a fifth of Lost at most
	Lost  time.Duration // as in Config, of the control plane; zero: DefaultLost
	Place time.Duration // how long a place is kept with nothing heard; zero: DefaultPlace

	Logger *slog.Logger // nil: nothing is told
}

// Defaults of [Joining].
const (
	DefaultClosures = 256 << 20
	DefaultPlace    = 10 * time.Second
)

// A Member is a runner that joined. It is safe for concurrent use.
type Member struct {
	c       Joining
	id      string // of this process
	conn    *nats.Conn
	service micro.Service
	kept    *closures

	life context.Context
	end  context.CancelCauseFunc
	work sync.WaitGroup

	mu       sync.Mutex
	sessions map[string]*session
	left     bool // it takes no more
}

// errLeft is the cause that work is cancelled with when the member closes.
var errLeft = errors.New("fleet: the runner left")

// Join links to the pool and takes runs until Close. A server that is not there yet
// is tried until it is.
func Join(c Joining) (*Member, error) {
	if c.Work == nil || c.Info == nil || c.Pool == "" || c.Name == "" || len(c.Runtimes) == 0 || !c.Tier.Valid() {
		return nil, errors.New("fleet: joining needs work, info, a pool, a name, runtimes and a tier")
	}
	c.Lost, c.Place = cmp.Or(c.Lost, DefaultLost), cmp.Or(c.Place, DefaultPlace)
	c.Beat = cmp.Or(c.Beat, min(DefaultBeat, c.Lost/5)) // of five, some are heard
	c.Closures = cmp.Or(c.Closures, DefaultClosures)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Explain == nil {
		c.Explain = func(wire.Run, error) wire.Problem { return wire.Problem{Code: "executor_failed"} }
	}
	m := &Member{c: c, id: secret()[:12], kept: newClosures(c.Closures), sessions: map[string]*session{}}
	m.life, m.end = context.WithCancelCause(context.Background())
	var err error
	if m.conn, err = c.Link.dial("tracon-runner "+token(c.Name), runnerInbox(c.Name), c.Logger); err != nil {
		return nil, err
	}
	if err := m.serve(); err != nil {
		m.conn.Close()
		return nil, fmt.Errorf("fleet: joining: %w", err)
	}
	return m, nil
}

// serve answers at the runner's subjects.
func (m *Member) serve() (err error) {
	m.service, err = micro.AddService(m.conn, micro.Config{
		Name: "tracon-runner", Version: "1.0.0", Description: "runs the scripts of a pool", QueueGroup: queue,
		Metadata: map[string]string{"runner": m.c.Name, "pool": m.c.Pool, "tier": string(m.c.Tier)},
	})
	if err != nil {
		return err
	}
	n := 0
	add := func(subject string, f func(micro.Request), opts ...micro.EndpointOpt) {
		n++
		err = errors.Join(err, m.service.AddEndpoint(fmt.Sprintf("e%d", n), micro.HandlerFunc(f), append(opts, micro.WithEndpointSubject(subject))...))
	}
	alone := micro.WithEndpointQueueGroupDisabled()
	at := atSubject(m.c.Pool, m.c.Name, m.id)
	add(at+".put", m.put, alone)
	add(at+".begin", m.begin, alone)
	add(at+".get", m.get, alone)
	add(at+".stop", m.stop, alone)
	add(at+".drain", m.drain, alone)
	add(at+".who", m.who, alone)
	for _, runtime := range m.c.Runtimes {
		for _, tier := range grant.Tiers() {
			if !m.c.Tier.Meets(tier) {
				continue
			}
			for _, label := range append([]string{""}, m.c.Labels...) {
				add(offerSubject(m.c.Pool, runtime, string(tier), label), m.offer)
			}
		}
	}
	add(whoSubject(m.c.Pool), m.who, alone) // the last: who is seen can be offered runs
	return err
}

// problemOf is what is sent where there is no answer, as a message's body.
func problemOf(p wire.Problem) []byte {
	if len(p.Detail) > 4<<10 {
		p.Detail = p.Detail[:4<<10]
	}
	b, err := p.Encode()
	if err != nil {
		panic("fleet: " + err.Error())
	}
	return b
}

// offer keeps a place for the run that is offered, where there is one.
func (m *Member) offer(r micro.Request) {
	var o offer
	if err := decode(r.Data(), &o); err != nil || o.Session == "" || o.Run == "" {
		m.c.Logger.Warn("an offer is malformed", "err", err)
		return // whoever sent it waits in vain, and nothing was started
	}
	info, err := m.c.Info(m.life)
	p := place{Runner: m.c.Name, Member: m.id}
	switch {
	case err != nil:
		m.c.Logger.Error("the runner cannot tell of itself", "err", err)
		p.Code = "busy"
	case info.Draining || m.isLeft():
		p.Code = "draining"
	case time.Now().Before(m.c.After) || info.Busy >= info.Slots || !m.keep(o, info):
		p.Code = "busy"
	default:
		p.Lacks = m.lacks(o)
	}
	_ = r.Respond(encode(p), micro.WithHeaders(micro.Headers{headLive: {yes}, headWhole: {yes}})) // a place that nobody hears of is free again by itself
}

func (m *Member) isLeft() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left
}

// keep makes a session, where there is a place for one of the tenant. What would wait
// here for a slot of its tenant's would keep a place from another, whose slots are free.
func (m *Member) keep(o offer, i wire.Info) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken, same := 0, 0
	for _, s := range m.sessions {
		if !s.takes() {
			continue
		}
		taken++
		if s.Tenant == o.Tenant {
			same++
		}
	}
	if m.left || taken >= i.Slots || same >= cmp.Or(i.SlotsPerTenant, i.Slots) || m.sessions[o.Session] != nil {
		return false
	}
	s := &session{m: m, offer: o, parts: map[string]*part{}}
	s.idle = time.AfterFunc(m.c.Place, func() { m.drop(s) })
	m.sessions[o.Session] = s
	return true
}

// lacks reports whether the closure must be handed over. One that is here stays in
// the session, whatever other runs need.
func (m *Member) lacks(o offer) bool {
	b, ok := m.kept.get(o.Tenant, o.Bundle)
	s := m.session(o.Session)
	if !ok || s == nil {
		return true
	}
	s.set(func() { s.closure = b })
	return false
}

func (m *Member) session(key string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[key]
}

// maxHeld bounds the bytes of all runs and closures that are being handed over.
const maxHeld = 256 << 20

// held is how many bytes those have. The mutex is held.
func (m *Member) held() (n int64) {
	for _, s := range m.sessions {
		for _, p := range s.parts {
			n += p.size
		}
	}
	return n
}

// drop forgets the session, unless it began.
func (m *Member) drop(s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.state == waiting {
		s.state = over
		s.idle.Stop()
		delete(m.sessions, s.Session)
	}
}

// put takes a chunk.
func (m *Member) put(r micro.Request) {
	c, err := readChunk(r.Headers(), r.Data())
	s := m.session(c.session)
	switch {
	case err != nil:
	case s == nil:
		err = errors.New("the place was given up")
	default:
		err = s.take(c)
	}
	if err != nil {
		_ = r.Respond(problemOf(wire.Problem{Code: "malformed", Detail: err.Error(), NotStarted: true}))
		return
	}
	_ = r.Respond(nil)
}

// begin starts what was handed over, once.
func (m *Member) begin(r micro.Request) {
	b, whole, err := readBegin(r.Headers(), r.Data())
	if err != nil {
		m.c.Logger.Warn("a begin is malformed", "err", err)
		return
	}
	refuse := func(err error) {
		p := wire.Problem{Code: "malformed", Detail: err.Error(), ID: b.Run, NotStarted: true}
		ev := event{kind: kindProblem, run: b.Run, body: problemOf(p)}
		_ = m.conn.PublishMsg(ev.message(r.Reply()))
	}
	s := m.session(b.Session)
	if s == nil {
		refuse(errors.New("the place was given up"))
		return
	}
	ctx, text, first := s.enter(whole)
	if !first {
		return // it is under way, and told of by its own events
	}
	run, err := s.read(b, text)
	if err != nil {
		m.remove(s)
		refuse(err)
		return
	}
	live := r.Headers().Get(headLive) == yes
	m.work.Go(func() { s.run(ctx, run, live) })
}

// remove forgets a session.
func (m *Member) remove(s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.state, s.parts, s.text = over, nil, nil
	s.idle.Stop()
	delete(m.sessions, s.Session)
}

// get sends a piece of a large answer.
func (m *Member) get(r micro.Request) {
	s := m.session(r.Headers().Get(headSession))
	offset, err := number(r.Headers().Get(headOffset), maxAnswer)
	if s == nil || err != nil {
		return
	}
	if b := s.piece(int(offset)); b != nil {
		_ = r.Respond(b)
	}
}

// stop ends the session: what runs is cancelled, what waits is forgotten.
func (m *Member) stop(r micro.Request) {
	s := m.session(string(bytes.TrimSpace(r.Data())))
	if s == nil {
		return
	}
	m.drop(s)
	s.stop()
}

// who tells what the runner is and does.
func (m *Member) who(r micro.Request) {
	info, err := m.c.Info(m.life)
	if err != nil {
		m.c.Logger.Error("the runner cannot tell of itself", "err", err)
		return
	}
	info.Name = m.c.Name
	info.Draining = info.Draining || m.isLeft()
	b, err := info.Encode()
	if err != nil {
		return
	}
	_ = r.Respond(b, micro.WithHeaders(micro.Headers{headMember: {m.id}}))
}

func (m *Member) drain(r micro.Request) {
	m.Drain()
	m.c.Logger.Info("the runner takes no more runs of the fleet: an operator drains it")
	_ = r.Respond(nil)
}

// Drain takes no more runs. Those under way go on.
func (m *Member) Drain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = true
}

// Drained reports whether it takes no more runs, by Drain or an operator's word.
func (m *Member) Drained() bool { return m.isLeft() }

// Close takes no more runs and waits for those under way; when ctx is done it stops
// them. Then it ends the link.
func (m *Member) Close(ctx context.Context) error {
	m.Drain()
	stop := context.AfterFunc(ctx, func() { m.end(errLeft) })
	m.work.Wait()
	stop()
	m.end(errLeft)
	err := m.service.Stop()
	if errors.Is(err, nats.ErrConnectionClosed) {
		err = nil
	}
	flush, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	_ = m.conn.FlushWithContext(flush) // what is not sent in time is lost, as by a crash
	m.conn.Close()
	return err
}
