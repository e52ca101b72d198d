//go:build linux && (amd64 || arm64)

package engine_test

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moby/moby/api/types/container"
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
	var left []string
	_ = hostcase.Eventually(func() error { // one that was made when its caller had left has no process, and goes a little later
		if left = containers(t, ask); len(left) > 0 && !running(t, ask) {
			return errors.New("there is one that was never started")
		}
		return nil
	})
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

// running reports whether one of our containers was started.
func running(t testing.TB, ask *client.Client) bool {
	return slices.ContainsFunc(listed(t, ask), func(c container.Summary) bool { return c.State != container.StateCreated })
}

func interpreters(t testing.TB) map[string]gate.Interpreter {
	t.Helper()
	r, err := aRuntime()
	if err != nil {
		t.Fatal(err)
	}
	return r.found
}

// dialects are those in which the suite runs: the first engine's are all, as what differs
// with the engine does not with the dialect.
func dialects(name string) []executortest.Dialect {
	return slices.DeleteFunc(executortest.Dialects(), func(d executortest.Dialect) bool { return d.Name != "sh" && name != names[0] && !hostcase.Full() })
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

// B2: scripts of each language run with each engine.
func TestLanguages(t *testing.T) {
	if !withEngines(t) {
		return
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			e, w := open(t, engineOf(t, name), engine.Config{}), executortest.NewWorld(interpreters(t))
			for ext, text := range hostcase.Languages {
				o := script(text)
				o.Script = "main." + ext
				o.Files[1].Path = o.Script
				req, err := w.Admit(t.Context(), o)
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
