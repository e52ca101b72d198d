//go:build microvm

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tracon-go/tracon/internal/hostcase"
)

// B2, B8: an ordinary user prepares machines and runs a script in one with the real
// binary, as root of a user namespace that newuidmap gives subordinate identities to;
// without them, or without cgroups, nothing runs and it is said what to do. ./check
// microvm builds this test, and says where the package of a kernel is.
func TestMicrovmWithoutRoot(t *testing.T) {
	cgroups := hostcase.NeedDelegate(t, hostcase.Ordinary)
	root := filepath.Dir(hostcase.OwnDir(t)) // the scripts' folders are for everybody there
	scripts(t, testscript.Params{Files: []string{"testdata/microvm/ordinary.txtar"}, WorkdirRoot: root}, func(env *testscript.Env) error {
		env.Setenv("KERNEL", filepath.Join(env.WorkDir, "kernel.deb"))
		env.Setenv("ENTER", strings.Join(cgroups, " "))
		env.Setenv("ORDINARY", fmt.Sprint(hostcase.Ordinary))
		kernel, err := os.ReadFile(os.Getenv("TRACON_MICROVM_KERNEL"))
		home, run := filepath.Join(env.WorkDir, "home"), filepath.Join(env.WorkDir, "run")
		return errors.Join(err, os.WriteFile(env.Getenv("KERNEL"), kernel, 0o644), os.Mkdir(home, 0o700), os.Chmod(env.Getenv("BIN"), 0o755),
			os.Chown(home, hostcase.Ordinary, hostcase.Ordinary), os.Chown(run, hostcase.Ordinary, hostcase.Ordinary))
	})
}
