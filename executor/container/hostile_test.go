//go:build linux && (amd64 || arm64)

package container_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/bare"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// B2, B3: no attack of the catalogue gets out of a container, and each one gets
// through where the wall is missing. Short tests leave what hurts a host to ./check
// engines, and the controls, which are the sandbox's, are made in ./check long.
func TestHostile(t *testing.T) {
	if !asRoot(t) {
		return
	}
	for _, name := range tried(engines) {
		t.Run(name, func(t *testing.T) {
			e, runtime := open(t, container.Config{Engine: find(t, name)})
			posture, err := e.Posture(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			lacks, cases := hostcase.Attacks(t, name, testing.Short())
			if got := hostile.Lacking(posture); !slices.Equal(got, lacks) {
				t.Errorf("the walls %q are not promised, want %q", got, lacks)
			}
			setup := hostile.Setup{
				New: func(executortest.T) executor.Executor { return e }, Interpreters: hostcase.Interpreters(t), Lacks: lacks, Only: cases,
				Races:     hostile.DefaultRaces / 5,
				OwnKernel: hostile.OwnKernel(posture),
				Policy:    gate.Policy{Memory: 512 << 20}, // gVisor's kernel counts to it, and 40 Pythons
				Leftovers: func() []string { return leftovers(runtime) },
			}
			if testing.Short() {
				hostile.RunHarmless(t, setup)
				return
			}
			if !hostcase.Full() {
				hostile.Run(t, setup)
				return
			}
			p, err := process.New(process.Config{Runtime: filepath.Join(t.TempDir(), "run")})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
			b := bare.Executor{Dir: t.TempDir()}
			setup.Control = func(_ executortest.T, w hostile.Wall) executor.Executor {
				switch w {
				case hostile.Environment, hostile.Descriptors, hostile.Cleanup, hostile.Collection, hostile.Tasks, hostile.Memory:
					return b
				}
				return p
			}
			hostile.Run(t, setup)
		})
	}
}
