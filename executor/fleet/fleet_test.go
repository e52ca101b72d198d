package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/broker"
	"github.com/tracon-go/tracon/wire"
)

// patience guards against a test that hangs, and is no measure of anything.
const patience = 2 * time.Minute

// A ground is a server with one pool, and a control plane in it.
type ground struct {
	t      testing.TB
	server *broker.Server
	seeds  map[string][]byte // by runner
	world  *executortest.World
}

const pool = "main pool"

// newGround starts a server that lets the named runners in.
func newGround(t testing.TB, runners ...string) *ground {
	t.Helper()
	g := &ground{t: t, seeds: map[string][]byte{}, world: executortest.NewWorld(map[string]gate.Interpreter{"py": {Name: "python-3.12"}})}
	p := broker.Pool{Name: pool}
	p.HostHear, p.HostSay = fleet.HostSubjects(pool)
	for _, name := range runners {
		p.Members = append(p.Members, g.member(pool, name))
	}
	var err error
	if g.server, err = broker.Start(broker.Config{Name: "test", Listen: "127.0.0.1:0", Pools: []broker.Pool{p}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.server.Close)
	return g
}

func (g *ground) member(pool, name string) broker.Member {
	g.t.Helper()
	seed, public, err := fleet.NewSeed()
	if err != nil {
		g.t.Fatal(err)
	}
	g.seeds[name] = seed
	m := broker.Member{Name: name, Key: public}
	m.Hear, m.Say = fleet.RunnerSubjects(pool, name)
	return m
}

// executor is a control plane that waits for as long as a busy host needs, where change
// does not say otherwise.
func (g *ground) executor(change func(*fleet.Config)) *fleet.Executor {
	g.t.Helper()
	c := fleet.Config{Tier: grant.Process, Pools: []fleet.Pool{{Name: pool, Others: true, Link: g.host(pool)}}, Wait: patience, Lost: patience, Reply: patience}
	if change != nil {
		change(&c)
	}
	e, err := fleet.New(c)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = e.Close() })
	return e
}

func (g *ground) host(pool string) fleet.Link {
	return fleet.Link{Within: g.server, Seed: g.server.Host(pool)}
}

// work is what a test's runner does of a run.
type work func(ctx context.Context, run wire.Run, closure bundle.Bundle) (wire.Answer, error)

func (g *ground) join(name string, w work, change func(*fleet.Joining)) *fleet.Member {
	g.t.Helper()
	c := fleet.Joining{
		Link: fleet.Link{URLs: []string{"nats://" + g.server.Address()}, Seed: g.seeds[name]},
		Pool: pool, Name: name, Runtimes: []string{"python-3.12"}, Tier: grant.Sandbox, Beat: 50 * time.Millisecond, Lost: patience, Place: patience,
		Work: func(ctx context.Context, run wire.Run, closure bundle.Bundle, _ func(wire.Output)) (wire.Answer, error) {
			return w(ctx, run, closure)
		},
		Info: func(context.Context) (wire.Info, error) { return wire.Info{Slots: 4}, nil },
	}
	if change != nil {
		change(&c)
	}
	m, err := fleet.Join(c)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		ctx, stop := context.WithCancel(context.Background())
		stop()
		_ = m.Close(ctx)
	})
	return m
}

// await waits until the executor sees n runners.
func (g *ground) await(e *fleet.Executor, n int) []fleet.Runner {
	g.t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		all, err := e.Runners(g.t.Context())
		if err == nil && len(all) == n {
			return all
		}
		time.Sleep(10 * time.Millisecond)
	}
	g.t.Fatalf("there are not %d runners after %v", n, patience)
	return nil
}

// drain drains the runner of that name, of which there is one. On a busy host its answer to
// who is there may come when it is no longer waited for.
func (g *ground) drain(e *fleet.Executor, name string) {
	g.t.Helper()
	for until := time.Now().Add(patience); ; {
		n, err := e.Drain(g.t.Context(), name)
		if n == 1 && err == nil {
			return
		}
		if n > 1 || time.Now().After(until) {
			g.t.Fatalf("M10: draining got %d, %v, want 1", n, err)
		}
	}
}

func (g *ground) request(o executortest.Order) executor.Request {
	g.t.Helper()
	if o.Files == nil {
		o.Files = []bundle.File{{Path: "main.py", Data: []byte("print(1)\n")}}
	}
	o.Script, o.Mode = "main.py", gate.Argv
	req, err := g.world.Admit(g.t.Context(), o)
	if err != nil {
		g.t.Fatal(err)
	}
	return req
}

