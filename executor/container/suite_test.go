//go:build linux && (amd64 || arm64)

package container_test

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// engines are the OCI runtimes that this executor drives.
var engines = []string{"crun", "runc", "runsc"}

// engineEnv names the one OCI runtime that tests go through.
const engineEnv = "TRACON_TEST_ENGINE"

// tried are those of them that a test goes through: the first alone where tests are
// short, as in the race pass, and all in ./check engines.
func tried(list []string) []string {
	if name := os.Getenv(engineEnv); name != "" {
		return []string{name}
	}
	if testing.Short() {
		return list[:1]
	}
	return list
}

// find returns the path of the OCI runtime.
func find(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		if os.Getenv("TRACON_REQUIRE") == "all" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return path
}

// asRoot reports whether this is root. Where it is not, it holds that New says so,
// and a test has no more to do.
func asRoot(t testing.TB) bool {
	t.Helper()
	if os.Geteuid() == 0 {
		return true
	}
	_, err := container.New(container.Config{Engine: "/usr/bin/crun", Runtime: filepath.Join(t.TempDir(), "run")})
	if !errors.Is(err, container.ErrWall) || !strings.Contains(err.Error(), "sandbox") {
		t.Errorf("an ordinary user is told %v", err)
	}
	return false
}

// open returns an executor in a runtime folder of its own.
func open(t testing.TB, c container.Config) (*container.Executor, string) {
	t.Helper()
	if c.Runtime == "" {
		c.Runtime = filepath.Join(t.TempDir(), "run")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	e, err := container.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if left := append(hostcase.List(c.Runtime), leftovers(c.Runtime)...); len(left) > 0 {
			t.Errorf("case 40: after Close there is still %q", left)
		}
	})
	return e, c.Runtime
}

// leftovers returns the folders and the cgroups of runs, and what is in these.
func leftovers(runtime string) []string {
	return append(hostcase.Runs(runtime), runsIn(hostcase.Instances(runtime)...)...)
}

// runsIn returns the cgroups of the runs of the instances.
func runsIn(instances ...string) []string {
	return hostcase.Below(hostcase.Cgroups(instances...), "tenant-*/tracon-*")
}

// R2, B3: the conformance suite holds with every OCI runtime; in every dialect with the
// first in ./check engines, and with each in ./check long. TestLanguages has each start
// scripts in all of them.
func TestConformance(t *testing.T) {
	if !asRoot(t) {
		return
	}
	for _, name := range tried(engines) {
		t.Run(name, func(t *testing.T) {
			e, runtime := open(t, container.Config{Engine: find(t, name)})
			dialects := executortest.Dialects()
			if testing.Short() || name != engines[0] && !hostcase.Full() { // what differs with the OCI runtime does not with the dialect
				dialects = slices.DeleteFunc(dialects, func(d executortest.Dialect) bool { return d.Name != "sh" })
			}
			executortest.Run(t, executortest.Setup{
				New:          func(executortest.T) executor.Executor { return e },
				Interpreters: hostcase.Interpreters(t),
				Dialects:     dialects,
				Leftovers:    func() []string { return leftovers(runtime) },
				Lacks:        executortest.Lacks{Pipes: name == "runsc"},
			})
		})
	}
}

// B2: scripts of each language run with each OCI runtime.
func TestLanguages(t *testing.T) {
	if !asRoot(t) {
		return
	}
	for _, name := range tried(engines) {
		t.Run(name, func(t *testing.T) {
			e, _ := open(t, container.Config{Engine: find(t, name)})
			w := executortest.NewWorld(hostcase.Interpreters(t))
			for ext, text := range hostcase.Languages {
				req, err := w.Admit(t.Context(), script(ext, text))
				if err != nil {
					t.Fatal(err)
				}
				if res, err := e.Execute(t.Context(), req); err != nil || string(res.Stdout) != "42\n" {
					t.Errorf("%s: %v, %v, %q, %.300q", ext, res.Ending, err, res.Stdout, res.Stderr)
				}
			}
		})
	}
}
