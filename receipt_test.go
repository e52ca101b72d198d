package tracon_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/store/memstore"
)

// late is filled when the log is there.
type late struct{ tracon.Receipts }

// B7: the answer of each admitted call has a receipt that its holder can check
// alone, of one that failed too. Where none can be made the call is no failure for
// that, and says so.
func TestReceipts(t *testing.T) {
	broken := errors.New("broken")
	fails := executor.Func(func(context.Context, executor.Request) (executor.Result, error) { return executor.Result{}, broken })
	user, leave := context.WithCancel(t.Context())
	left := executor.Func(func(ctx context.Context, _ executor.Request) (executor.Result, error) {
		leave()
		<-ctx.Done()
		return executor.Result{}, context.Cause(ctx)
	})
	for _, tt := range []struct {
		name string
		exec executor.Func
		err  error
	}{
		{"the caller left", left, tracon.ErrCancelled},
		{"there was no executor", func(context.Context, executor.Request) (executor.Result, error) {
			return executor.Result{}, executor.ErrUnavailable
		}, tracon.ErrExecutorUnavailable},
		{"the time was over", expires, nil},
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
			ctx := t.Context()
			if tt.err == tracon.ErrCancelled {
				ctx = user
			}
			out, err := h.Run(ctx, call("a"))
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

// B7, R30: whoever delivers a run does not wait for a receipt, which would be for nobody.
// The log is signed on behind it, when the answer has left, and one signature covers what
// ended meanwhile; a runner that is closed has signed past every run.
func TestDeliveredRunsAreSignedBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		receipts := &heldReceipts{let: make(chan struct{})}
		shell := map[bool]string{true: `C:\sh.exe`, false: "/bin/sh"}[runtime.GOOS == "windows"]
		reception := gate.Reception{Enabled: true, Runtimes: map[string]gate.Runtime{"sh": {Extension: "sh", Interpreter: gate.Interpreter{Path: shell}}}}
		r, err := tracon.New(tracon.Config{Gate: gate.NewReceiver(gate.Receiving(reception), nil, audit.NewLog(st), ""), Executor: exits(0), Calls: st,
			Receipts: receipts, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		source := []byte("echo\n")
		var first, last uint64
		for i := range 4 {
			if i == 3 {
				if first = last; len(receipts.list()) != 0 {
					t.Errorf("receipts are made for the entries %d as soon as their runs have ended", receipts.list())
				}
				time.Sleep(time.Second)
				synctest.Wait()
			}
			out, err := r.Deliver(t.Context(), gate.Delivery{Peer: gate.Peer{Name: "host", AllTenants: true}, Tenant: "a", Runtime: "sh", Source: source, ScriptDigest: bundle.Sum(source),
				Mode: gate.Stdin, Timeout: time.Second, MaxOutput: 64, Request: bundle.Sum([]byte("request"))})
			if err != nil || !out.Proof.IsZero() || len(out.Notes) != 0 || !out.Receipt.Valid() {
				t.Fatalf("got %+v, %v", out, err)
			}
			last = out.Receipt.Index()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(receipts.list()); n != 1 {
			t.Errorf("%d receipts are being made, want one at a time", n)
		}
		closed := make(chan error, 1)
		go func() { closed <- r.Close(t.Context()) }()
		synctest.Wait()
		if len(closed) != 0 {
			t.Error("the runner closes before the log is signed past every run")
		}
		close(receipts.let)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if made := receipts.list(); !slices.Equal(made, []uint64{first, last}) {
			t.Errorf("receipts were made for the entries %d, want %d and %d", made, first, last)
		}
	})
}

// heldReceipts are made when they are let. They are asked for one at a time.
type heldReceipts struct {
	let chan struct{}

	mu   sync.Mutex
	made []uint64
}

func (h *heldReceipts) list() []uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.made)
}

func (h *heldReceipts) Prove(_ context.Context, index uint64) (audit.Proof, error) {
	h.mu.Lock()
	h.made = append(h.made, index)
	h.mu.Unlock()
	<-h.let
	return audit.Proof{}, nil
}

func expires(context.Context, executor.Request) (executor.Result, error) {
	return executor.Result{Ending: executor.Expired()}, nil
}

// Who has cancelled a call is told so, and no later than after two seconds, whatever
// becomes of its receipt.
func TestReceiptOfACancelledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, sleeps(time.Hour), func(c *tracon.Config) { c.Receipts = slowReceipts{} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		out, err := h.Run(ctx, call("a"))
		if took := time.Since(began); !errors.Is(err, tracon.ErrCancelled) || took != 3*time.Second || len(out.Notes) != 1 || !out.Receipt.Valid() {
			t.Errorf("after %s it is %+v, %v", took, out, err)
		}
	})
}

// slowReceipts come never.
type slowReceipts struct{}

func (slowReceipts) Prove(ctx context.Context, _ uint64) (audit.Proof, error) {
	<-ctx.Done()
	return audit.Proof{}, context.Cause(ctx)
}

type noReceipts struct{}

func (noReceipts) Prove(context.Context, uint64) (audit.Proof, error) {
	return audit.Proof{}, errors.New("no disk")
}
