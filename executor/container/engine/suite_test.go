//go:build linux && (amd64 || arm64)

package engine_test

import (
	"cmp"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moby/moby/client"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container/engine"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/enginecase"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// names are those of the engines that this executor is shown to drive.
var names = enginecase.Names

// open returns an executor of the engine, with the runtime of the tests.
func open(t testing.TB, d *daemon, c engine.Config) *engine.Executor {
	t.Helper()
	r, err := aRuntime()
	if err != nil {
		t.Fatal(err)
	}
	c.Address, c.Images = cmp.Or(c.Address, d.Address()), r.store
	if c.Ready == nil {
		c.Ready = []bundle.Digest{r.digest}
	}
	if c.Runtime == "" {
		c.Runtime = filepath.Join(t.TempDir(), "run")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	e, err := engine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if left := hostcase.List(c.Runtime); len(left) != 1 { // the folder's own name
			t.Errorf("case 40: after Close there is still %q", left)
		}
	})
	return e
}

func root() bool { return os.Geteuid() == 0 }

// leftovers returns what runs have left: containers, and the cgroups of an engine that
// has a folder of its own for them; that of Podman is everybody's.
func leftovers(t testing.TB, d *daemon, ask *client.Client) []string {
	left := containers(t, ask)
	for _, pattern := range []string{"/sys/fs/cgroup/*" + d.Cgroup() + "/*", "/sys/fs/cgroup" + d.Cgroup() + "/*"} {
		paths, _ := filepath.Glob(pattern)
		for _, p := range paths {
			if info, err := os.Stat(p); err == nil && info.IsDir() {
				left = append(left, p)
			}
		}
	}
	return left
}

func interpreters(t testing.TB) map[string]gate.Interpreter {
	t.Helper()
	r, err := aRuntime()
	if err != nil {
		t.Fatal(err)
	}
	return r.found
}

// full reports whether everything is to be shown with each engine, as ./check long asks
// for. Otherwise the second engine is shown what differs with the engine.
func full(name string) bool { return name == names[0] || os.Getenv("TRACON_ENGINES_FULL") == "yes" }

func dialects(name string) []executortest.Dialect {
	return slices.DeleteFunc(executortest.Dialects(), func(d executortest.Dialect) bool { return d.Name != "sh" && !full(name) })
}

// R2, B3: the conformance suite holds with both engines.
func TestConformance(t *testing.T) {
	if !withEngines(t) {
		return
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			d := engineOf(t, name)
			e, ask := open(t, d, engine.Config{}), asker(t, d)
			executortest.Run(t, executortest.Setup{
				New:          func(executortest.T) executor.Executor { return e },
				Interpreters: interpreters(t),
				Dialects:     dialects(name),
				Leftovers:    func() []string { return leftovers(t, d, ask) },
			})
		})
	}
}
