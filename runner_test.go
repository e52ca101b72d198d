package tracon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/store/memstore"
	"github.com/tracon-go/tracon/toolcall"
)

// skills is a gate.Contents, gate.Declarer and gate.Schemas of one skill "s"
// with one script "a.sh" that takes a list of strings.
type skills struct{ body []byte }

func (skills) Find(_ context.Context, _, skill, script string) (gate.Origin, error) {
	if skill != "s" || script != "a.sh" {
		return 0, gate.ErrUnknown
	}
	return gate.FileScript, nil
}

func (s skills) Read(_ context.Context, _, _ string, l bundle.Limits) (bundle.Bundle, error) {
	return bundle.New([]bundle.File{{Path: "a.sh", Data: s.body}}, nil, l)
}

func (skills) Declare(bundle.Bundle, string) (gate.Declaration, error) {
	return gate.Declaration{Mode: gate.Argv}, nil
}

func (skills) Check(_ context.Context, _, value []byte) ([]byte, error) {
	var out bytes.Buffer
	err := json.Compact(&out, value)
	return out.Bytes(), err
}

// house is one host: stores, gate and runner over the executor e.
type house struct {
	*tracon.Runner
	st  *memstore.Store
	log *audit.Log
}

func newHouse(t *testing.T, e executor.Executor, change func(*tracon.Config)) house {
	t.Helper()
	st := memstore.New()
	log := audit.NewLog(st)
	sk := skills{[]byte("echo")}
	g := gate.New(gate.Config{
		Hosts:    gate.Static{Enabled: true, Interpreters: map[string]gate.Interpreter{"sh": {Name: "sh"}}},
		Policies: st, Contents: sk, Declarer: sk, Schemas: sk, Grants: st, Log: log,
	})
	c := tracon.Config{Gate: g, Executor: e, Calls: st, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&c)
	}
	r, err := tracon.New(c)
	if err != nil {
		t.Fatal(err)
	}
	h := house{r, st, log}
	for _, tenant := range []string{"a", "b"} {
		h.open(t, tenant, gate.Policy{Enabled: true, Interpreters: []string{"sh"}, Timeout: 10 * time.Second, MaxOutput: 64})
		h.grant(t, tenant)
	}
	return h
}

