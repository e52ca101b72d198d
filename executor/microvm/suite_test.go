//go:build microvm && linux && amd64

package microvm_test

import (
	"os"
	"slices"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/microvm"
)

// full says that there is time for every dialect: ./check long.
var full = os.Getenv("TRACON_MICROVM_FULL") != ""

// R2, B3: the conformance suite holds in machines.
func TestConformance(t *testing.T) {
	e, runtime := open(t, microvm.Config{})
	dialects := slices.DeleteFunc(executortest.Dialects(), func(d executortest.Dialect) bool { return d.Name != "sh" && !full })
	executortest.Run(t, executortest.Setup{
		New:          func(executortest.T) executor.Executor { return e },
		Interpreters: interpreters(t),
		Dialects:     dialects,
		Start:        start,
		Leftovers:    func() []string { return leftovers(runtime) },
	})
}
