package gate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/gatecase"
)

// B2, R15: a policy that asks for a limit gets a refusal that names the wall and
// what to do: the posture's own remedy, where it has one.
func TestRequiredWallNamesTheRemedy(t *testing.T) {
	for _, tt := range []struct {
		name     string
		standing []gate.Wall
		claimed  bool
		says     string
		remedy   string
	}{
		{"it does not stand", []gate.Wall{{Name: "memory", Remedy: "have a cgroup"}}, false, "has it not on this host", "have a cgroup"},
		{"it does not stand, and nobody knows why", []gate.Wall{{Name: "memory"}}, false, "has it not on this host", "a host where the wall stands"},
		{"the executor has another", []gate.Wall{{Name: "Memory", Stands: true}}, false, "knows of no such wall", "a host where the wall stands"},
		{"it is claimed", []gate.Wall{{Name: "memory", Stands: true}}, true, "proves none", "trust what this one claims"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := gatecase.New(t)
			h.Policy(t, func(p *gate.Policy) { p.RequireWalls = []string{"memory"} })
			h.Standing.Walls, h.Standing.Claimed = tt.standing, tt.claimed
			_, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing)
			d, ok := errors.AsType[*gate.Denial](err)
			if !ok || !strings.Contains(d.Error(), `wall "memory"`) || !strings.Contains(d.Error(), tt.says) || !strings.Contains(d.Remedy, tt.remedy) {
				t.Fatalf("got %v, want one that says %q with the remedy %q", err, tt.says, tt.remedy)
			}
		})
	}
}
