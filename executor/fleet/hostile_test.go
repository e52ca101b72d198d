package fleet_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/wire"
)

// at is where everything of the pool is said.
const at = "tracon.main_20pool."

// rawHost is the control plane's own link, which says whatever it likes.
func (g *ground) rawHost() *nats.Conn {
	g.t.Helper()
	c, err := nats.Connect("", nats.InProcessServer(g.server), nats.CustomInboxPrefix("_INBOX.host"), key(g.t, g.server.Host(pool)))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(c.Close)
	return c
}

func key(t testing.TB, seed []byte) nats.Option {
	t.Helper()
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return nats.Nkey(public, pair.Sign)
}

// rawRunner is the link of a runner that answers at each subject as f tells. It is
// refused nothing that it asks for.
func (g *ground) rawRunner(name string, f map[string]func(*nats.Msg) *nats.Msg) {
	g.t.Helper()
	g.rawRunnerThat(name, func(*nats.Conn) map[string]func(*nats.Msg) *nats.Msg { return f })
}

// rawRunnerThat is rawRunner for answers that are said over its link too: it is there
// before the first of them is asked for.
func (g *ground) rawRunnerThat(name string, of func(*nats.Conn) map[string]func(*nats.Msg) *nats.Msg) {
	g.t.Helper()
	c, err := nats.Connect("nats://"+g.server.Address(), key(g.t, g.seeds[name]))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(c.Close)
	for subject, answer := range of(c) {
		hear := func(m *nats.Msg) {
			if a := answer(m); a != nil {
				a.Subject = m.Reply
				_ = c.PublishMsg(a)
			}
		}
		if strings.Contains(subject, "offer") {
			_, err = c.QueueSubscribe(subject, "runners", hear)
		} else {
			_, err = c.Subscribe(subject, hear)
		}
		if err != nil {
			g.t.Fatal(err)
		}
	}
	if err := c.Flush(); err != nil {
		g.t.Fatal(err)
	}
}

func message(body string, headers ...string) *nats.Msg {
	m := nats.NewMsg("")
	m.Data = []byte(body)
	for i := 0; i < len(headers); i += 2 {
		m.Header.Set(headers[i], headers[i+1])
	}
	return m
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

type offered struct{ Runner, Member, Code string }

// offer asks for a place.
func offer(t *testing.T, c *nats.Conn, session, run, tenant, digest string) (p offered) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	m, err := c.RequestWithContext(ctx, at+"offer.python-3_2e12.process._",
		fmt.Appendf(nil, `{"session":%q,"run":%q,"tenant":%q,"bundle":%q}`, session, run, tenant, digest))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(m.Data, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// B10: a tenant has as many of a runner's places as it has slots there, so that no run
// of it waits in a place while another tenant's slots are free.
func TestTenantsShare(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one")
	g.join("one", echo, func(j *fleet.Joining) {
		j.Place = patience
		j.Info = func(context.Context) (wire.Info, error) { return wire.Info{Slots: 3, SlotsPerTenant: 2}, nil }
	})
	g.await(g.executor(nil), 1)
	c := g.rawHost()
	for i, o := range []struct{ tenant, code string }{{"acme", ""}, {"acme", ""}, {"acme", "busy"}, {"beta", ""}, {"gamma", "busy"}} {
		session := fmt.Sprint("session ", i)
		if p := offer(t, c, session, session, o.tenant, "none"); p.Code != o.code {
			t.Errorf("B10: offer %d, of %s, got the code %q, want %q", i, o.tenant, p.Code, o.code)
		}
	}
}

// M10: a runner that answers for another is not believed, whatever it says, and keeps
// nobody from draining the other.
func TestImpostor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, says, member string
	}{
		{"another's name", "good", "0"}, {"another's name and no member", "good", ""}, {"a name that is no subject", strings.Repeat("x", 8<<10), "0"},
		{"a member that is no subject", "good", strings.Repeat(".", 8<<10)}, {"a name of nobody", "nobody", "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, "good", "evil")
			e := g.executor(nil)
			g.join("good", echo, nil)
			g.await(e, 1)
			var heard atomic.Int32
			g.rawRunner("evil", map[string]func(*nats.Msg) *nats.Msg{at + "who": func(*nats.Msg) *nats.Msg {
				heard.Add(1)
				b, err := wire.Info{Name: c.says, Draining: true}.Encode()
				if err != nil {
					t.Error(err)
				}
				return message(string(b), "Tracon-Member", c.member)
			}})
			if all := g.await(e, 1); all[0].Info.Name != "good" || all[0].Info.Draining {
				t.Errorf("M10: got %+v, want the runner good alone", all)
			}
			g.drain(e, "good")
			if all := g.await(e, 1); !all[0].Info.Draining {
				t.Error("M10: the runner was not drained")
			}
			if heard.Load() < 3 {
				t.Errorf("the impostor was asked %d times, want 3", heard.Load())
			}
		})
	}
}

