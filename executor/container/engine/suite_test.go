//go:build linux && (amd64 || arm64)

package engine_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container/engine"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/gate"
)

// names are those of the engines that this executor is shown to drive.
var names = []string{"docker", "podman"}

// open returns an executor of the engine, with the runtime of the tests.
func open(t testing.TB, d *daemon, c engine.Config) *engine.Executor {
	t.Helper()
	r, err := aRuntime()
	if err != nil {
		t.Fatal(err)
	}
	c.Address, c.Images = d.address(), r.store
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
	})
	return e
}

func interpreters(t testing.TB) map[string]gate.Interpreter {
	t.Helper()
	r, err := aRuntime()
	if err != nil {
		t.Fatal(err)
	}
	return r.found
}

// R2, B3: the conformance suite holds with both engines.
func TestConformance(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("engines are started by root; TestTalk shows what an ordinary user can")
		return
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			d := engineOf(t, name)
			e := open(t, d, engine.Config{})
			executortest.Run(t, executortest.Setup{
				New:          func(executortest.T) executor.Executor { return e },
				Interpreters: interpreters(t),
			})
		})
	}
}
