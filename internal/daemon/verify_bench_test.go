package daemon_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
)

// signed returns a house whose log has about n entries of about the size of real
// ones, with a checkpoint for each hundredth part.
func signed(tb testing.TB, n int) *daemon.House {
	tb.Helper()
	dir := tb.TempDir()
	c, err := config.Load(config.Source{Getenv: func(k string) string { return map[string]string{"HOME": dir}[k] }, Dir: dir})
	if err != nil {
		tb.Fatal(err)
	}
	h, err := daemon.Open(tb.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	e := audit.Entry{Actor: "model", Kind: audit.Admission, Subject: "unit-converter scripts/convert.py", Run: "01900000-0000-7000-8000-000000000001",
		Facts: audit.Facts("argumentsBytes", "42", "argumentsCommitment", bundle.Sum(nil).String(), "argumentsMode", "argv",
			"digest", bundle.Sum(nil).String(), "executor", "process", "grant", "01900000-0000-7000-8000-000000000002", "inputs", "0 files, 0 bytes",
			"interpreter", "py", "interpreterDigest", bundle.Sum(nil).String(), "script", bundle.Sum(nil).String(), "tier", "process")}
	for range 100 {
		var wg sync.WaitGroup
		for caller := range 64 {
			wg.Go(func() {
				for i := caller; i < n/100; i += 64 {
					e := e
					e.Tenant = fmt.Sprint("tenant-", i%8)
					if _, err := h.Log.Append(context.Background(), e); err != nil {
						tb.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if _, err := h.Notary.Checkpoint(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
	return h
}

// BenchmarkVerifyLog measures how fast verify is, and that its memory does not
// grow with the log.
func BenchmarkVerifyLog(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := signed(b, n)
			var peak uint64
			look := func(uint64) {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
			}
			runtime.GC()
			b.ResetTimer()
			entries := uint64(0)
			for b.Loop() {
				v, err := h.VerifyLog(b.Context(), daemon.Against{}, look)
				if err != nil {
					b.Fatal(err)
				}
				entries += v.Tree.Size
			}
			b.ReportMetric(float64(entries)/b.Elapsed().Seconds(), "entries/s")
			b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
		})
	}
}

// BenchmarkReceipt measures what the receipt of an entry costs: the checkpoint,
// durable in two places, and the proof.
func BenchmarkReceipt(b *testing.B) {
	h := signed(b, 10_000)
	e := audit.Entry{Tenant: "t", Kind: audit.Admission, Subject: "s"}
	for b.Loop() {
		r, err := h.Log.Append(b.Context(), e)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.Notary.Prove(b.Context(), r.Index()); err != nil {
			b.Fatal(err)
		}
	}
}