// exits answers the run as a script that printed out and exited with code 0.
func exits(run wire.Run, out string) wire.Answer {
	code := 0
	return wire.Answer{ExitCode: &code, StandardOutput: out, More: &wire.AnswerMore{
		ID: run.More.ID, Bundle: run.More.Bundle, Ending: wire.Ending{Kind: "exited"}, Tier: "sandbox"}}
}

func echo(_ context.Context, run wire.Run, _ bundle.Bundle) (wire.Answer, error) {
	return exits(run, "hello"), nil
}

// R1, R21: a run reaches one runner, with the very closure, and its answer comes back.
func TestRun(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one")
	e := g.executor(nil)
	var mu sync.Mutex
	var got []bundle.Bundle
	g.join("one", func(_ context.Context, run wire.Run, closure bundle.Bundle) (wire.Answer, error) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, closure)
		return exits(run, "hello"), nil
	}, nil)
	g.await(e, 1)
	req := g.request(executortest.Order{})
	res, err := e.Execute(t.Context(), req)
	if err != nil || string(res.Stdout) != "hello" || res.Ending != executor.Exited(0) {
		t.Fatalf("got %q, %v, %v", res.Stdout, res.Ending, err)
	}
	if len(got) != 1 || got[0].Digest() != req.Digest() {
		t.Errorf("R21, B1: the runner got %d runs, want one of closure %v", len(got), req.Digest())
	}
	if _, err := e.Execute(t.Context(), executor.Request{}); err != executor.ErrInvalidRequest {
		t.Errorf("R18: got error %v for the zero Request", err)
	}
}

// The closure is handed over once; what is larger than a message travels in pieces,
// either way.
func TestLarge(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one")
	e := g.executor(nil)
	large := strings.Repeat("x", 5<<18)
	g.join("one", func(_ context.Context, run wire.Run, _ bundle.Bundle) (wire.Answer, error) {
		a := exits(run, large)
		a.More.Outputs = []wire.File{{Path: "a.bin", Data: bytes.Repeat([]byte{7}, 2<<20)}}
		return a, nil
	}, nil)
	g.await(e, 1)
	req := g.request(executortest.Order{
		Files:  []bundle.File{{Path: "main.py", Data: []byte("print(1)\n")}, {Path: "data.bin", Data: bytes.Repeat([]byte{1, 2, 3}, 1<<19)}},
		Inputs: []bundle.File{{Path: "in.bin", Data: bytes.Repeat([]byte{9}, 2<<20)}},
		Policy: gate.Policy{MaxOutput: 4 << 20},
	})
	for range 2 {
		res, err := e.Execute(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if string(res.Stdout) != large || len(res.Outputs) != 1 || len(res.Outputs[0].Data) != 2<<20 {
			t.Errorf("got %d bytes of output and %d files", len(res.Stdout), len(res.Outputs))
		}
	}
}

// Case 54, R21, R26, M06: what is certain not to have started is told apart from what is not known,
// and nothing is ever sent a second time.
func TestFailures(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		work    work
		explain func(wire.Run, error) wire.Problem
		alone   bool // no runner is there
		policy  gate.Policy
		not     []error
		want    error
	}{
		{name: "no runner", alone: true, want: fleet.ErrNoRunner},
		{name: "the runner refuses", work: func(context.Context, wire.Run, bundle.Bundle) (wire.Answer, error) {
			return wire.Answer{}, errors.New("a gate said no")
		}, explain: func(_ wire.Run, err error) wire.Problem {
			return wire.Problem{Code: "grant", Detail: err.Error(), NotStarted: true}
		}, want: fleet.ErrNotStarted, not: []error{executor.ErrUnknown}},
		{name: "the runner failed", work: func(context.Context, wire.Run, bundle.Bundle) (wire.Answer, error) {
			return wire.Answer{}, errors.New("broken")
		}, want: executor.ErrUnknown, not: []error{executor.ErrUnavailable}},
		{name: "the runner panics", work: func(context.Context, wire.Run, bundle.Bundle) (wire.Answer, error) { panic("broken") },
			want: executor.ErrUnknown, not: []error{executor.ErrUnavailable}},
		{name: "M01: an answer of another run", work: func(_ context.Context, run wire.Run, _ bundle.Bundle) (wire.Answer, error) {
			a := exits(run, "")
			a.More.ID = "another"
			return a, nil
		}, want: executor.ErrUnknown, not: []error{executor.ErrUnavailable}},
		{name: "M01: an answer of another closure", work: func(_ context.Context, run wire.Run, _ bundle.Bundle) (wire.Answer, error) {
			a := exits(run, "")
			a.More.Bundle = bundle.Sum(nil).String()
			return a, nil
		}, want: executor.ErrUnknown, not: []error{executor.ErrUnavailable}},
		{name: "M02: an answer that is larger than was asked for", work: func(_ context.Context, run wire.Run, _ bundle.Bundle) (wire.Answer, error) {
			return exits(run, strings.Repeat("x", 4<<20)), nil
		}, policy: gate.Policy{MaxOutput: 4096, MaxOutputs: 4096, MaxOutputFiles: 1}, want: executor.ErrUnknown, not: []error{executor.ErrUnavailable}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, "one")
			e := g.executor(nil)
			starts := 0
			if !c.alone {
				g.join("one", func(ctx context.Context, run wire.Run, b bundle.Bundle) (wire.Answer, error) {
					starts++
					return c.work(ctx, run, b)
				}, func(j *fleet.Joining) { j.Explain = c.explain })
				g.await(e, 1)
			}
			_, err := e.Execute(t.Context(), g.request(executortest.Order{Policy: c.policy}))
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got error %v, want %v", err, c.want)
			}
			for _, not := range c.not {
				if errors.Is(err, not) {
					t.Errorf("error %v wraps %v", err, not)
				}
			}
			if starts > 1 {
				t.Errorf("R21: the run was started %d times", starts)
			}
		})
	}
}

