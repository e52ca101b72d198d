//go:build microvm && linux && amd64

package microvm_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/microvm"
	"github.com/tracon-go/tracon/executor/microvm/kit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/internal/hostcase"
	"github.com/tracon-go/tracon/internal/rootfs"
)

// These tests start real machines. They are built with the tag microvm alone, as
// ./check microvm does, which says where the package of a kernel is.
const kernelVariable = "TRACON_MICROVM_KERNEL"

// base is where the kit is, made once for all tests.
var base string

func TestMain(m *testing.M) {
	var err error
	if base, err = os.MkdirTemp("", "tracon-microvm-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(base); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// prepared makes the kit, with a runtime of this machine's own programs, and finds the
// interpreters in it.
var prepared = sync.OnceValues(func() (map[string]gate.Interpreter, error) {
	ctx := context.Background()
	root := filepath.Join(base, "root")
	err := errors.Join(os.Mkdir(root, 0o755), rootfs.Make(root, slices.Concat(rootfs.Scripts, rootfs.Python, rootfs.Node())...))
	if err != nil {
		return nil, err
	}
	store := image.New(filepath.Join(base, "images"))
	made, err := store.ImportFolder(ctx, root, image.Limits{})
	if err != nil {
		return nil, err
	}
	defer made.Image.Close()
	if _, err := kit.Prepare(ctx, kitDir(), kit.Source{Package: os.Getenv(kernelVariable)}); err != nil {
		return nil, err
	}
	if _, err := kit.AddDisk(ctx, kitDir(), made.Image); err != nil {
		return nil, err
	}
	interpreters := map[string]gate.Interpreter{}
	for _, ext := range []string{"sh", "py", "js"} {
		found, err := interpreter.Inside(ext, "base", made.Image, "")
		if err != nil {
			return nil, err
		}
		interpreters[ext] = found.Interpreter()
	}
	return interpreters, nil
})

// start is how long a machine may take until its script begins: only one that hangs takes
// as long.
const start = 10 * time.Minute

func kitDir() string { return filepath.Join(base, "kit") }

func interpreters(t testing.TB) map[string]gate.Interpreter {
	t.Helper()
	list, err := prepared()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// open returns an executor in a runtime folder of its own. It makes no machine ahead where
// c does not say how many: what waits for a call is no leftover of one. Such machines wait
// for as long as a slow host takes.
func open(t testing.TB, c microvm.Config) (*microvm.Executor, string) {
	t.Helper()
	interpreters(t)
	c.BootTime, c.Ahead = start, cmp.Or(c.Ahead, -1)
	c.Images = image.New(filepath.Join(base, "images"))
	c.Kit, c.Runtime = kitDir(), filepath.Join(t.TempDir(), "run")
	c.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	e, err := microvm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	microvm.KeepAhead(e, time.Hour)
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

// leftovers returns the folders, the cgroups and the processes of runs.
func leftovers(runtime string) []string { return append(traces(runtime), hostcase.Children()...) }

// traces is leftovers where the suite has processes of its own.
func traces(runtime string) []string {
	return append(hostcase.Runs(runtime), hostcase.Below(hostcase.Cgroups(hostcase.Instances(runtime)...), "tenant-*/machine-*")...)
}
