package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/wire"
)

// counting is a runner's work that counts how often each run is started.
func counting(mu *sync.Mutex, starts map[string]int) work {
	return func(_ context.Context, run wire.Run, _ bundle.Bundle) (wire.Answer, error) {
		mu.Lock()
		starts[run.More.ID]++
		mu.Unlock()
		time.Sleep(20 * time.Millisecond) // so that some are under way
		return exits(run, ""), nil
	}
}

// What the way there and back costs, of a runner that does nothing, over TCP.
func BenchmarkWay(b *testing.B) {
	e, req := bench(b, 1, 0)
	for b.Loop() {
		if _, err := e.Execute(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

// Runs a second of scripts that wait for 50 ms, by the number of runners of 4 places.
func BenchmarkRunners(b *testing.B) {
	for _, n := range []int{1, 2, 4} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e, req := bench(b, n, 50*time.Millisecond)
			b.ResetTimer()
			var all sync.WaitGroup
			left := make(chan struct{}, b.N)
			for range b.N {
				left <- struct{}{}
			}
			close(left)
			for range 4 * n {
				all.Go(func() {
					for range left {
						if _, err := e.Execute(b.Context(), req); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
		})
	}
}

func bench(b *testing.B, runners int, wait time.Duration) (*fleet.Executor, executor.Request) {
	b.Helper()
	var names []string
	for i := range runners {
		names = append(names, fmt.Sprint("r", i))
	}
	g := newGround(b, names...)
	e := g.executor(func(c *fleet.Config) { c.Tier = grant.Process })
	for _, name := range names {
		g.join(name, func(_ context.Context, run wire.Run, _ bundle.Bundle) (wire.Answer, error) {
			time.Sleep(wait)
			return exits(run, "hello"), nil
		}, nil)
	}
	g.await(e, runners)
	return e, g.request(executortest.Order{})
}