func (h house) open(t *testing.T, tenant string, p gate.Policy) {
	t.Helper()
	_, revision, err := h.st.PolicyAt(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.log.Commit(t.Context(), audit.Entry{Tenant: tenant, Kind: audit.Policy}, func(ctx context.Context, entry audit.Pending) error {
		return h.st.SetPolicy(ctx, tenant, p, revision, entry)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (h house) grant(t *testing.T, tenant string) grant.Grant {
	t.Helper()
	content, err := skills{[]byte("echo")}.Read(t.Context(), "", "", bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	g := grant.Grant{ID: id.New(), Ref: grant.Ref{Tenant: tenant, Skill: "s", Script: "a.sh"}, Pin: content.Digest(),
		GrantedBy: "op", Granted: time.Now(), MinTier: grant.Process}
	_, err = h.log.Commit(t.Context(), audit.Entry{Tenant: tenant, Kind: audit.Granted}, func(ctx context.Context, entry audit.Pending) error {
		return h.st.AddGrant(ctx, g, content, "", entry)
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (h house) revoke(t *testing.T, g grant.Grant) {
	t.Helper()
	_, err := h.log.Commit(t.Context(), audit.Entry{Tenant: g.Ref.Tenant, Kind: audit.Revoked}, func(ctx context.Context, entry audit.Pending) error {
		return h.st.RevokeGrant(ctx, g.Ref.Tenant, g.ID, time.Now(), "op", entry)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func call(tenant string) gate.Call {
	return gate.Call{Tenant: tenant, Actor: "model", Skill: "s", Script: "a.sh"}
}

// endings returns what the log says came of each admitted call, in order.
func (h house) endings(t *testing.T) (endings []string) {
	t.Helper()
	if _, err := h.log.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
	for leaf, err := range h.log.Entries(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if leaf.Entry.Kind == audit.Ending {
			endings = append(endings, leaf.Entry.Fact("ending"))
		}
	}
	return endings
}

// check compares the log's endings, and that each admitted call has one record that says the same.
func (h house) check(t *testing.T, want ...string) {
	t.Helper()
	got := h.endings(t)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("endings in the log = %v, want %v", got, want)
	}
	var records []string
	for _, tenant := range []string{"a", "b"} {
		calls, err := h.st.Calls(t.Context(), tenant, toolcall.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			records = append(records, c.Ending)
		}
	}
	if len(records) != len(want) {
		t.Errorf("%d tool-call records %v, want one for each of %d endings", len(records), records, len(want))
	}
}

func exits(code int) executor.Func {
	return func(context.Context, executor.Request) (executor.Result, error) {
		return executor.Result{Ending: executor.Exited(code)}, nil
	}
}

// sleeps runs for d and stops when it is told to.
func sleeps(d time.Duration) executor.Func {
	return func(ctx context.Context, _ executor.Request) (executor.Result, error) {
		select {
		case <-time.After(d):
			return executor.Result{Ending: executor.Exited(0)}, nil
		case <-ctx.Done():
			return executor.Result{}, context.Cause(ctx)
		}
	}
}

func deaf(d time.Duration) executor.Func {
	return func(context.Context, executor.Request) (executor.Result, error) {
		time.Sleep(d)
		return executor.Result{Ending: executor.Exited(0)}, nil
	}
}

// R25, R26, case 49: whatever an executor does, an ending of the right kind comes of it.
func TestEndings(t *testing.T) {
	secret := errors.New("dial /var/run/secret.sock: token 12345")
	tests := []struct {
		name string
		exec executor.Func
		code string
		is   error
		log  string
	}{
		{"exits 0", exits(0), "", nil, "exited"},
		{"exits 3 (R27)", exits(3), "", nil, "exited"},
		{"is killed", result(executor.Signaled(9)), "", nil, "signaled"},
		{"says timed out (R23)", result(executor.Expired()), "timed_out", nil, "timed_out"},
		{"says out of memory", result(executor.OutOfMemory()), "out_of_memory", nil, "out_of_memory"},
		{"says policy violation", result(executor.PolicyViolation()), "policy_violation", nil, "policy_violation"},
		{"says output flood", result(executor.OutputFlood()), "output_flood", nil, "output_flood"},
		{"reports no ending", result(executor.Ending{}), "executor_failed", tracon.ErrExecutorFailed, "executor_failed"},
		{"fails", func(context.Context, executor.Request) (executor.Result, error) { return executor.Result{}, secret },
			"executor_failed", tracon.ErrExecutorFailed, "executor_failed"},
		{"claims a cancellation that nobody made", func(context.Context, executor.Request) (executor.Result, error) {
			return executor.Result{}, context.Canceled
		}, "executor_failed", tracon.ErrExecutorFailed, "executor_failed"},
		{"could not start", func(context.Context, executor.Request) (executor.Result, error) {
			return executor.Result{}, fmt.Errorf("%w: %w", executor.ErrUnavailable, secret)
		}, "executor_unavailable", tracon.ErrExecutorUnavailable, "executor_unavailable"},
		{"panics", func(context.Context, executor.Request) (executor.Result, error) { panic(secret) },
			"executor_failed", tracon.ErrExecutorFailed, "executor_failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, tt.exec, nil)
				out, err := h.Run(t.Context(), call("a"))
				if !errors.Is(err, tt.is) || (err == nil) != (tt.is == nil) {
					t.Errorf("err = %v, want %v", err, tt.is)
				}
				if got := tracon.Code(out, err); got != tt.code {
					t.Errorf("Code = %q, want %q", got, tt.code)
				}
				h.check(t, tt.log)
				text := tracon.ModelText(out, err)
				if strings.Contains(text, "secret") || strings.Contains(text, "12345") {
					t.Errorf("R26: the model reads the executor's own words: %q", text)
				}
				if s := h.Stats(); s.InUse != 0 || s.Waiting != 0 {
					t.Errorf("a slot did not come back: %+v", s)
				}
			})
		})
	}
}

func result(e executor.Ending) executor.Func {
	return func(context.Context, executor.Request) (executor.Result, error) {
		return executor.Result{Ending: e}, nil
	}
}

// R17, R22: an executor that ignores its cancellation is given up at timeout +
// grace, the run is timed out and abandoned, and the slot comes back.
func TestWaitLimit(t *testing.T) {
	for name, exec := range map[string]executor.Func{
		"ignores its cancellation": deaf(time.Hour),
		"answers its cancellation with an error": func(ctx context.Context, _ executor.Request) (executor.Result, error) {
			<-ctx.Done()
			return executor.Result{}, context.Cause(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, exec, func(c *tracon.Config) { c.Slots = 1 })
				start := time.Now()
				out, err := h.Run(t.Context(), call("a"))
				if err != nil || !out.Abandoned || !out.Ending.TimedOut() || tracon.Code(out, err) != "timed_out" {
					t.Errorf("out = %+v, err = %v; want timed out and abandoned", out, err)
				}
				if got, want := time.Since(start), 15*time.Second; got != want {
					t.Errorf("waited %v, want timeout + grace = %v", got, want)
				}
				if s := h.Stats(); s.InUse != 0 {
					t.Errorf("the slot is still held: %+v", s)
				}
				if name == "ignores its cancellation" {
					if s := h.Stats(); s.Abandoned != 1 {
						t.Errorf("Abandoned = %d, want 1: the host shows how much is still out", s.Abandoned)
					}
				}
				h.check(t, "timed_out")
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				if s := h.Stats(); s.Abandoned != 0 {
					t.Errorf("Abandoned = %d after the executor came back, want 0", s.Abandoned)
				}
			})
		})
	}
}

// R17, R22, case 50: the caller who leaves gets its answer at once; the slot
// stays taken until the executor has answered; the log says cancelled.
func TestCallerLeaves(t *testing.T) {
	left := errors.New("user left")
	t.Run("before the gates", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t, exits(0), nil)
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(left)
			out, err := h.Run(ctx, call("a"))
			if !errors.Is(err, tracon.ErrCancelled) || !errors.Is(err, left) || tracon.Code(out, err) != "cancelled" {
				t.Errorf("err = %v, want cancelled with the caller's cause", err)
			}
			h.check(t)
		})
	})
	t.Run("in the queue", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t, sleeps(8*time.Second), func(c *tracon.Config) { c.Slots = 1 })
			go h.Run(t.Context(), call("b"))
			synctest.Wait()
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(left) })
			if _, err := h.Run(ctx, call("a")); !errors.Is(err, tracon.ErrCancelled) || !errors.Is(err, left) {
				t.Errorf("err = %v, want cancelled", err)
			}
			time.Sleep(time.Minute)
			h.check(t, "cancelled", "exited")
		})
	})
	t.Run("by its own deadline, which is no timeout (R24)", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t, sleeps(8*time.Second), nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			out, err := h.Run(ctx, call("a"))
			if !errors.Is(err, tracon.ErrCancelled) || tracon.Code(out, err) != "cancelled" {
				t.Errorf("err = %v, want cancelled", err)
			}
			synctest.Wait()
			h.check(t, "cancelled")
		})
	})
	t.Run("while it runs and the executor is deaf", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t, deaf(8*time.Second), func(c *tracon.Config) { c.Slots = 1 })
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(left) })
			start := time.Now()
			if _, err := h.Run(ctx, call("a")); !errors.Is(err, left) {
				t.Errorf("err = %v, want the caller's cause", err)
			}
			if got := time.Since(start); got != time.Second {
				t.Errorf("answered after %v, want at once", got)
			}
			if s := h.Stats(); s.InUse != 1 {
				t.Errorf("the slot was given back while the script runs: %+v", s)
			}
			if _, err := h.Run(t.Context(), call("b")); err != nil {
				t.Error(err)
			}
			if got, want := time.Since(start), 16*time.Second; got != want {
				t.Errorf("the second run ended at %v, want %v: it has to wait for the slot", got, want)
			}
			h.check(t, "cancelled", "exited")
		})
	})
	t.Run("after the exit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t, exits(0), nil)
			ctx, cancel := context.WithCancelCause(t.Context())
			_, err := h.Run(ctx, call("a"))
			cancel(left)
			if err != nil {
				t.Error(err)
			}
			h.check(t, "exited")
		})
	})
}

