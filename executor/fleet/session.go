package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/wire"
)

// States of a session, in their order.
const (
	waiting = iota // for the run, and for the closure
	running
	telling // the end is known; the control plane may not have heard of it
	over
)

// A session is one run at a runner: a place that is kept, what was handed over, and
// the work. Its fields are guarded by the member's mutex.
type session struct {
	offer
	m       *Member
	state   int
	idle    *time.Timer // ends a place that nobody comes to
	parts   map[string]*part
	closure bundle.Bundle
	halt    context.CancelCauseFunc // of the work; nil before it begins
	text    []byte                  // of a large answer, until it was fetched
	done    chan struct{}           // closed when nobody wants the text; nil before it begins
}

// A part is what was handed over so far.
type part struct {
	size int64
	data []byte
}

// takes reports whether the session has one of the runner's places.
func (s *session) takes() bool {
	return s.state == waiting || s.state == running || s.state == telling && s.text != nil
}

// take adds a chunk. The last one of a closure is where it is checked.
func (s *session) take(c chunk) error {
	whole, err := s.add(c)
	if err != nil || whole == nil || c.part == partRun {
		return err
	}
	b, err := readClosure(whole, s.Bundle, s.m.c.Content)
	if err != nil {
		return err
	}
	s.m.kept.add(s.Tenant, b)
	s.set(func() { s.closure = b })
	return nil
}

// add adds a chunk, and returns the whole when it is.
func (s *session) add(c chunk) ([]byte, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.state != waiting {
		return nil, errors.New("the run began, or the place was given up")
	}
	s.idle.Reset(s.m.c.Place)
	p := s.parts[c.part]
	if p == nil {
		if s.m.held()+c.size > maxHeld {
			return nil, errors.New("too much is handed over at once")
		}
		p = &part{size: c.size}
		s.parts[c.part] = p
	}
	if c.size != p.size || c.offset != int64(len(p.data)) {
		return nil, fmt.Errorf("%w: a chunk at %d, after %d bytes", ErrMessage, c.offset, len(p.data))
	}
	p.data = append(p.data, c.data...)
	if int64(len(p.data)) < p.size {
		return nil, nil
	}
	if c.part == partBundle {
		delete(s.parts, c.part)
	}
	return p.data, nil
}

// enter has the session begin, once. It returns the run's JSON, which came whole or was
// handed over, and what the work is stopped by.
func (s *session) enter(whole []byte) (ctx context.Context, text []byte, first bool) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.state != waiting {
		return nil, nil, false
	}
	s.state = running
	s.idle.Stop()
	switch p := s.parts[partRun]; {
	case p == nil:
		text = whole
	case whole == nil && int64(len(p.data)) == p.size: // one that came both ways is none
		text = p.data
	}
	s.parts = nil
	ctx, s.halt = context.WithCancelCause(s.m.life)
	s.done = make(chan struct{})
	return ctx, text, true
}

// read reads what was handed over, which is what was offered.
func (s *session) read(b begin, text []byte) (wire.Run, error) {
	if text == nil || digest(text) != b.SHA256 {
		return wire.Run{}, errors.New("the run was not handed over in full")
	}
	run, err := wire.ReadRun(bytes.NewReader(text), maxRun)
	if err != nil {
		return run, err
	}
	if run.More == nil || run.More.ID != s.Run || b.Run != s.Run || run.Tenant != s.Tenant || run.More.Bundle != s.Bundle {
		return run, errors.New("the run is not the one that was offered")
	}
	if s.closure.IsZero() {
		return run, errors.New("the closure was not handed over")
	}
	return run, nil
}

// run does the work, and tells of it until its end was heard; of its output, too, where
// live says that somebody wants it.
func (s *session) run(ctx context.Context, run wire.Run, live bool) {
	defer s.halt(nil)
	defer s.m.remove(s)
	var show func(wire.Output)
	if live {
		show = s.show
	}
	came := make(chan event, 1)
	go func() { came <- s.work(ctx, run, show) }()
	s.beat(came)
}

