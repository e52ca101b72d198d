package tracon_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/executor"
)

// late is filled when the log is there.
type late struct{ tracon.Receipts }

// B7: the answer of each admitted call has a receipt that its holder can check
// alone, of one that failed too. Where none can be made the call is no failure for
// that, and says so.
func TestReceipts(t *testing.T) {
	broken := errors.New("broken")
	fails := executor.Func(func(context.Context, executor.Request) (executor.Result, error) { return executor.Result{}, broken })
	for _, tt := range []struct {
		name string
		exec executor.Func
		err  error
	}{
		{"it ran", exits(0), nil},
		{"it exits 3", exits(3), nil},
		{"the executor failed", fails, tracon.ErrExecutorFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			receipts := &late{}
			h := newHouse(t, tt.exec, func(c *tracon.Config) { c.Receipts = receipts })
			n, err := notary.New(notary.Config{Log: h.log, Data: t.TempDir(), Tenant: "@host", Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			receipts.Receipts = n
			out, err := h.Run(t.Context(), call("a"))
			if !errors.Is(err, tt.err) {
				t.Fatalf("got %v, want %v", err, tt.err)
			}
			text, err := out.Proof.MarshalText()
			if err != nil {
				t.Fatal(err)
			}
			keys, err := n.Keys()
			if err != nil {
				t.Fatal(err)
			}
			p, err := audit.OpenProof(text, keys...)
			if err != nil || p.Index != out.Receipt.Index() {
				t.Fatalf("its receipt is %s, %v", text, err)
			}
			if e, _, err := p.Entry(); err != nil || e.Kind != audit.Admission || e.Run != out.ID {
				t.Errorf("its receipt is for %+v, %v", e, err)
			}
		})
	}
	h := newHouse(t, exits(0), func(c *tracon.Config) { c.Receipts = noReceipts{} })
	out, err := h.Run(t.Context(), call("a"))
	if err != nil || !out.Proof.IsZero() || len(out.Notes) != 1 {
		t.Errorf("without a receipt: got %+v, %v; want a note", out, err)
	}
}

type noReceipts struct{}

func (noReceipts) Prove(context.Context, uint64) (audit.Proof, error) {
	return audit.Proof{}, errors.New("no disk")
}
