package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/handover"
	"github.com/tracon-go/tracon/wire"
)

// A call is one run on its way. It belongs to one goroutine.
type call struct {
	e    *Executor
	pool *pool
	req  executor.Request
	run  wire.Run

	session string
	at      string // subject of the process that has the place
	runner  string
	events  *nats.Subscription

	whole bool           // the runner takes a run within its begin
	live  bool           // the runner can tell of output
	show  *handover.Show // nil: nobody wants it, or the runner told what cannot be
	saw   bool           // output came
}

// make takes the run through its stages. What fails before begin was not started.
func (c *call) make(ctx context.Context) (wire.Answer, error) {
	place, err := c.place(ctx)
	defer func() {
		if c.events != nil {
			_ = c.events.Unsubscribe()
		}
	}()
	if err != nil {
		return wire.Answer{}, err
	}
	begun := false
	defer func() {
		if !begun {
			c.tell("stop")
		}
	}()
	if place.Lacks {
		if err := c.hand(ctx, partBundle, encodeClosure(c.req.Bundle())); err != nil {
			return wire.Answer{}, err
		}
	}
	if c.e.c.Sign != nil {
		if c.run.More.Ticket, err = c.e.c.Sign(c.run, c.runner); err != nil {
			return wire.Answer{}, notStarted(ctx, fmt.Errorf("its ticket: %w", err))
		}
	}
	text, err := c.run.Encode()
	if err != nil {
		return wire.Answer{}, notStarted(ctx, err)
	}
	whole := text
	if !c.whole || len(text) > chunkSize {
		whole = nil
		if err := c.hand(ctx, partRun, text); err != nil {
			return wire.Answer{}, err
		}
	}
	m := begin{c.session, c.req.ID(), digest(text)}.message(c.at+".begin", whole)
	m.Reply = c.events.Subject
	if c.live && handover.Wanted(c.req) {
		c.show = handover.NewShow(c.req)
		m.Header.Set(headLive, yes)
	}
	if err := c.pool.conn.PublishMsg(m); err != nil {
		return wire.Answer{}, notStarted(ctx, err)
	}
	begun = true
	return c.follow(ctx)
}

// notStarted is the error for what failed before the run began.
func notStarted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", ErrNotStarted, err)
}

// Waits between two offers while all runners are busy.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// place asks for a place until there is one, or no hope. An offer starts nothing,
// so it may be made again; each has a session of its own, and a place that nobody
// came to is free again by itself.
func (c *call) place(ctx context.Context) (place, error) {
	until, stop := context.WithTimeout(ctx, min(c.e.c.Wait, c.req.Timeout())) // or the host's limit would have it timed out, and nothing was started
	defer stop()
	subject := offerSubject(c.pool.Name, c.run.Runtime, string(c.e.c.Tier), c.pool.Label)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if err := c.listen(); err != nil {
			return place{}, notStarted(ctx, err)
		}
		got, err := c.offer(until, subject)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				c.tell("stop")
			}
			return place{}, context.Cause(ctx)
		case errors.Is(err, nats.ErrNoResponders):
			return place{}, fmt.Errorf("%w: pool %s, runtime %s, tier %s, label %q", ErrNoRunner, c.pool.Name, c.run.Runtime, c.e.c.Tier, c.pool.Label)
		case err != nil && until.Err() != nil || errors.Is(err, nats.ErrConnectionClosed):
			return place{}, notStarted(ctx, fmt.Errorf("the offer: %w", err))
		case err != nil:
			c.e.c.Logger.Warn("an offer had no answer", "run", c.req.ID(), "err", err)
		case got.Code == "":
			return got, nil
		}
		select {
		case <-until.Done():
			if ctx.Err() != nil {
				return place{}, context.Cause(ctx)
			}
			return place{}, ErrNoPlace
		case <-time.After(pause):
		}
	}
}

// listen begins a session, and hears what is said of it: the server is told of both in
// one, before the offer.
func (c *call) listen() (err error) {
	if c.events != nil {
		_ = c.events.Unsubscribe()
	}
	c.session = secret()
	c.events, err = c.pool.conn.SubscribeSync(fromSubject(c.pool.Name, c.session))
	return err
}

