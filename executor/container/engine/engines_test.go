//go:build linux && (amd64 || arm64)

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/internal/enginecase"
	"github.com/tracon-go/tracon/internal/rootfs"
)

// A daemon is an engine of the tests.
type daemon = enginecase.Engine

// An installed engine is one that this package's tests share.
var (
	shared   = map[string]*daemon{}
	sharedMu sync.Mutex
	top      string // the folder of all
)

// engineOf returns the shared engine of that name, which runs.
func engineOf(t testing.TB, name string) *daemon {
	t.Helper()
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if d := shared[name]; d != nil {
		return d
	}
	d := enginecase.New(t, name, top)
	shared[name] = d
	return d
}

func TestMain(m *testing.M) {
	if os.Getenv(hostAddress) != "" {
		fmt.Println(host())
		os.Exit(1)
	}
	var err error
	if top, err = os.MkdirTemp("", "engine"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	for _, d := range shared {
		if err := d.End(); err != nil {
			fmt.Fprintln(os.Stderr, d.Name, err)
			code = 1
		}
	}
	if err := os.RemoveAll(top); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// A shown runtime is one of this machine's programs, in a store of its own.
var aRuntime = sync.OnceValues(func() (r struct {
	store  *image.Store
	digest bundle.Digest
	found  map[string]gate.Interpreter
}, err error) {
	root := filepath.Join(top, "root")
	if err = errors.Join(os.Mkdir(root, 0o755), rootfs.Make(root, slices.Concat(rootfs.Scripts, rootfs.Python, rootfs.Node())...)); err != nil {
		return r, err
	}
	r.store = image.New(filepath.Join(top, "images"))
	made, err := r.store.ImportFolder(context.Background(), root, image.Limits{})
	if err != nil {
		return r, err
	}
	defer made.Image.Close()
	r.digest, r.found = made.Digest, map[string]gate.Interpreter{}
	for _, ext := range []string{"sh", "py", "js"} {
		f, err := interpreter.Inside(ext, "base", made.Image, "")
		if err != nil {
			return r, err
		}
		r.found[ext] = f.Interpreter()
	}
	return r, nil
})
