//go:build linux && (amd64 || arm64)

package container_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/internal/imagecase"
	"github.com/tracon-go/tracon/internal/rootfs"
)

// A container shows a runtime in place of the host's programs, as the sandbox does;
// with what an image sets; one that is no longer there, or that nobody gave it, is told before anything starts
// (case 56).
func TestRuntime(t *testing.T) {
	if !asRoot(t) {
		return
	}
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	if err := errors.Join(os.Mkdir(root, 0o755), rootfs.Make(root, rootfs.Scripts...)); err != nil {
		t.Fatal(err)
	}
	store := image.New(filepath.Join(dir, "images"))
	packed, err := imagecase.TarFolder(root)
	if err != nil {
		t.Fatal(err)
	}
	layer := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }
	made, err := store.ImportLayers(t.Context(), []image.Layer{layer}, []string{"PATH=/usr/bin:/opt/more", "LD_PRELOAD=/evil"}, image.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Prune(func(bundle.Digest) bool { return false })
	defer made.Image.Close()
	found, err := interpreter.Inside("sh", "base", made.Image, "")
	if err != nil {
		t.Fatal(err)
	}
	w := executortest.NewWorld(map[string]gate.Interpreter{"sh": found.Interpreter()})
	req, err := w.Admit(t.Context(), script("sh", "ls /usr/bin/python3 /usr/bin/perl 2>/dev/null; ls -d /usr; echo x >/usr/x || echo closed; echo $PATH ${LD_PRELOAD-unset}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tried(engines) {
		e, _ := open(t, container.Config{Engine: find(t, name), Images: store})
		if res, err := e.Execute(t.Context(), req); err != nil || string(res.Stdout) != "/usr\nclosed\n/usr/bin:/opt/more unset\n" {
			t.Errorf("%s: %v, %q, %q", name, err, res.Stdout, res.Stderr)
		}
	}
	without, _ := open(t, container.Config{Engine: find(t, engines[0])})
	if _, err := without.Execute(t.Context(), req); !errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("without runtimes: %v", err)
	}
	empty, _ := open(t, container.Config{Engine: find(t, engines[0]), Images: image.New(filepath.Join(dir, "empty"))})
	if _, err := empty.Execute(t.Context(), req); !errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("a runtime that is not there: %v", err)
	}
}