func (c *call) offer(ctx context.Context, subject string) (place, error) {
	ctx, stop := context.WithTimeout(ctx, c.e.c.Reply)
	defer stop()
	m, err := c.pool.conn.RequestWithContext(ctx, subject, encode(offer{c.session, c.req.ID(), c.req.Tenant(), c.run.More.Bundle}))
	if err != nil {
		return place{}, err
	}
	var p place
	if err := decode(m.Data, &p); err != nil {
		return place{}, err
	}
	if p.Code == "" {
		if !named(p.Runner, p.Member) {
			return place{}, fmt.Errorf("%w: a place without a name", ErrMessage)
		}
		c.live, c.whole = m.Header.Get(headLive) == yes, m.Header.Get(headWhole) == yes
		c.runner, c.at = p.Runner, atSubject(c.pool.Name, p.Runner, token(p.Member))
	}
	return p, nil
}

// hand sends a part, each chunk when the one before it was acknowledged.
func (c *call) hand(ctx context.Context, part string, text []byte) error {
	for offset := 0; offset < len(text); offset += chunkSize {
		m := nats.NewMsg(c.at + ".put")
		m.Header.Set(headSession, c.session)
		m.Header.Set(headPart, part)
		m.Header.Set(headOffset, strconv.Itoa(offset))
		m.Header.Set(headSize, strconv.Itoa(len(text)))
		m.Data = text[offset:min(offset+chunkSize, len(text))]
		got, err := c.ask(ctx, m)
		if err != nil {
			return notStarted(ctx, fmt.Errorf("handing over the %s: %w", part, err))
		}
		if len(got.Data) > 0 {
			p, err := wire.ReadProblem(bytes.NewReader(got.Data))
			return notStarted(ctx, errors.Join(problem(p), err))
		}
	}
	return nil
}

func (c *call) ask(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	ctx, stop := context.WithTimeout(ctx, c.e.c.Reply)
	defer stop()
	return c.pool.conn.RequestMsgWithContext(ctx, m)
}

// tell says something of the session to the runner, which need not answer.
func (c *call) tell(verb string) {
	_ = c.pool.conn.Publish(c.at+"."+verb, []byte(c.session)) // a runner that is not reached stops by itself
}

// maxForeign is how many messages that are not of the run are passed over: one that was
// late may come, and a thousand are an attack.
const maxForeign = 1000

// follow waits for the end of what was begun. An error of it is unknown, but where
// the runner says that nothing was started.
func (c *call) follow(ctx context.Context) (wire.Answer, error) {
	waits := ctx // until the caller's cancel; then for the runner's last word
	heard := time.Now()
	foreign := 0
	for first := true; ; first = false {
		wait, stop := context.WithDeadline(waits, heard.Add(c.e.c.Lost))
		m, err := c.events.NextMsgWithContext(wait)
		stop()
		switch {
		case err == nil:
		case errors.Is(err, nats.ErrNoResponders) && first:
			return wire.Answer{}, notStarted(ctx, fmt.Errorf("runner %s left before the run began", c.runner))
		case ctx.Err() != nil && waits == ctx:
			c.tell("stop")
			last, done := context.WithTimeout(context.WithoutCancel(ctx), c.e.c.Lost)
			defer done()
			waits, heard = last, time.Now()
			continue
		case ctx.Err() != nil:
			return wire.Answer{}, fmt.Errorf("%w: %w", context.Cause(ctx), ErrUnconfirmed)
		default:
			c.tell("stop")
			return wire.Answer{}, fmt.Errorf("%w: runner %s: %w", ErrLost, c.runner, err)
		}
		ev, err := readEvent(m.Header, m.Data)
		if err != nil || ev.run != c.req.ID() { // M01: what is of another run says nothing of this one
			if foreign++; foreign == 1 {
				c.e.c.Logger.Warn("a runner said what is not of the run", "runner", c.runner, "run", c.req.ID(), "err", err)
			}
			if foreign > maxForeign {
				c.tell("stop")
				return wire.Answer{}, fmt.Errorf("%w: runner %s said %d things that are not of the run", executor.ErrUnknown, c.runner, foreign)
			}
			continue
		}
		heard = time.Now()
		if m.Reply != "" {
			_ = m.Respond(nil) // one that is lost is asked for again
		}
		switch ev.kind {
		case kindOutput:
			c.shown(ev)
		case kindAnswer:
			return c.answer(ctx, ev)
		case kindProblem:
			return wire.Answer{}, c.problem(ctx, ev)
		}
	}
}

