//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// BenchmarkRuntime compares a run in a runtime with one of the host's own Python,
// in turns: a runtime may cost a few mounts more.
func BenchmarkRuntime(b *testing.B) {
	s, d := runtimeFolder(b)
	e, _ := open(b, sandbox.Config{Images: s})
	reqs := [2]executor.Request{
		admit(b, executortest.NewWorld(hostcase.Interpreters(b)), script("py", "pass\n")),
		admit(b, executortest.NewWorld(inRuntime(b, s, d, "py")), script("py", "pass\n")),
	}
	var times [2][]time.Duration
	for b.Loop() {
		for n, req := range reqs {
			begin := time.Now()
			if res, err := e.Execute(b.Context(), req); err != nil || res.Ending != executor.Exited(0) {
				b.Fatal(res.Ending, err, string(res.Stderr))
			}
			times[n] = append(times[n], time.Since(begin))
		}
	}
	for n := range times {
		slices.Sort(times[n])
	}
	b.ReportMetric(float64(times[1][len(times[1])/4])/float64(times[0][len(times[0])/4]), "x-host")
}
