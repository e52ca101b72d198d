package tracon_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/gatecase"
	"github.com/tracon-go/tracon/toolcall"
)

// counting is an executor that counts its calls and tells the posture of a House.
type counting struct {
	calls   atomic.Int64
	posture executor.Posture
}

func (c *counting) Execute(_ context.Context, req executor.Request) (executor.Result, error) {
	c.calls.Add(1)
	if !req.Valid() {
		return executor.Result{}, executor.ErrInvalidRequest
	}
	return executor.Result{Ending: executor.Exited(0)}, nil
}

func (c *counting) Posture(context.Context) (executor.Posture, error) { return c.posture, nil }

// newCounting returns a runner over the House and its executor.
func newCounting(t *testing.T, h *gatecase.House) (*tracon.Runner, *counting) {
	t.Helper()
	e := &counting{posture: executor.Posture{Executor: h.Standing.Executor, Tier: h.Standing.Tier, Claimed: h.Standing.Claimed}}
	r, err := tracon.New(tracon.Config{Gate: gate.New(h.Config), Executor: e, Calls: h.Store, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r, e
}

// kinds counts the entries of the log by their kind.
func kinds(t *testing.T, h *gatecase.House) map[audit.Kind]int {
	t.Helper()
	n := map[audit.Kind]int{}
	for leaf, err := range h.Log.Entries(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		n[leaf.Entry.Kind]++
	}
	return n
}

// R8–R16, "Must show": for every row of the denial table the executor sees no
// call, the log has the refusal and nothing else, there is no record, and the
// code is the gate's name.
func TestDenialsReachNoExecutor(t *testing.T) {
	for _, c := range gatecase.Denials() {
		t.Run(string(c.Gate)+"/"+c.Name, func(t *testing.T) {
			h := gatecase.New(t)
			c.Change(t, h)
			r, e := newCounting(t, h)
			out, err := r.Run(t.Context(), h.Call)
			if n := e.calls.Load(); n != 0 {
				t.Errorf("%s: the executor saw %d calls", c.Rule, n)
			}
			if !errors.Is(err, gate.ErrDenied) || tracon.Code(out, err) != string(c.Gate) {
				t.Errorf("%s: got code %q, %v; want a refusal of gate %s", c.Rule, tracon.Code(out, err), err, c.Gate)
			}
			if text := tracon.ModelText(out, err); text == "" || strings.Contains(text, gatecase.Tenant) || strings.Contains(text, "sha256:") {
				t.Errorf("%s: the model is told %q", c.Rule, text)
			}
			if n := kinds(t, h); n[audit.Refusal] != 1 || n[audit.Admission] != 0 || n[audit.Ending] != 0 {
				t.Errorf("%s: the log has %v", c.Rule, n)
			}
			if records, err := h.Store.Calls(t.Context(), gatecase.Tenant, toolcall.Filter{}); err != nil || len(records) != 0 {
				t.Errorf("%s: %d records, %v", c.Rule, len(records), err)
			}
		})
	}
}

// The table proves something only where the same house runs the call when
// nothing was changed, and only once (R21).
func TestHouseOfTheDenialTableRuns(t *testing.T) {
	h := gatecase.New(t)
	r, e := newCounting(t, h)
	out, err := r.Run(t.Context(), h.Call)
	if err != nil || tracon.Code(out, err) != "" {
		t.Fatalf("got %+v, %v", out, err)
	}
	if n := e.calls.Load(); n != 1 {
		t.Errorf("the executor saw %d calls, want one", n)
	}
	if n := kinds(t, h); n[audit.Refusal] != 0 || n[audit.Admission] != 1 || n[audit.Ending] != 1 {
		t.Errorf("the log has %v", n)
	}
}
