package bench

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/sandbox"
)

// BenchmarkTenantsShare has one tenant run six scripts that never rest, and
// another one, on as many processors as two of them would fill. It reports what
// the one got of what each tenant's share is: 1 is fair, 0.29 what it would get as
// one of seven. Where no cgroup holds processor time it says nothing.
func BenchmarkTenantsShare(b *testing.B) {
	const busy = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass\nprint(time.process_time())\n"
	e, err := sandbox.New(sandbox.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	h := newHouse(b, openSQLite(b), tracon.Config{Executor: e, Slots: 7, SlotsPerTenant: 6}, "busy.py", bundle.File{Path: "busy.py", Data: []byte(busy)})
	many, one := h.open(b, "many", "busy.py", time.Minute), h.open(b, "one", "busy.py", time.Minute)
	var mu sync.Mutex
	got := map[string]float64{} // seconds of a processor, by tenant
	for b.Loop() {
		var wg sync.WaitGroup
		for i := range 7 {
			call := many
			if i == 6 {
				call = one
			}
			wg.Go(func() {
				out, err := h.Run(b.Context(), call)
				seconds, perr := strconv.ParseFloat(strings.TrimSpace(out.Stdout), 64)
				if err != nil || perr != nil {
					b.Error(fmt.Errorf("%v, %w, %w: %s", out.Ending, err, perr, out.Stderr))
				}
				mu.Lock()
				got[call.Tenant] += seconds
				mu.Unlock()
			})
		}
		wg.Wait()
	}
	b.ReportMetric(2*got["one"]/(got["one"]+got["many"]), "of-its-share")
	b.ReportMetric(0, "ns/op") // it takes as long as the scripts do
}
