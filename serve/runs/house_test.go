package runs_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/gatecase"
	"github.com/tracon-go/tracon/serve/runs"
)

// other is a second tenant, which may run the same script.
const other = "tenant-z2"

// house is a host with a real runner over an executor.
type house struct {
	*runs.Runs
	t      *testing.T
	gates  *gatecase.House
	runner *tracon.Runner
}

// within calls f with a house in a bubble, and closes it: no goroutine is left.
func within(t *testing.T, e executor.Executor, l runs.Limits, f func(*testing.T, *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, e, l)
		f(t, h)
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := h.runner.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	goleak.VerifyNone(t)
}

func newHouse(t *testing.T, e executor.Executor, l runs.Limits) *house {
	t.Helper()
	h := gatecase.New(t)
	h.Grant(t, func(g *grant.Grant) { g.Ref.Tenant = other })
	_, err := h.Log.Commit(t.Context(), audit.Entry{Tenant: other, Kind: audit.Policy}, func(ctx context.Context, p audit.Pending) error {
		return h.Store.SetPolicy(ctx, other, gate.Policy{Enabled: true, Interpreters: []string{"py"}}, 0, p)
	})
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tracon.New(tracon.Config{Gate: gate.New(h.Config), Executor: e, Calls: h.Store, Slots: 2, SlotsPerTenant: 1,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	all, err := runs.New(runner, l)
	if err != nil {
		t.Fatal(err)
	}
	return &house{all, t, h, runner}
}

func (h *house) call(tenant string) gate.Call {
	c := h.gates.Call
	c.Tenant = tenant
	return c
}

// startIt is Start where nobody wants to hear of the end.
func (h *house) startIt(ctx context.Context, c gate.Call) (runs.View, error) {
	return h.Start(ctx, c, nil)
}

// start starts a call of the tenant, which must be admitted.
func (h *house) start(tenant string) string {
	h.t.Helper()
	v, err := h.Start(h.t.Context(), h.call(tenant), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return v.ID
}

// ended waits for the run's end.
func (h *house) ended(tenant, id string) runs.View {
	h.t.Helper()
	v, err := h.Wait(h.t.Context(), tenant, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}

// fact returns what the log's ending of the tenant's run says of name.
func (h *house) fact(tenant, id, name string) string {
	h.t.Helper()
	synctest.Wait()
	for leaf, err := range h.gates.Log.Entries(h.t.Context(), tenant, 0) {
		if err != nil {
			h.t.Fatal(err)
		}
		if leaf.Entry.Kind == audit.Ending && leaf.Entry.Run == id {
			return leaf.Entry.Fact(name)
		}
	}
	return ""
}

// prints is an executor that prints text and exits.
func prints(text string) executor.Func {
	return func(_ context.Context, req executor.Request) (executor.Result, error) {
		req.Live().Send(gate.Stdout, []byte(text))
		return executor.Result{Ending: executor.Exited(0), Stdout: []byte(text)}, nil
	}
}

// sleeps is an executor whose script sleeps, and stops when it is told to.
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