// R16: where the log cannot be written, nothing runs.
func TestNoLogNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		h := newHouse(t, executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
			calls.Add(1)
			return executor.Result{Ending: executor.Exited(0)}, nil
		}), nil)
		h.st.Close()
		out, err := h.Run(t.Context(), call("a"))
		if err == nil || calls.Load() != 0 {
			t.Errorf("err = %v, executor called %d times; want an error and no call", err, calls.Load())
		}
		if tracon.ModelText(out, err) == "" {
			t.Error("the model gets no word")
		}
	})
}

// An ending that cannot be written is an error, and loses no output.
func TestEndingNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h house
		h = newHouse(t, executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
			h.st.Close()
			return executor.Result{Ending: executor.Exited(0), Stdout: []byte("hi")}, nil
		}), nil)
		out, err := h.Run(t.Context(), call("a"))
		if !errors.Is(err, audit.ErrUnavailable) || tracon.Code(out, err) != "audit_unavailable" || out.Stdout != "hi" {
			t.Errorf("out = %+v, err = %v; want the output and audit.ErrUnavailable", out, err)
		}
	})
}

// Two calls that come with one id both have their ending in the log.
func TestOneIDTwice(t *testing.T) {
	h := newHouse(t, exits(0), nil)
	c := call("a")
	c.ID = id.New()
	for range 2 {
		if _, err := h.Run(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	if got := h.endings(t); len(got) != 2 {
		t.Errorf("endings in the log = %v, want two", got)
	}
}

// Case 46: a grant that is revoked while the call waits for a slot does not run.
func TestRevokedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		h := newHouse(t, executor.Func(func(ctx context.Context, req executor.Request) (executor.Result, error) {
			calls.Add(1)
			return sleeps(5*time.Second)(ctx, req)
		}), func(c *tracon.Config) { c.Slots = 1 })
		go h.Run(t.Context(), call("b"))
		synctest.Wait()
		granted, err := h.st.Grant(t.Context(), grant.Ref{Tenant: "a", Skill: "s", Script: "a.sh"})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { h.revoke(t, granted) })
		_, err = h.Run(t.Context(), call("a"))
		if d, ok := errors.AsType[*gate.Denial](err); !ok || d.Gate != gate.GrantGate {
			t.Errorf("err = %v, want a denial of the gate %q", err, gate.GrantGate)
		}
		if calls.Load() != 1 {
			t.Errorf("the executor was called %d times, want 1", calls.Load())
		}
		h.check(t, "exited", "refused")
	})
}

