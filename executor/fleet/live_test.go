package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/wire"
)

// showing is a runner's work that shows what it writes.
type showing func(ctx context.Context, run wire.Run, show func(wire.Output)) (wire.Answer, error)

func (g *ground) joinShowing(name string, w showing, change func(*fleet.Joining)) *fleet.Member {
	g.t.Helper()
	return g.join(name, nil, func(j *fleet.Joining) {
		j.Work = func(ctx context.Context, run wire.Run, _ bundle.Bundle, show func(wire.Output)) (wire.Answer, error) {
			return w(ctx, run, show)
		}
		if change != nil {
			change(j)
		}
	})
}

// watched is a request of 64 bytes of each stream, and what whoever follows it sees.
func (g *ground) watched(chunks int) (executor.Request, *gate.Live) {
	g.t.Helper()
	live := gate.NewLive(chunks)
	return g.request(executortest.Order{Live: live, Policy: gate.Policy{MaxOutput: 64}}), live
}

func seen(live *gate.Live) (text string) {
	live.Close()
	for c := range live.Chunks() {
		text += string(c.Data)
	}
	return text
}

func piece(run wire.Run, offset int64, data string) wire.Output {
	return wire.Output{ID: run.More.ID, Stream: wire.Stdout, Offset: offset, Data: []byte(data)}
}

// What a script writes at a runner is seen while it runs, also at one that drains
// meanwhile; the answer alone is the result, and a follower who takes nothing keeps
// nobody from it.
func TestSeen(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one")
	e := g.executor(nil)
	let := make(chan struct{})
	m := g.joinShowing("one", func(_ context.Context, run wire.Run, show func(wire.Output)) (wire.Answer, error) {
		show(piece(run, 0, "so far"))
		<-let
		for i := range int64(50) {
			show(piece(run, 6+i, "x"))
		}
		return exits(run, "the truth"), nil
	}, nil)
	g.await(e, 1)
	req, live := g.watched(1)
	type end struct {
		res executor.Result
		err error
	}
	came := make(chan end, 1)
	go func() {
		res, err := e.Execute(t.Context(), req)
		came <- end{res, err}
	}()
	select {
	case c := <-live.Chunks():
		if string(c.Data) != "so far" || c.Stream != gate.Stdout {
			t.Errorf("saw %q of %d", c.Data, c.Stream)
		}
	case got := <-came:
		t.Fatalf("it ended before anything was seen: %v", got.err)
	}
	m.Drain()
	close(let)
	if got := <-came; got.err != nil || string(got.res.Stdout) != "the truth" {
		t.Errorf("got %q, %v", got.res.Stdout, got.err)
	}
	if got := seen(live); len(got) > 1 || int64(len(got))+live.Dropped() != 50 {
		t.Errorf("B10: saw %q, and %d bytes are told as lost, want one and 49", got, live.Dropped())
	}
}

// Where nobody follows a run, no runner tells of its output.
func TestNobodyFollows(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one")
	e := g.executor(nil)
	g.joinShowing("one", func(_ context.Context, run wire.Run, show func(wire.Output)) (wire.Answer, error) {
		if show != nil {
			return wire.Answer{}, errors.New("somebody wants it")
		}
		return exits(run, ""), nil
	}, nil)
	g.await(e, 1)
	if _, err := e.Execute(t.Context(), g.request(executortest.Order{})); err != nil {
		t.Error(err)
	}
}

// R24: output that goes on is no reason to wait for a run that was cancelled, nor to go
// on with it.
func TestCancelWhileShown(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one")
	e := g.executor(nil)
	g.joinShowing("one", func(ctx context.Context, run wire.Run, show func(wire.Output)) (wire.Answer, error) {
		for i := int64(0); ctx.Err() == nil; i++ {
			show(piece(run, i, "x"))
			time.Sleep(time.Millisecond) // as a script that writes for ever, and slowly
		}
		return wire.Answer{}, ctx.Err()
	}, nil)
	g.await(e, 1)
	mine := errors.New("the caller has enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	req, live := g.watched(0)
	go func() {
		<-live.Chunks()
		cancel(mine)
	}()
	if _, err := e.Execute(ctx, req); !errors.Is(err, mine) || errors.Is(err, fleet.ErrUnconfirmed) {
		t.Errorf("got error %v, want the caller's cause alone", err)
	}
	seen(live)
}

// Case 55: a runner that dies while it is seen leaves a run of which nobody knows.
func TestGoneWhileShown(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one")
	e := g.executor(func(c *fleet.Config) { c.Lost = 3 * time.Second })
	m := g.joinShowing("one", func(ctx context.Context, run wire.Run, show func(wire.Output)) (wire.Answer, error) {
		show(piece(run, 0, "x"))
		<-ctx.Done()
		return wire.Answer{}, ctx.Err()
	}, nil)
	g.await(e, 1)
	req, live := g.watched(0)
	go func() {
		<-live.Chunks()
		fleet.Cut(m)
	}()
	if _, err := e.Execute(t.Context(), req); !errors.Is(err, fleet.ErrLost) || errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("got error %v, want ErrLost", err)
	}
	seen(live)
}

