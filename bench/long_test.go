package bench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// entriesVariable says how many entries BenchmarkLongLog puts into its log. Ten
// million take some 10 GB of the folder for temporary files.
const entriesVariable = "TRACON_BENCH_ENTRIES"

const defaultEntries = 20_000

// BenchmarkLongLog takes calls through all gates to their entries, and verifies the
// log, when that has many entries: neither is slower, nor takes more memory, than with few.
func BenchmarkLongLog(b *testing.B) {
	most := int64(defaultEntries)
	if text := os.Getenv(entriesVariable); text != "" {
		var err error
		if most, err = strconv.ParseInt(text, 10, 64); err != nil || most < 1 {
			b.Fatalf("%s=%s is no number of entries", entriesVariable, text)
		}
	}
	standing := gate.Standing{Executor: "process", Tier: grant.Process}
	for _, e := range engines {
		b.Run(e.name, func(b *testing.B) {
			st, _ := e.open(b)
			h := newHost(b, st, executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
				return executor.Result{Ending: executor.Exited(0)}, nil
			}), "true.sh", ":\n")
			log := audit.NewLog(st)
			for _, n := range []int64{most / 100, most} {
				began, had := time.Now(), fill(b, log, n)
				b.Logf("%d entries were appended by 256 callers, %.0f a second", n-had, float64(n-had)/time.Since(began).Seconds())
				b.Run(fmt.Sprintf("entries=%d/admit", n), func(b *testing.B) {
					for b.Loop() {
						if _, err := h.gate.Admit(b.Context(), h.call, standing); err != nil {
							b.Fatal(err)
						}
					}
				})
				b.Run(fmt.Sprintf("entries=%d/verify", n), func(b *testing.B) {
					var peak, entries uint64
					runtime.GC()
					for b.Loop() {
						tree, err := log.Verify(b.Context(), func(uint64) {
							var m runtime.MemStats
							runtime.ReadMemStats(&m)
							peak = max(peak, m.HeapAlloc)
						})
						if err != nil {
							b.Fatal(err)
						}
						entries += tree.Size
					}
					b.ReportMetric(float64(entries)/b.Elapsed().Seconds(), "entries/s")
					b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
				})
			}
		})
	}
}

// fill appends entries of the size of an admission until the log has n, and returns
// how many it had.
func fill(b *testing.B, log *audit.Log, n int64) int64 {
	b.Helper()
	tip, err := log.Tip(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	next.Store(int64(tip.Size()))
	var wg sync.WaitGroup
	for range 256 {
		wg.Go(func() {
			for i := next.Add(1); i <= n; i = next.Add(1) {
				_, err := log.Append(context.Background(), admission(i))
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return int64(tip.Size())
}