// Case 51: one tenant's flood does not keep another from its fair share.
func TestFairBetweenTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		h := newHouse(t, executor.Func(func(ctx context.Context, req executor.Request) (executor.Result, error) {
			mu.Lock()
			order = append(order, req.Tenant())
			mu.Unlock()
			return sleeps(time.Second)(ctx, req)
		}), func(c *tracon.Config) {
			c.Slots, c.Queue, c.QueuePerTenant, c.SlotWait = 1, 2048, 1024, time.Hour
		})
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { h.Run(t.Context(), call("a")) })
		}
		synctest.Wait()
		wg.Go(func() { h.Run(t.Context(), call("b")) })
		wg.Wait()
		if len(order) != 1001 {
			t.Fatalf("%d runs, want 1001", len(order))
		}
		for i, tenant := range order {
			if tenant == "b" && i > 1 {
				t.Errorf("tenant b started as number %d, want it next", i+1)
			}
		}
	})
}

// Case 52: a full queue is busy before the gates, writes nothing, and says how long to wait.
func TestQueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, sleeps(5*time.Second), func(c *tracon.Config) { c.Slots, c.Queue, c.QueuePerTenant = 1, 2, 2 })
		for range 3 { // one runs, two wait
			go h.Run(t.Context(), call("a"))
			synctest.Wait()
		}
		tip, _ := h.st.Tip(t.Context())
		out, err := h.Run(t.Context(), call("a"))
		busy, ok := errors.AsType[*tracon.BusyError](err)
		if !ok || busy.RetryAfter < time.Second || tracon.Code(out, err) != "busy" {
			t.Errorf("err = %v, want busy with a time", err)
		}
		if now, _ := h.st.Tip(t.Context()); now.Size() != tip.Size() {
			t.Errorf("a flood wrote %d entries to the log, want none", now.Size()-tip.Size())
		}
		if _, err := h.Run(t.Context(), call("b")); !errors.Is(err, tracon.ErrBusy) {
			t.Errorf("err = %v: the queue is full for all", err)
		}
		time.Sleep(time.Minute)
		h.check(t, "exited", "exited", "exited")
	})
}