// M06: a script whose output was seen was started, whatever the runner says of it.
func TestNotStartedAfterOutput(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one")
	e := g.executor(nil)
	g.joinShowing("one", func(_ context.Context, run wire.Run, show func(wire.Output)) (wire.Answer, error) {
		show(piece(run, 0, "x"))
		return wire.Answer{}, errors.New("it was not started")
	}, func(j *fleet.Joining) {
		j.Explain = func(_ wire.Run, err error) wire.Problem {
			return wire.Problem{Code: "executor_unavailable", Detail: err.Error(), NotStarted: true}
		}
	})
	g.await(e, 1)
	req, live := g.watched(0)
	if _, err := e.Execute(t.Context(), req); !errors.Is(err, executor.ErrUnknown) || errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("M06: got error %v, want unknown", err)
	}
	if got := seen(live); got != "x" {
		t.Errorf("saw %q", got)
	}
}

// M01, M02: what a runner shows that cannot be the run's output is not seen, nor is what it
// shows behind that; it is no fault of the run. What is lost on the way is counted.
func TestLyingOutput(t *testing.T) {
	t.Parallel()
	const live, own = "1", ""
	type said struct {
		of, stream, offset, data string
	}
	for _, tt := range []struct {
		name   string
		offers string // at the place: whether it can tell of output
		says   []said
		behind bool // the answer comes first
		seen   string
		lost   int64
	}{
		{"nothing amiss", live, []said{{own, "stdout", "0", "ab"}, {own, "stderr", "2", "c"}}, false, "abc", 0},
		{"a piece is lost: what comes next may be the end of a secret (O09)", live, []said{{own, "stdout", "0", "ab"}, {own, "stdout", "9", "j"}}, false, "ab", 8},
		{"of another run", live, []said{{"another", "stdout", "0", "ab"}, {own, "stdout", "0", "c"}}, false, "c", 0},
		{"more than was asked for", live, []said{{own, "stdout", "0", "ab"}, {own, "stdout", "2", string(make([]byte, 64))}, {own, "stdout", "2", "c"}}, false, "ab", 0},
		{"twice", live, []said{{own, "stdout", "0", "ab"}, {own, "stdout", "0", "ab"}}, false, "ab", 0},
		{"a stream that is none", live, []said{{own, "stdin", "0", "ab"}}, false, "", 0},
		{"an offset that is none", live, []said{{own, "stdout", "-1", "ab"}, {own, "stdout", "", "ab"}, {own, "stdout", "9223372036854775807", "ab"}}, false, "", 0},
		{"behind the end", live, []said{{own, "stdout", "0", "ab"}}, true, "", 0},
		{"a runner that did not say that it can", "", []said{{own, "stdout", "0", "ab"}}, false, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, "one")
			e := g.executor(nil)
			handed, wanted := make(chan []byte, 1), make(chan string, 1)
			begun := func(c *nats.Conn, m *nats.Msg) {
				wanted <- m.Header.Get("Tracon-Live")
				text := <-handed
				run, err := wire.ReadRun(bytes.NewReader(text), int64(len(text)))
				if err != nil {
					t.Error(err)
					return
				}
				say := func(m2 *nats.Msg) {
					m2.Subject = m.Reply
					_ = c.PublishMsg(m2)
				}
				b, err := exits(run, "the truth").Encode()
				if err != nil {
					t.Error(err)
				}
				answer := message(string(b), "Tracon-Kind", "answer", "Tracon-Run", run.More.ID, "Tracon-Size", strconv.Itoa(len(b)), "Tracon-SHA256", hash(b))
				if tt.behind {
					say(answer)
				}
				for _, s := range tt.says {
					if s.of == own {
						s.of = run.More.ID
					}
					say(message(s.data, "Tracon-Kind", "output", "Tracon-Run", s.of, "Tracon-Stream", s.stream, "Tracon-Offset", s.offset))
				}
				if !tt.behind {
					say(answer)
				}
			}
			g.rawRunnerThat("one", func(c *nats.Conn) map[string]func(*nats.Msg) *nats.Msg {
				return map[string]func(*nats.Msg) *nats.Msg{
					at + "offer.>": func(*nats.Msg) *nats.Msg {
						return message(`{"runner":"one","member":"0","lacks":false}`, "Tracon-Live", tt.offers)
					},
					at + "at.one.0.put":   func(m *nats.Msg) *nats.Msg { handed <- m.Data; return message("") },
					at + "at.one.0.begin": func(m *nats.Msg) *nats.Msg { begun(c, m); return nil },
				}
			})
			req, live := g.watched(0)
			res, err := e.Execute(t.Context(), req)
			if err != nil || string(res.Stdout) != "the truth" {
				t.Errorf("got %q, %v", res.Stdout, err)
			}
			if got := <-wanted; got != tt.offers {
				t.Errorf("the run was begun with %q, want %q", got, tt.offers)
			}
			if got := seen(live); got != tt.seen || live.Dropped() != tt.lost {
				t.Errorf("saw %q, %d bytes lost; want %q, %d", got, live.Dropped(), tt.seen, tt.lost)
			}
		})
	}
}
