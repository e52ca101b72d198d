//go:build linux && (amd64 || arm64)

package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/hostcase"
	"golang.org/x/sys/unix"
)

// everyCall is a filter that lets every system call through.
var everyCall = []byte{unix.BPF_RET, 0, 0, 0, 0, 0, 0xff, 0x7f} // SECCOMP_RET_ALLOW

// Z01, Z04 to Z06: in a container that lacks one wall, as the OCI runtime did something
// else, and which the look from outside does not stop, the cases that are there for that
// wall turn red.
func TestHostileKnockOut(t *testing.T) {
	if os.Geteuid() != 0 || testing.Short() {
		return // without root there is no executor: see asRoot; ./check engines is not short
	}
	// Where a run's own folders do not hide it, a folder of the host can be shown.
	shared, err := os.MkdirTemp("/var/tmp", "tracon-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(shared); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	const open = "" // the filter of system calls too
	shown := `c['mounts'].append({'destination': '` + shared + `', 'type': 'bind', 'source': '` + shared + `', 'options': ['rbind', 'OPTIONS']})`
	reading, writing := strings.Replace(shown, "OPTIONS", "ro", 1), strings.Replace(shown, "OPTIONS", "rw", 1)
	for _, tc := range []struct {
		name, does string
		filter     []byte // nil: that of every script
		red        string
	}{
		{"Z01 system calls", open, everyCall, "F09 K01 K02 K03 K04 K05 K08 K09 K10 K14 N03 R15 X09 X11 K07 X14 F10"},
		{"Z01 and a folder of the host", reading, everyCall, "F13"},
		{"a folder of the host", reading, nil, "F01 F02 F04"},
		{"a folder of the host, for writing", writing, nil, "F06 F12"},
		{"Z04 the network", noNetwork, everyCall, "N01 N02 N18 X12"},
		{"Z04 queues", noQueues, everyCall, "U01"},
		{"Z05 /proc", allOfProc, nil, "U11"},
		{"a device", aDevice, nil, "F07"},
		{"the name of the host", noName, nil, "U12"},
		{"capabilities", allRights, nil, "X07"},
		{"the space", moreSpace, nil, "F14"},
		{"cgroup namespace", noCgroups, nil, "K13"},
		{"limits", noLimits, nil, "R13"},
		{"cgroups", leaving, nil, "R03"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newTraitor(t, "crun")
			hostile.KnockOut(t, hostile.Setup{
				New: func(pt executortest.T) executor.Executor {
					e, err := New(Config{Engine: r.path, Runtime: filepath.Join(t.TempDir(), "run")})
					if err != nil {
						pt.Fatalf("%v", err)
					}
					pt.Cleanup(func() {
						if err := e.Close(); err != nil {
							pt.Errorf("%v", err)
						}
					})
					if unseen(e); tc.filter != nil { // when all was proved, so that nothing stops it
						e.filter = tc.filter
					}
					r.do(t, tc.does)
					return e
				},
				Interpreters: hostcase.Interpreters(t), Only: strings.Fields(tc.red), Folder: shared,
				Policy: gate.Policy{Memory: 512 << 20},
			})
		})
	}
}