// show tells of output, once. While the link is broken nothing is kept for later: the
// client's room is for what is told until it is heard.
func (s *session) show(o wire.Output) {
	if !s.m.conn.IsConnected() {
		return
	}
	e := event{kind: kindOutput, run: s.Run, stream: o.Stream, offset: o.Offset, body: o.Data}
	_ = s.m.conn.PublishMsg(e.message(fromSubject(s.m.c.Pool, s.Session)))
}

func (s *session) set(f func()) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	f()
}

// work calls Work and makes an event of what comes of it.
func (s *session) work(ctx context.Context, run wire.Run, show func(wire.Output)) (e event) {
	fail := func(err error) event {
		p := s.m.c.Explain(run, err)
		p.ID = s.Run
		return event{kind: kindProblem, run: s.Run, body: problemOf(p)}
	}
	defer func() {
		if p := recover(); p != nil {
			s.m.c.Logger.Error("a run panicked", "run", s.Run, "panic", fmt.Sprint(p))
			e = fail(errors.New("it panicked"))
		}
	}()
	a, err := s.m.c.Work(ctx, run, s.closure, show)
	if err != nil {
		return fail(err)
	}
	text, err := a.Encode()
	if err != nil {
		return fail(err)
	}
	e = event{kind: kindAnswer, run: s.Run, size: int64(len(text)), sha256: digest(text)}
	if len(text) <= chunkSize {
		e.body = text
		return e
	}
	s.set(func() { s.text = text })
	return e
}

// soon is when a run that goes on is told of first. Most are over by then, and each
// word of one takes both sides and the server some of their processors.
const soon = 100 * time.Millisecond

// beat tells the control plane that the run goes on, and then how it ended, each
// until it is heard. A control plane that is not heard of for Lost is gone, and the
// work is stopped. A run that is over soon has told nothing before its end.
func (s *session) beat(came <-chan event) {
	heard := time.Now()
	e := event{kind: kindBegun, run: s.Run}
	ended := false
	for wait := min(soon, s.m.c.Beat); ; wait = s.m.c.Beat {
		next := time.NewTimer(wait)
		select {
		case got := <-came:
			e, ended, came = got, true, nil
			s.set(func() { s.state = telling })
		case <-next.C:
		}
		next.Stop()
		if s.tell(e) {
			heard = time.Now()
			if ended {
				s.rest(e)
				return
			}
		} else if left := s.m.life.Err() != nil; left || time.Since(heard) > s.m.c.Lost {
			s.halt(ErrHostLost)
			if ended {
				s.m.c.Logger.Warn("nobody heard of a run's end", "run", s.Run)
				return
			}
		}
		if !ended {
			e.kind = kindBeat
		}
	}
}

// tell says e, and reports whether it was heard.
func (s *session) tell(e event) bool {
	_, err := s.m.conn.RequestMsg(e.message(fromSubject(s.m.c.Pool, s.Session)), s.m.c.Beat)
	if err != nil && !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, nats.ErrTimeout) {
		s.m.c.Logger.Warn("a run cannot be told of", "run", s.Run, "err", err)
	}
	return err == nil
}

// rest keeps a large answer until it was fetched, or nobody asks for it.
func (s *session) rest(e event) {
	if e.kind != kindAnswer || len(e.body) > 0 {
		return
	}
	select {
	case <-s.done:
	case <-time.After(4 * s.m.c.Lost):
	case <-s.m.life.Done():
	}
}

// piece returns the chunk of the answer at offset; nil: there is none.
func (s *session) piece(offset int) []byte {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if offset < 0 || offset >= len(s.text) {
		return nil
	}
	return s.text[offset:min(offset+chunkSize, len(s.text))]
}

// stop cancels the work; a large answer is not wanted any more.
func (s *session) stop() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.halt == nil {
		return
	}
	s.halt(ErrUnwanted)
	if s.state == telling {
		select {
		case <-s.done:
		default:
			close(s.done)
		}
	}
}
