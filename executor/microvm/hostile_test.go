//go:build microvm && linux && amd64

package microvm_test

import (
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/executor/microvm"
	"github.com/tracon-go/tracon/gate"
)

// few are the cases that are shown where there is no time for all: what of a host a
// machine could have at all, and what would outlive it.
var few = []string{"F01", "N01"}

// B2, B3: no attack of the catalogue gets out of a machine, neither of one that is made
// for its script nor of one in which an interpreter has waited for it. That each attack
// gets through where the wall is missing is shown with the executors of this host.
func TestHostile(t *testing.T) {
	e, runtime := open(t, microvm.Config{})
	posture, err := e.Posture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if lacks := hostile.Lacking(posture); len(lacks) > 0 {
		t.Errorf("the walls %q are not promised", lacks)
	}
	for _, tc := range []struct {
		name string
		ex   executor.Executor
	}{{"started", e}, {"waiting", microvm.Waiting(e)}} {
		t.Run(tc.name, func(t *testing.T) {
			setup := hostile.Setup{
				New: func(executortest.T) executor.Executor { return tc.ex }, Interpreters: interpreters(t), OwnKernel: hostile.OwnKernel(posture),
				Policy: gate.Policy{Timeout: 30 * time.Minute}, Races: hostile.DefaultRaces / 5, Only: few, Leftovers: func() []string { return traces(runtime) },
			}
			if full {
				setup.Only = nil
			}
			hostile.Run(t, setup)
		})
	}
}