// A flood of one tenant leaves room in the queue for others (B10).
func TestQueueShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, sleeps(time.Second), func(c *tracon.Config) { c.Slots, c.Queue, c.SlotWait = 1, 8, time.Hour })
		for range 100 {
			go h.Run(t.Context(), call("a"))
		}
		synctest.Wait()
		if _, err := h.Run(t.Context(), call("b")); err != nil {
			t.Errorf("tenant b: %v; want a place beside the flood", err)
		}
		time.Sleep(time.Minute)
	})
}

// A call that finds no slot in time is busy; it was admitted, so the log has its ending.
func TestSlotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, sleeps(9*time.Second), func(c *tracon.Config) { c.Slots, c.SlotWait = 1, 3*time.Second })
		go h.Run(t.Context(), call("b"))
		synctest.Wait()
		start := time.Now()
		if _, err := h.Run(t.Context(), call("a")); !errors.Is(err, tracon.ErrBusy) {
			t.Errorf("err = %v, want busy", err)
		}
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("waited %v, want 3s", got)
		}
		time.Sleep(time.Minute)
		h.check(t, "busy", "exited")
	})
}

// Half of the slots is the most that one tenant has.
func TestSlotsPerTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		h := newHouse(t, executor.Func(func(ctx context.Context, req executor.Request) (executor.Result, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			return sleeps(time.Second)(ctx, req)
		}), func(c *tracon.Config) { c.Slots = 8 })
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { h.Run(t.Context(), call("a")) })
		}
		wg.Wait()
		if most.Load() != 4 {
			t.Errorf("%d runs of one tenant at once, want 4 of 8 slots", most.Load())
		}
	})
}