// A process that left while its runner's name is drained counts as nothing, and keeps
// no other from being drained.
func TestDrainGoesOn(t *testing.T) {
	t.Parallel()
	g := newGround(t, "good")
	e := g.executor(nil)
	g.join("good", echo, nil)
	g.await(e, 1)
	who := func(*nats.Msg) *nats.Msg {
		b, err := wire.Info{Name: "good"}.Encode()
		if err != nil {
			t.Error(err)
		}
		return message(string(b), "Tracon-Member", "0")
	}
	g.rawRunner("good", map[string]func(*nats.Msg) *nats.Msg{at + "who": who, at + "at.good.0.who": who})
	g.await(e, 2) // "0" is the first in the order of members
	g.drain(e, "good")
	for _, r := range g.await(e, 2) {
		if want := r.Member != "0"; r.Info.Draining != want {
			t.Errorf("member %s: draining is %v, want %v", r.Member, r.Info.Draining, want)
		}
	}
}

// M01: what a runner says of another run is nothing of this one, be it a refusal or an
// answer. One that says such things without end ends the run as unknown, and fills no log.
func TestWordsOfAnotherRun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		others int
		want   error
	}{
		{"some", 2, nil},
		{"without end", 5000, executor.ErrUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log lines
			g := newGround(t, "one")
			e := g.executor(func(c *fleet.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			handed := make(chan []byte, 1) // the run's text
			begun := func(c *nats.Conn, m *nats.Msg) {
				text := <-handed
				run, err := wire.ReadRun(bytes.NewReader(text), int64(len(text)))
				if err != nil {
					t.Error(err)
					return
				}
				say := func(kind, of string, body []byte) {
					e := message(string(body), "Tracon-Kind", kind, "Tracon-Run", of, "Tracon-Size", strconv.Itoa(len(body)), "Tracon-SHA256", hash(body))
					e.Subject = m.Reply
					_ = c.PublishMsg(e)
				}
				refusal, err := wire.Problem{Code: "malformed", NotStarted: true}.Encode()
				if err != nil {
					t.Error(err)
				}
				own, err := exits(run, "of this run").Encode()
				if err != nil {
					t.Error(err)
				}
				for range tt.others / 2 {
					say("problem", "another", refusal)
					say("answer", "another", []byte("{}"))
				}
				say("answer", run.More.ID, own)
			}
			g.rawRunnerThat("one", func(c *nats.Conn) map[string]func(*nats.Msg) *nats.Msg {
				return map[string]func(*nats.Msg) *nats.Msg{
					at + "offer.>":        func(*nats.Msg) *nats.Msg { return message(`{"runner":"one","member":"0","lacks":false}`) },
					at + "at.one.0.put":   func(m *nats.Msg) *nats.Msg { handed <- m.Data; return message("") },
					at + "at.one.0.begin": func(m *nats.Msg) *nats.Msg { begun(c, m); return nil },
				}
			})
			res, err := e.Execute(t.Context(), g.request(executortest.Order{}))
			if !errors.Is(err, tt.want) || tt.want == nil && string(res.Stdout) != "of this run" {
				t.Errorf("M01: got %q, %v, want the answer of this run, or %v", res.Stdout, err, tt.want)
			}
			if n := log.count("not of the run"); n != 1 {
				t.Errorf("it is told %d times, want once", n)
			}
		})
	}
}

// lines is a log that is counted.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// M09: an answer that says that the run had a lower tier than was asked for does not
// hold, and its script may have run.
func TestAnswerOfALowerTier(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"process", "", "SANDBOX", "none"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, "one")
			e := g.executor(func(c *fleet.Config) { c.Tier = grant.Sandbox })
			g.join("one", func(_ context.Context, run wire.Run, _ bundle.Bundle) (wire.Answer, error) {
				a := exits(run, "hello")
				a.More.Tier = tier
				return a, nil
			}, nil)
			g.await(e, 1)
			res, err := e.Execute(t.Context(), g.request(executortest.Order{}))
			if !errors.Is(err, executor.ErrUnknown) || errors.Is(err, executor.ErrUnavailable) || !res.Ending.IsZero() {
				t.Errorf("M09: got %v, %v, want unknown", res.Ending, err)
			}
		})
	}
}

