//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
)

// Z01, Z02 and Z04 to Z06: in a box that lacks one wall, which neither the probe nor the look
// from outside stops, the cases that are there for that wall turn red.
func TestHostileKnockOut(t *testing.T) {
	interpreters := map[string]gate.Interpreter{}
	for _, ext := range []string{"py", "sh"} {
		f, err := interpreter.Find(t.Context(), ext)
		if err != nil {
			t.Fatal(err)
		}
		interpreters[ext] = f.Interpreter()
	}
	// Where a run's own folders do not hide it, a folder of the host can be shown.
	shared, err := os.MkdirTemp("/var/tmp", "tracon-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(shared) })
	if err := os.Chmod(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	shown := func(flags uint64) func(*setup) {
		return func(s *setup) { s.layout.binds = append(s.layout.binds, bind{shared, true, flags}) }
	}
	filter, landlock := withoutStage(stageSeccomp), withoutStage(stageLandlock)
	for _, tc := range []struct {
		name   string
		change func(*setup)
		red    string
	}{
		{"Z01 system calls", filter, "F09 K01 K02 K03 K04 K05 K08 K09 K10 K14 N03 R15 X09 X11"},
		{"Z01 and further namespaces", both(filter, withoutStage(stageNoUserNS)), "K07 X14"},
		{"Z01 and further namespaces, and files", both(filter, withoutStage(stageNoUserNS), landlock), "F10"},
		{"Z01 and a folder of the host", both(filter, landlock, shown(attrHost)), "F13"},
		{"Z02 Landlock", landlock, "K20"},
		{"Z02 a folder of the host", both(landlock, shown(attrHost)), "F01 F02 F04"},
		{"Z02 a folder of the host, for writing", both(landlock, shown(attrClosed)), "F06 F12"},
		{"Z04 the network", both(filter, landlock, withoutNamespace(unix.CLONE_NEWNET)), "N01 N02 N18 X12"},
		{"Z04 queues", both(filter, withoutNamespace(unix.CLONE_NEWIPC)), "U01"},
		{"Z05 /proc", both(without(sets("subset")), landlock), "U11"},
		{"Z06 descriptors", without(func(s *step) bool {
			return s.stage == stageDescs && s.nr == unix.SYS_CLOSE_RANGE && s.args[1].n == ^uint64(0)>>32
		}), "X01"},
		{"the name of the host", withoutNamespace(unix.CLONE_NEWUTS, stageName), "U12"},
		{"capabilities", withoutStage(stageCaps, stagePrivileges), "X07"},
		{"the space", without(sets("size")), "F14"},
		{"cgroup namespace", withoutNamespace(unix.CLONE_NEWCGROUP), "K13"},
		{"what the kernel counts for a user", withoutStage(stageNoUserNS), "F18"},
		{"limits", withoutStage(stageLimits), "K16 R13"},
		{"limits and cgroups", withoutStage(stageLimits, stageCgroup), "R01 R02 R03 X20"},
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
				Interpreters: interpreters, Only: strings.Fields(tc.red), Folder: shared,
			})
		})
	}
}