// R25, case 28: the limit is applied again to what an executor returns.
func TestOutputIsClipped(t *testing.T) {
	tests := []struct {
		name, in, want      string
		truncated, replaced bool
		executorCut         bool
	}{
		{name: "fits", in: strings.Repeat("x", 64), want: strings.Repeat("x", 64)},
		{name: "one too many", in: strings.Repeat("x", 65), want: strings.Repeat("x", 64), truncated: true},
		{name: "a character across the limit", in: strings.Repeat("x", 62) + "😀", want: strings.Repeat("x", 62), truncated: true},
		{name: "not UTF-8", in: "a\xff\xfeb", want: "a\uFFFDb", replaced: true},
		{name: "not UTF-8 grows over the limit", in: strings.Repeat("\xffx", 32), want: strings.Repeat("\uFFFDx", 16), truncated: true, replaced: true},
		{name: "the executor cut within a character", in: "abc\xf0\x9f", want: "abc", truncated: true, executorCut: true},
		{name: "NUL and escapes stay", in: "\x00\x1b[31m", want: "\x00\x1b[31m"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t, executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
				return executor.Result{Ending: executor.Exited(0), Stdout: []byte(tt.in), Truncated: tt.executorCut}, nil
			}), nil)
			out, err := h.Run(t.Context(), call("a"))
			if err != nil || out.Stdout != tt.want || out.Truncated != tt.truncated || out.Replaced != tt.replaced {
				t.Errorf("got %q, truncated %v, replaced %v, err %v; want %q, %v, %v", out.Stdout, out.Truncated, out.Replaced, err, tt.want, tt.truncated, tt.replaced)
			}
		})
	}
}

// Files that an executor returns are held to the limits and to plain names too.
func TestOutputFilesAreHeldToTheLimits(t *testing.T) {
	h := newHouse(t, executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
		return executor.Result{Ending: executor.Exited(0), Outputs: []bundle.File{
			{Path: "a"}, {Path: "../b"}, {Path: "/c"}, {Path: "a"}, {Path: "big", Data: make([]byte, 11)}, {Path: "d/e", Data: make([]byte, 10)}, {Path: "third"},
		}}, nil
	}), nil)
	h.open(t, "a", gate.Policy{Enabled: true, Interpreters: []string{"sh"}, MaxOutputs: 10, MaxOutputFiles: 2})
	out, err := h.Run(t.Context(), call("a"))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range out.Outputs {
		paths = append(paths, f.Path)
	}
	if fmt.Sprint(paths) != "[a d/e]" || len(out.Notes) != 5 {
		t.Errorf("kept %v with notes %q; want [a d/e] and a note for each of the other five", paths, out.Notes)
	}
}

// F24, case 8: of two outputs that some file system takes for one the first is kept, and
// the other named: on a disk where case does not count it would take the first one's place.
func TestOutputFilesHaveNoTwins(t *testing.T) {
	h := newHouse(t, executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
		return executor.Result{Ending: executor.Exited(0), Outputs: []bundle.File{
			{Path: "A.txt"}, {Path: "a.txt"}, {Path: "d/x"}, {Path: "D/y"}, {Path: "caf\u00e9"}, {Path: "cafe\u0301"}, {Path: "d/z"},
		}}, nil
	}), nil)
	h.open(t, "a", gate.Policy{Enabled: true, Interpreters: []string{"sh"}})
	out, err := h.Run(t.Context(), call("a"))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range out.Outputs {
		paths = append(paths, f.Path)
	}
	if want := "[A.txt d/x caf\u00e9 d/z]"; fmt.Sprint(paths) != want || len(out.Notes) != 3 || !strings.Contains(out.Notes[0], `"a.txt" was not kept`) {
		t.Errorf("kept %v with notes %q; want %s", paths, out.Notes, want)
	}
}

type observer struct {
	mu  sync.Mutex
	saw []string
}

func (o *observer) Call(ctx context.Context, _ gate.Call) (context.Context, func(tracon.Observation)) {
	return ctx, func(ob tracon.Observation) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.saw = append(o.saw, fmt.Sprintf("%s admitted=%v", tracon.Code(ob.Outcome, ob.Err), ob.Request.Valid()))
	}
}

// R25: the observer is told once of every call, success and failure.
func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o observer
		h := newHouse(t, sleeps(time.Second), func(c *tracon.Config) { c.Observer = &o })
		h.Run(t.Context(), call("a"))
		h.Run(t.Context(), call("nobody"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		h.Run(ctx, call("a"))
		synctest.Wait()
		want := "[ admitted=true switch admitted=false cancelled admitted=true]"
		if got := fmt.Sprint(o.saw); got != want {
			t.Errorf("saw %s, want %s", got, want)
		}
	})
}

