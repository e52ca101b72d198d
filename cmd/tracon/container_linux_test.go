package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// B2, B8: scripts run in containers of an OCI runtime by the real binary: doctor, a run,
// the hostile cases, and what is said where something is missing. gVisor's runs in ./check
// engines, where tests are not short.
func TestContainerScripts(t *testing.T) {
	if os.Geteuid() != 0 {
		scripts(t, testscript.Params{Files: []string{"testdata/container/user.txtar"}}, func(*testscript.Env) error { return nil })
		return
	}
	for name, tier := range map[string]string{"crun": "sandbox", "runsc": "kernel"} {
		if name == "runsc" && testing.Short() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(name)
			if err != nil {
				if os.Getenv("TRACON_REQUIRE") == "all" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			scripts(t, testscript.Params{Files: []string{"testdata/container/root.txtar"}}, func(env *testscript.Env) error {
				env.Setenv("ENGINE", path)
				env.Setenv("NAME", name)
				env.Setenv("TIER", tier)
				return nil
			})
		})
	}
}
