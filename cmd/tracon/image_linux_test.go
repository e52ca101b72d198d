package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tracon-go/tracon/internal/enginecase"
)

// R2, R11, B1, B5, TM-23: an image of BusyBox and Python in three layers, pulled by its
// digest, runs the same skill with files in and out on every executor of this host, and
// each run's entry has its digest; one that was altered by a byte is refused. An ordinary
// user has the sandbox, and so has who is short of time: ./check engines shows the others.
func TestRealImage(t *testing.T) {
	type executor struct{ name, executor, oci, engine, tier string }
	all := []executor{{name: "sandbox", executor: "sandbox", tier: "sandbox"}}
	if os.Geteuid() == 0 && !testing.Short() {
		for _, e := range [][2]string{{"crun", "sandbox"}, {"runc", "sandbox"}, {"runsc", "kernel"}} {
			path, err := exec.LookPath(e[0])
			if err != nil {
				enginecase.Need(t, err)
			}
			all = append(all, executor{name: e[0], executor: "container", oci: path, tier: e[1]})
		}
		for _, name := range enginecase.Names {
			e := enginecase.New(t, name, t.TempDir())
			t.Cleanup(func() {
				if err := e.End(); err != nil {
					t.Error(err)
				}
			})
			all = append(all, executor{name: name, executor: "container", engine: e.Address(), tier: "sandbox"})
		}
	}
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) {
			scripts(t, testscript.Params{Files: []string{"testdata/container/image.txtar"}}, func(env *testscript.Env) error {
				env.Setenv("EXECUTOR", e.executor)
				env.Setenv("OCI_RUNTIME", e.oci)
				env.Setenv("ENGINE", e.engine)
				env.Setenv("TIER", e.tier)
				text := fmt.Sprintf("executor: %s\ncontainer_runtime: %q\ncontainer_engine: %q\nenabled: true\ninterpreters: {py: \"runtime:real\", sh: \"runtime:real:/bin/sh\"}\n", e.executor, e.oci, e.engine)
				return os.WriteFile(filepath.Join(env.WorkDir, "tracon.yaml"), []byte(text), 0o600)
			})
		})
	}
}
