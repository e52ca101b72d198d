//go:build linux && (amd64 || arm64)

package sandbox

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/executor/internal/calls"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"golang.org/x/sys/unix"
)

// Z04: a loopback that is the host's lets the host's listeners be reached, and a
// filter that is missing lets sockets of every family be made.
func TestLoopbackKnockOut(t *testing.T) {
	py, err := interpreter.Find(t.Context(), "py")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		change func(*setup)
		red    string
	}{
		{"the host's network", both(withoutNamespace(unix.CLONE_NEWNET), withoutStage(stageLoopback)), "N01 N18"},
		{"the filter", withoutStage(stageSeccomp), "N03"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hostile.KnockOut(t, hostile.Setup{
				New: func(pt executortest.T) executor.Executor {
					e, err := open(Config{Runtime: filepath.Join(t.TempDir(), "run")}, func(*setup) {})
					if err != nil {
						pt.Fatalf("%v", err)
					}
					pt.Cleanup(func() {
						if err := e.Close(); err != nil {
							pt.Errorf("%v", err)
						}
					})
					unseen(tc.change)(e.setup) // when all was proved, so that nothing stops it
					return e
				},
				Interpreters: map[string]gate.Interpreter{"py": py.Interpreter()}, Only: strings.Fields(tc.red),
				Loopback: true, Policy: gate.Policy{Network: gate.Loopback},
			})
		})
	}
}

// Where loopback cannot stand, runs that are to have it are refused with the
// reason, the posture says so, and all other runs go on.
func TestLoopbackThatCannotStand(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*setup)
		says   string
	}{
		{"the interface stays down", withoutStage(stageLoopback), "127.0.0.1"},
		{"the filter has no sockets", func(s *setup) { s.loopback = s.filter }, "TCP"},
		{"the filter has too many", func(s *setup) {
			r := calls.Loopback()
			r[unix.SYS_SOCKET] = calls.Rule{Then: calls.Allow}
			s.loopback = r.Filter()
		}, "netlink"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, err := open(Config{Runtime: filepath.Join(t.TempDir(), "run")}, tc.change)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if e.noLoopback == nil || !strings.Contains(e.noLoopback.Error(), tc.says) {
				t.Errorf("the probe found %v, want it to name %q", e.noLoopback, tc.says)
			}
			if err := e.mayHave(gate.NoNetwork); err != nil {
				t.Errorf("a run without a network: %v", err)
			}
			_, err = e.run(t.Context(), job{network: gate.Loopback})
			if err == nil || !strings.Contains(err.Error(), "cannot stand") {
				t.Errorf("a run with loopback: %v", err)
			}
			for _, w := range e.posture.Walls {
				if w.Name == wallLoopback && w.Stands {
					t.Error("the posture says that it stands")
				}
			}
		})
	}
}