// R22, R24: the caller's cancel reaches the runner, and is told with its own cause.
func TestCancel(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one")
	e := g.executor(nil)
	begun, cause := make(chan struct{}), make(chan error, 1)
	g.join("one", func(ctx context.Context, _ wire.Run, _ bundle.Bundle) (wire.Answer, error) {
		close(begun)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return wire.Answer{}, ctx.Err()
	}, nil)
	g.await(e, 1)
	mine := errors.New("the caller has enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-begun; cancel(mine) }()
	_, err := e.Execute(ctx, g.request(executortest.Order{}))
	if !errors.Is(err, mine) || errors.Is(err, fleet.ErrUnconfirmed) {
		t.Errorf("got error %v, want the caller's cause alone", err)
	}
	if got := <-cause; got != fleet.ErrUnwanted {
		t.Errorf("the runner's work was stopped for %v", got)
	}
}

// M07: a runner that goes on although it was told to stop is told of.
func TestCancelUnconfirmed(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one")
	e := g.executor(func(c *fleet.Config) { c.Lost = 2 * time.Second })
	begun, let := make(chan struct{}), make(chan struct{})
	g.join("one", func(context.Context, wire.Run, bundle.Bundle) (wire.Answer, error) {
		close(begun)
		<-let
		return wire.Answer{}, errors.New("late")
	}, func(j *fleet.Joining) { j.Lost = 2 * time.Second })
	defer close(let)
	g.await(e, 1)
	mine := errors.New("the caller has enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-begun; cancel(mine) }()
	_, err := e.Execute(ctx, g.request(executortest.Order{}))
	if !errors.Is(err, mine) || !errors.Is(err, fleet.ErrUnconfirmed) {
		t.Errorf("got error %v, want the cause and ErrUnconfirmed", err)
	}
}

// Case 55: a control plane that is gone has the runner stop the script; a runner that
// is gone is unknown before the deadline.
func TestGone(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one")
	e := g.executor(func(c *fleet.Config) { c.Lost = 3 * time.Second })
	begun, cause := make(chan struct{}, 2), make(chan error, 2)
	m := g.join("one", func(ctx context.Context, _ wire.Run, _ bundle.Bundle) (wire.Answer, error) {
		begun <- struct{}{}
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return wire.Answer{}, ctx.Err()
	}, func(j *fleet.Joining) { j.Lost = 3 * time.Second })
	g.await(e, 1)

	came := make(chan error, 1)
	go func() {
		_, err := e.Execute(t.Context(), g.request(executortest.Order{}))
		came <- err
	}()
	<-begun
	_ = e.Close()
	if err := <-came; !errors.Is(err, executor.ErrUnknown) || errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("got error %v, want unknown", err)
	}
	if got := <-cause; got != fleet.ErrHostLost {
		t.Errorf("the runner stopped for %v, want %v", got, fleet.ErrHostLost)
	}

	again := g.executor(func(c *fleet.Config) { c.Lost = 3 * time.Second })
	go func() {
		_, err := again.Execute(t.Context(), g.request(executortest.Order{}))
		came <- err
	}()
	<-begun
	fleet.Cut(m) // as a crash does: nothing more is said
	if err := <-came; !errors.Is(err, fleet.ErrLost) || errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("case 55: got error %v, want ErrLost", err)
	}
}