// A runner that stops takes no more calls, waits for those under way, and stops
// them when it has waited long enough; every ending is written.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, sleeps(8*time.Second), nil)
		go h.Run(t.Context(), call("a"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
		if got := time.Since(start); got != time.Second {
			t.Errorf("Close took %v, want its deadline of 1s", got)
		}
		if _, err := h.Run(t.Context(), call("a")); !errors.Is(err, tracon.ErrClosed) {
			t.Errorf("err = %v, want ErrClosed", err)
		}
		if err := h.Ready(t.Context()); !errors.Is(err, tracon.ErrClosed) {
			t.Errorf("Ready says %v, want ErrClosed", err)
		}
		h.check(t, "cancelled")
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, sleeps(8*time.Second), nil)
		go h.Run(t.Context(), call("a"))
		synctest.Wait()
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
		h.check(t, "exited")
	})
}

// A tier that a custom executor tells of itself is a claim, and meets a tier
// above the lowest only by the operator's word.
func TestClaimedTier(t *testing.T) {
	h := newHouse(t, claimant{exits(0)}, nil)
	h.open(t, "a", gate.Policy{Enabled: true, Interpreters: []string{"sh"}, MinTier: grant.Sandbox})
	_, err := h.Run(t.Context(), call("a"))
	if d, ok := errors.AsType[*gate.Denial](err); !ok || d.Gate != gate.TierGate {
		t.Errorf("err = %v, want a denial of the gate %q", err, gate.TierGate)
	}
}

type claimant struct{ executor.Executor }

func (claimant) Posture(context.Context) (executor.Posture, error) {
	return executor.Posture{Executor: "mine", Tier: grant.VM, Walls: []executor.Wall{
		{Name: "memory", Stands: true, Proof: "trust me"}, {Name: "processes", Proof: "none", Remedy: "have a cgroup"},
	}}, nil
}

// B2: the walls of the posture are what a policy that asks for some is compared
// with. Those of a custom executor are claims too.
func TestClaimedWalls(t *testing.T) {
	h := newHouse(t, claimant{exits(0)}, nil)
	s, err := h.Standing(t.Context())
	want := []gate.Wall{{Name: "memory", Stands: true}, {Name: "processes", Remedy: "have a cgroup"}}
	if err != nil || !slices.Equal(s.Walls, want) {
		t.Fatalf("got %+v, %v; want %+v", s.Walls, err, want)
	}
	h.open(t, "a", gate.Policy{Enabled: true, Interpreters: []string{"sh"}, RequireWalls: []string{"memory"}})
	_, err = h.Run(t.Context(), call("a"))
	if d, ok := errors.AsType[*gate.Denial](err); !ok || d.Gate != gate.TierGate {
		t.Errorf("err = %v, want a denial of the gate %q", err, gate.TierGate)
	}
}

// R5: requiring a custom executor refuses the default, by silence or passed.
func TestRequireCustomExecutor(t *testing.T) {
	st := memstore.New()
	sk := skills{}
	g := gate.New(gate.Config{Hosts: gate.Static{}, Policies: st, Contents: sk, Declarer: sk, Schemas: sk, Grants: st, Log: audit.NewLog(st)})
	if _, err := tracon.New(tracon.Config{Gate: g, RequireCustomExecutor: true}); !errors.Is(err, tracon.ErrDefaultExecutor) {
		t.Errorf("by silence: err = %v, want ErrDefaultExecutor", err)
	}
	if _, err := tracon.New(tracon.Config{Gate: g, RequireCustomExecutor: true, Executor: exits(0)}); err != nil {
		t.Errorf("a custom one: err = %v", err)
	}
}

