//go:build linux && (amd64 || arm64)

package engine_test

import (
	"slices"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container/engine"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// modelled are the engines' names in the threat model.
var modelled = map[string]string{"docker": "Docker", "podman": "Podman"}

// B2, B3: no other attack of the catalogue gets out of an engine's container. That each
// one gets through where the wall is missing is shown by package container.
func TestHostile(t *testing.T) {
	if !withEngines(t) {
		return
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			d := engineOf(t, name)
			e, ask := open(t, d, engine.Config{}), asker(t, d)
			posture, err := e.Posture(t.Context())
			if err != nil || posture.Tier != grant.Sandbox || posture.Claimed {
				t.Fatalf("got %+v, %v", posture, err)
			}
			lacks, cases := hostcase.Attacks(t, modelled[name], false)
			if got := hostile.Lacking(posture); !slices.Equal(got, lacks) {
				t.Errorf("the walls %q are not promised, want %q", got, lacks)
			}
			hostile.Run(t, hostile.Setup{
				New: func(executortest.T) executor.Executor { return e }, Interpreters: interpreters(t), Lacks: lacks, Only: cases,
				Races:     hostile.DefaultRaces / 5,
				Leftovers: func() []string { return leftovers(t, d, ask) },
			})
		})
	}
}