// A runner takes as many runs as it has places; the others wait for one, and each is
// run once.
func TestPlaces(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one", "two")
	e := g.executor(nil)
	var mu sync.Mutex
	now, most, runs := map[string]int{}, map[string]int{}, map[string]int{}
	for _, name := range []string{"one", "two"} {
		g.join(name, func(_ context.Context, run wire.Run, _ bundle.Bundle) (wire.Answer, error) {
			mu.Lock()
			runs[run.More.ID]++
			now[name]++
			most[name] = max(most[name], now[name])
			mu.Unlock()
			time.Sleep(5 * time.Millisecond) // the work
			mu.Lock()
			now[name]--
			mu.Unlock()
			return exits(run, ""), nil
		}, func(j *fleet.Joining) {
			j.Info = func(context.Context) (wire.Info, error) { return wire.Info{Slots: 2}, nil }
		})
	}
	g.await(e, 2)
	var all sync.WaitGroup
	const n = 40
	for range n {
		req := g.request(executortest.Order{})
		all.Go(func() {
			if _, err := e.Execute(t.Context(), req); err != nil {
				t.Errorf("got error %v", err)
			}
		})
	}
	all.Wait()
	if len(runs) != n || most["one"] > 2 || most["two"] > 2 {
		t.Errorf("%d runs were made, want %d; at once %v, at most 2 each", len(runs), n, most)
	}
	for id, times := range runs {
		if times != 1 {
			t.Errorf("R21: run %s was made %d times", id, times)
		}
	}
}

// A drained runner takes no more runs, and the others do.
func TestDrain(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one", "two")
	e := g.executor(func(c *fleet.Config) { c.Wait = time.Millisecond })
	g.join("one", echo, nil)
	g.await(e, 1)
	g.drain(e, "one")
	if all := g.await(e, 1); !all[0].Info.Draining || all[0].Pool != pool || all[0].Info.Name != "one" {
		t.Errorf("got %+v, want a runner that drains", all)
	}
	if _, err := e.Execute(t.Context(), g.request(executortest.Order{})); !errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("got error %v, want not started", err)
	}
	if _, err := e.Drain(t.Context(), "nobody"); !errors.Is(err, fleet.ErrNotThere) {
		t.Errorf("got error %v, want ErrNotThere", err)
	}
}

// A runner takes the runs of its tiers and labels, and no others.
func TestSelection(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one")
	g.join("one", echo, func(j *fleet.Joining) { j.Labels = []string{"gpu.large"} })
	for _, c := range []struct {
		name, label string
		tier        grant.Tier
		ok          bool
	}{
		{"any", "", grant.Process, true}, {"own tier", "", grant.Sandbox, true}, {"own label", "gpu.large", grant.Process, true},
		{"a higher tier", "", grant.VM, false}, {"another label", "gpu", grant.Process, false}, {"a label that looks like none", "-", grant.Process, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := g.executor(func(f *fleet.Config) { f.Tier, f.Pools[0].Label = c.tier, c.label })
			g.await(e, 1)
			_, err := e.Execute(t.Context(), g.request(executortest.Order{}))
			if ok := err == nil; ok != c.ok || !ok && !errors.Is(err, fleet.ErrNoRunner) {
				t.Errorf("got error %v, want it to run: %t", err, c.ok)
			}
		})
	}
}

// Zero is closed: a tenant without a pool runs nothing, and a Config without pools is none.
func TestNoPool(t *testing.T) {
	t.Parallel()
	g := newGround(t, "one")
	e := g.executor(func(c *fleet.Config) { c.Pools[0].Others, c.Pools[0].Tenants = false, []string{"somebody"} })
	if _, err := e.Execute(t.Context(), g.request(executortest.Order{})); !errors.Is(err, fleet.ErrNoPool) {
		t.Errorf("got error %v, want ErrNoPool", err)
	}
	for i, c := range []fleet.Config{{}, {Tier: grant.Sandbox}, {Tier: grant.Sandbox, Pools: []fleet.Pool{{Name: "x"}}},
		{Tier: grant.Sandbox, Pools: []fleet.Pool{{Name: "x", Others: true}}},
		{Tier: grant.Sandbox, Pools: []fleet.Pool{{Name: "x", Others: true, Link: fleet.Link{URLs: []string{"nats://192.0.2.1:4222"}, Seed: g.seeds["one"]}}}}} {
		if _, err := fleet.New(c); err == nil {
			t.Errorf("config %d was taken", i)
		}
	}
	if _, err := fleet.Join(fleet.Joining{}); err == nil {
		t.Error("the zero Joining joined")
	}
}