// R18, T09: a place is for the run that was offered: another's, another tenant's and one
// of another closure are refused and start nothing, be they handed over or within their
// begin; what begins twice is run once (R21).
func TestOnlyTheOfferedRun(t *testing.T) {
	t.Parallel()
	for name, whole := range map[string]bool{"handed over": false, "within its begin": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onlyTheOfferedRun(t, whole)
		})
	}
}

func onlyTheOfferedRun(t *testing.T, whole bool) {
	t.Helper()
	g := newGround(t, "one")
	e := g.executor(nil)
	runs := make(chan wire.Run, 9)
	g.join("one", func(_ context.Context, run wire.Run, _ bundle.Bundle) (wire.Answer, error) {
		runs <- run
		return exits(run, ""), nil
	}, nil)
	g.await(e, 1)
	if _, err := e.Execute(t.Context(), g.request(executortest.Order{})); err != nil {
		t.Fatal(err)
	}
	first := <-runs
	c := g.rawHost()
	for i, k := range []struct {
		name   string
		change func(*wire.Run)
		begin  string // the run that begins; empty: the offered one
		sha256 string // of the run's text; empty: what it is
		both   bool   // it is handed over, and within its begin
		ok     bool
	}{
		{name: "the offered one", change: func(*wire.Run) {}, ok: true},
		{name: "another digest", change: func(*wire.Run) {}, sha256: hash(nil)},
		{name: "both ways", change: func(*wire.Run) {}, both: true},
		{name: "another run", change: func(r *wire.Run) { r.More.ID = "another" }},
		{name: "another tenant", change: func(r *wire.Run) { r.Tenant = "another" }},
		{name: "another closure", change: func(r *wire.Run) { r.More.Bundle = bundle.Sum(nil).String() }},
		{name: "another begins", change: func(*wire.Run) {}, begin: "another"},
		{name: "the plain wire", change: func(r *wire.Run) { r.More, r.Source = nil, "x" }},
	} {
		t.Run(k.name, func(t *testing.T) {
			if k.both && !whole {
				return // it is the other way's case
			}
			run, more := first, *first.More
			run.More = &more
			k.change(&run)
			text, err := run.Encode()
			if err != nil {
				t.Fatal(err)
			}
			session, id := fmt.Sprint("session-", i), first.More.ID
			p := offer(t, c, session, id, first.Tenant, first.More.Bundle)
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			to := at + "at.one." + p.Member
			if !whole || k.both {
				put := message(string(text), "Tracon-Session", session, "Tracon-Part", "run", "Tracon-Offset", "0", "Tracon-Size", strconv.Itoa(len(text)))
				put.Subject = to + ".put"
				if m, err := c.RequestMsgWithContext(ctx, put); err != nil || len(m.Data) > 0 {
					t.Fatalf("got %q, %v", m.Data, err)
				}
			}
			events, err := c.SubscribeSync(at + "from." + session)
			if err != nil {
				t.Fatal(err)
			}
			begins, sum := cmp.Or(k.begin, id), cmp.Or(k.sha256, hash(text))
			begin := message(fmt.Sprintf(`{"session":%q,"run":%q,"sha256":%q}`, session, begins, sum))
			if whole {
				begin = message(string(text), "Tracon-Session", session, "Tracon-Run", begins, "Tracon-SHA256", sum)
			}
			begin.Subject, begin.Reply = to+".begin", events.Subject
			for range 2 {
				if err := c.PublishMsg(begin); err != nil {
					t.Fatal(err)
				}
			}
			for {
				m, err := events.NextMsgWithContext(ctx)
				if err != nil {
					t.Fatal(err)
				}
				_ = m.Respond(nil)
				kind := m.Header.Get("Tracon-Kind")
				if kind == "begun" || kind == "beat" {
					continue
				}
				if k.ok {
					if kind != "answer" {
						t.Errorf("got a %s: %s", kind, m.Data)
					}
					<-runs
					break
				}
				if prob, err := wire.ReadProblem(bytes.NewReader(m.Data)); kind != "problem" || err != nil || !prob.NotStarted {
					t.Errorf("R18: got a %s, %s, want a refusal", kind, m.Data)
				}
				break
			}
			if len(runs) > 0 {
				t.Errorf("R18: %+v was run", <-runs)
			}
		})
	}
}

// M12: the control plane's own key, which says everything in a pool, is let in from
// within its process alone.
func TestHostKeyStaysWithin(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one")
	c, err := nats.Connect("nats://"+g.server.Address(), key(t, g.server.Host(pool)))
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("M12: got error %v over TCP, want that it is not let in", err)
	}
	g.rawHost() // within the process it is
}
