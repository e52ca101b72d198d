package bench

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/remote"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/limit"
	"github.com/tracon-go/tracon/serve/runnerapi"
	"github.com/tracon-go/tracon/store/memstore"
)

// onePeer is the host of the benchmark.
type onePeer struct{}

func (onePeer) Peer(*http.Request) (gate.Peer, string, error) {
	return gate.Peer{Name: "host", AllTenants: true}, "key", nil
}

// BenchmarkRemote compares the same script in the same sandbox, called here and through
// a runner service over loopback: its wire, its door, its log (in memory) and its
// slots. They take turns. "over-ms" is how much later the median comes.
func BenchmarkRemote(b *testing.B) {
	found, err := interpreter.Find(b.Context(), "sh")
	if err != nil {
		b.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	e, err := sandbox.New(sandbox.Config{Runtime: filepath.Join(b.TempDir(), "run"), Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	reception := gate.Receiving{Enabled: true, Runtimes: map[string]gate.Runtime{"sh": {Interpreter: found.Interpreter(), Extension: "sh"}}}
	st := memstore.New()
	runner, err := tracon.New(tracon.Config{Gate: gate.NewReceiver(reception, nil, audit.NewLog(st), ""), Executor: e, Calls: st, Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = runner.Close(context.Background()) })
	many := limit.Config{KeyRate: 1 << 20, TenantRate: 1 << 20, RunRate: 1 << 20}
	s, err := runnerapi.New(runnerapi.Config{Name: "bench", Runner: runner, Receptions: reception, Peers: onePeer{}, Limiter: limit.New(many), Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	b.Cleanup(server.Close)
	far, err := remote.New(remote.Config{Address: server.URL, Reach: []string{"loopback"}})
	if err != nil {
		b.Fatal(err)
	}
	order := executortest.Order{Files: []bundle.File{{Path: "SKILL.md", Data: []byte("# A skill\n")}, {Path: "main.sh", Data: []byte("true\n")}}, Script: "main.sh", Mode: gate.None}
	near := executortest.NewWorld(map[string]gate.Interpreter{"sh": found.Interpreter()})
	named := executortest.NewWorld(map[string]gate.Interpreter{"sh": {Name: "sh"}})
	both := []struct {
		executor executor.Executor
		world    *executortest.World
		took     []time.Duration
	}{{e, near, nil}, {far, named, nil}}
	for n := 0; b.Loop(); n++ {
		for i := range both {
			c := &both[(i+n)%2]
			req, err := c.world.Admit(b.Context(), order)
			if err != nil {
				b.Fatal(err)
			}
			begun := time.Now()
			if res, err := c.executor.Execute(b.Context(), req); err != nil || res.Ending != executor.Exited(0) {
				b.Fatal(res.Ending, err)
			}
			c.took = append(c.took, time.Since(begun))
			time.Sleep(rest)
		}
	}
	var half [2]float64
	for i := range both {
		slices.Sort(both[i].took)
		half[i] = float64(both[i].took[len(both[i].took)/2]) / float64(time.Millisecond)
	}
	b.ReportMetric(half[0], "here-ms")
	b.ReportMetric(half[1], "remote-ms")
	b.ReportMetric(half[1]-half[0], "over-ms")
}