// shown hands output on. The run is none the worse for what cannot be its output: the
// answer has all of it. But nothing more of it is shown.
func (c *call) shown(ev event) {
	if c.show == nil {
		return
	}
	c.saw = true
	if err := c.show.Take(ev.output()); err != nil {
		c.e.c.Logger.Warn("a runner shows what cannot be the run's output", "runner", c.runner, "run", c.req.ID(), "err", err)
		c.show = nil
	}
}

// problem is the error for a run of which there is no answer.
func (c *call) problem(ctx context.Context, ev event) error {
	p, err := wire.ReadProblem(bytes.NewReader(ev.body))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%w: runner %s: %w", executor.ErrUnknown, c.runner, err)
	case p.NotStarted && !c.saw: // what wrote something was started, whatever is said of it
		return notStarted(ctx, fmt.Errorf("runner %s: %w", c.runner, problem(p)))
	}
	return fmt.Errorf("%w: runner %s: %w", executor.ErrUnknown, c.runner, problem(p)) // M06
}

// problem is the error that tells the operator what a runner said.
func problem(p wire.Problem) error { return fmt.Errorf("%.100s: %.1000s", p.Code, p.Detail) }

// answer reads the answer, in pieces where it is large.
func (c *call) answer(ctx context.Context, ev event) (wire.Answer, error) {
	body := ev.body
	if len(body) == 0 {
		defer c.tell("stop") // it need not be kept any more
		var err error
		if body, err = c.fetch(ctx, ev.size); err != nil {
			if ctx.Err() != nil {
				return wire.Answer{}, context.Cause(ctx)
			}
			return wire.Answer{}, fmt.Errorf("%w: fetching the answer from runner %s: %w", executor.ErrUnknown, c.runner, err)
		}
	}
	if digest(body) != ev.sha256 {
		return wire.Answer{}, fmt.Errorf("%w: runner %s: the answer has another digest", executor.ErrUnknown, c.runner)
	}
	a, err := wire.ReadAnswer(bytes.NewReader(body), maxAnswer)
	if err != nil {
		return wire.Answer{}, fmt.Errorf("%w: runner %s: %w", executor.ErrUnknown, c.runner, err) // M06
	}
	if ctx.Err() != nil {
		return wire.Answer{}, context.Cause(ctx)
	}
	return a, nil
}

// fetch asks for each chunk of the answer, again where one is lost.
func (c *call) fetch(ctx context.Context, size int64) ([]byte, error) {
	if most := answerMost(c.req); size > most {
		return nil, fmt.Errorf("%w: an answer of %d bytes, at most %d", ErrMessage, size, most)
	}
	body := make([]byte, 0, size)
	fails := 0
	for int64(len(body)) < size {
		m := nats.NewMsg(c.at + ".get")
		m.Header.Set(headSession, c.session)
		m.Header.Set(headOffset, strconv.Itoa(len(body)))
		got, err := c.ask(ctx, m)
		if err != nil {
			if fails++; ctx.Err() != nil || fails > 3 {
				return nil, err
			}
			select {
			case <-ctx.Done():
			case <-time.After(lastPause << fails):
			}
			continue
		}
		if n := len(got.Data); n == 0 || n > chunkSize || int64(len(body)+n) > size {
			return nil, fmt.Errorf("%w: a chunk of %d bytes", ErrMessage, n)
		}
		body = append(body, got.Data...)
	}
	return body, nil
}

// answerMost is the most that an answer to req has: its streams twice (as text that
// is escaped, and in base64), its files in base64, and their names and notes.
func answerMost(req executor.Request) int64 {
	outputs, files := req.MaxOutputs()
	return min(maxAnswer, int64(req.MaxOutputBytes())*16+outputs*3/2+int64(files)*8<<10+1<<20)
}
