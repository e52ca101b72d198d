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
)

// otherwise are the cases in which something shows that a sandbox hides and an engine
// does not: what, and why it is no harm. The package comment tells of them.
var otherwise = map[string]map[string]string{
	"docker": {
		"F03": "/sys is there, with its own cgroups and empty folders; its own root has names",
		"K20": "its own root can be opened, in which there is its runtime alone",
		"X03": "/proc/1 is the first process of ours, which hides",
		"X07": "it has no user namespace; the group is its own",
		"K05": "/proc/keys can be opened, and is empty",
		"K13": "its own cgroups can be read",
		"U11": "what tells of the host in /proc can be opened, and is empty; the one interface is lo",
		"U12": "boot_id can be opened, and is empty; the name of the host is container",
		"F18": "attributes of files in memory count as its memory",
	},
	"podman": {
		"F03": "/sys is there, with its own cgroups and empty folders; its own root has names",
		"K20": "its own root can be opened, in which there is its runtime alone",
		"X07": "it has no user namespace; the group is its own",
		"K13": "its own cgroups can be read, and the number of its container",
		"U12": "the name of the host is container",
		"F14": "the number of files is limited by their memory alone",
		"F18": "attributes of files in memory count as its memory",
	},
}

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
			lacks := hostile.Lacking(posture)
			if !slices.Equal(lacks, []hostile.Wall{hostile.SharedFiles}) { // which nobody has who shares the kernel
				t.Errorf("the walls %q are not promised", lacks)
			}
			var cases []string
			for _, c := range hostile.Cases() {
				if otherwise[name][c.ID] == "" && (full(name) || !c.Hurts) {
					cases = append(cases, c.ID)
				}
			}
			hostile.Run(t, hostile.Setup{
				New: func(executortest.T) executor.Executor { return e }, Interpreters: interpreters(t), Lacks: lacks, Only: cases,
				Races:     hostile.DefaultRaces / 5,
				Leftovers: func() []string { return leftovers(t, d, ask) },
			})
		})
	}
}
