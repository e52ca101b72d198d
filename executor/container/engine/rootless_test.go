//go:build linux && (amd64 || arm64)

package engine_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container/engine"
	"github.com/tracon-go/tracon/internal/enginecase"
)

// B2, B8: Podman of an ordinary user has every wall, and then runs scripts, or is refused
// with what it lacks and what to do: cgroups of its own, which this host may not have to
// give away, and the identities that the walls need.
func TestRootless(t *testing.T) {
	if !withEngines(t) {
		return
	}
	for _, tc := range []struct {
		name       string
		identities bool
		says       string // where it is refused
	}{
		{"with identities", true, "Delegate=yes"}, // where it has no cgroups
		{"without", false, "have 1 identities where scripts need 61184: give its user 65536 in /etc/subuid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := enginecase.Rootless(t, top, tc.identities)
			defer func() {
				if err := d.End(); err != nil {
					t.Error(err)
				}
			}()
			r, err := aRuntime()
			if err != nil {
				t.Fatal(err)
			}
			e, err := engine.New(engine.Config{Address: d.Address(), Runtime: filepath.Join(t.TempDir(), "run"), Images: r.store})
			if err != nil {
				if !errors.Is(err, engine.ErrWall) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("it is refused with %v, want a wall, and %q", err, tc.says)
				}
				return
			}
			defer e.Close()
			if !tc.identities {
				t.Fatal("it runs scripts as a user that it does not have")
			}
			p, err := e.Posture(t.Context())
			if err != nil || !strings.Contains(p.Walls[0].Proof, "without root") {
				t.Errorf("the posture does not say that it is rootless: %+v, %v", p.Walls, err)
			}
			req, _ := admit(t, "echo on\n", enginecase.WaitTime)
			var res executor.Result
			soon(t, "a run", func() bool { // its runtime is brought there first
				res, err = e.Execute(t.Context(), req)
				return !errors.Is(err, engine.ErrImage)
			})
			if err != nil || string(res.Stdout) != "on\n" {
				t.Errorf("%v, %q", err, res.Stdout)
			}
		})
	}
}