// Case 51 and R17 under load: slots never exceeded, every call ends once.
func TestManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, calls atomic.Int64
		h := newHouse(t, executor.Func(func(ctx context.Context, req executor.Request) (executor.Result, error) {
			calls.Add(1)
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			return sleeps(time.Millisecond)(ctx, req)
		}), func(c *tracon.Config) { c.Slots, c.SlotsPerTenant, c.Queue, c.QueuePerTenant = 8, 8, 2000, 2000 })
		var wg sync.WaitGroup
		var failed atomic.Int64
		for i := range 1500 {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				if i%7 == 0 {
					time.AfterFunc(time.Duration(i%100)*time.Millisecond, cancel)
				}
				defer cancel()
				if _, err := h.Run(ctx, call([]string{"a", "b"}[i%2])); err != nil {
					failed.Add(1)
				}
			})
		}
		wg.Wait()
		h.Close(t.Context())
		if most.Load() > 8 {
			t.Errorf("%d at once, want at most 8", most.Load())
		}
		if s := h.Stats(); s.InUse != 0 || s.Waiting != 0 {
			t.Errorf("%+v: slots did not come back", s)
		}
		admitted := 0
		for leaf := range h.log.Entries(t.Context(), "", 0) {
			if leaf.Entry.Kind == audit.Admission {
				admitted++
			}
		}
		if got := len(h.endings(t)); got != admitted {
			t.Errorf("%d endings for %d admissions", got, admitted)
		}
	})
}

// failing is a store whose log takes no more entries from the moment on at which
// err is set, as after a full disk.
type failing struct {
	*memstore.Store
	err atomic.Pointer[error]
}

func (f *failing) Append(ctx context.Context, p audit.Pending) error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return f.Store.Append(ctx, p)
}

func (f *failing) Ready(ctx context.Context) error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return f.Store.Ready(ctx)
}

// Case 57: once the log has failed nothing runs, not even what was admitted before
// and waits for its slot; Ready says so, with the failure's own words.
func TestNothingRunsAfterTheLogFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		sk, st := skills{[]byte("echo")}, &failing{Store: memstore.New()}
		h := newHouse(t, executor.Func(func(ctx context.Context, _ executor.Request) (executor.Result, error) {
			calls.Add(1)
			time.Sleep(time.Second)
			return executor.Result{Ending: executor.Exited(0)}, nil
		}), func(c *tracon.Config) {
			c.Slots, c.Calls = 1, nil
			c.Gate = gate.New(gate.Config{
				Hosts:    gate.Static{Enabled: true, Interpreters: map[string]gate.Interpreter{"sh": {Name: "sh"}}},
				Policies: st, Contents: sk, Declarer: sk, Schemas: sk, Grants: st, Log: audit.NewLog(st),
			})
		})
		made := house{h.Runner, st.Store, audit.NewLog(st)}
		made.open(t, "a", gate.Policy{Enabled: true, Interpreters: []string{"sh"}})
		made.grant(t, "a")
		if err := h.Ready(t.Context()); err != nil {
			t.Fatalf("before it, Ready says %v", err)
		}
		errs := make(chan error, 2)
		for range cap(errs) { // the second waits for the first one's slot
			go func() { _, err := h.Run(t.Context(), call("a")); errs <- err }()
		}
		synctest.Wait()
		full := errors.New("disk full")
		st.err.Store(&full)
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, audit.ErrUnavailable) {
				t.Errorf("a call that was admitted before says %v, want audit.ErrUnavailable", err)
			}
		}
		if _, err := h.Run(t.Context(), call("a")); !errors.Is(err, audit.ErrUnavailable) {
			t.Errorf("the next call says %v, want audit.ErrUnavailable", err)
		}
		if err := h.Ready(t.Context()); !errors.Is(err, audit.ErrUnavailable) || !errors.Is(err, full) {
			t.Errorf("Ready says %v, want audit.ErrUnavailable and %q", err, full)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%d scripts were started, want the one that ran already", n)
		}
	})
}
