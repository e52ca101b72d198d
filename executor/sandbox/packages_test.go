//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// packed imports a runtime that has these files, each of them empty, and these links.
func packed(t *testing.T, s *image.Store, files []string, links map[string]string) bundle.Digest {
	t.Helper()
	root := t.TempDir()
	place := func(name string) string {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, name := range append(files, "bin/sh") {
		if err := os.WriteFile(place(name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range links {
		if err := os.Symlink(target, place(name)); err != nil {
			t.Fatal(err)
		}
	}
	made, err := s.ImportFolder(t.Context(), root, image.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Image.Close(); err != nil {
		t.Fatal(err)
	}
	return made.Digest
}

// Case 39c: who lacks a package is told which runtimes have it. A link in a
// runtime leads nowhere but into it.
func TestMissingPackageNamesTheRuntimes(t *testing.T) {
	const name = "tracon_absent"
	outside := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	s := image.New(filepath.Join(t.TempDir(), "images"))
	t.Cleanup(func() {
		if _, err := s.Prune(func(bundle.Digest) bool { return false }); err != nil {
			t.Error(err)
		}
	})
	names := map[string]bundle.Digest{
		"a-folder": packed(t, s, []string{"usr/lib/python3.12/site-packages/" + name + "/__init__.py"}, nil),
		"b-file":   packed(t, s, []string{"usr/local/lib/python3.9/dist-packages/" + name + ".py"}, nil),
		"c-link":   packed(t, s, []string{"opt/own/__init__.py"}, map[string]string{"usr/lib/python3/dist-packages/" + name: "/opt/own"}),
		"d-out":    packed(t, s, []string{"usr/lib/x"}, map[string]string{"usr/lib/python3/dist-packages/" + name: outside}),
		"e-node":   packed(t, s, []string{"usr/lib/node_modules/" + name + "/index.js", "usr/lib/node_modules/@scope/" + name + "/index.js"}, nil),
		"f-near":   packed(t, s, []string{"usr/lib/python3/dist-packages/" + name + "_2/__init__.py", "usr/lib/" + name + "/x"}, nil),
		"g-gone":   bundle.Sum([]byte("no image")),
	}
	told := func(context.Context) (map[string]bundle.Digest, error) { return names, nil }
	with, _ := open(t, sandbox.Config{Images: s, Names: told})
	failing, _ := open(t, sandbox.Config{Images: s, Names: func(context.Context) (map[string]bundle.Digest, error) { return names, errors.New("no store") }})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	lacks := func(ext, name, more string) string {
		return "this host's " + ext + ` has no package "` + name + `"; the script needs it` + more
	}
	for _, tc := range []struct {
		name, ext, text string
		e               *sandbox.Executor
		want            string
	}{
		{"python", "py", "import " + name + "\n", with, lacks("py", name, "; the runtimes a-folder, b-file, c-link have it")},
		{"a part of one", "py", "import " + name + ".part\n", with, lacks("py", name, "; the runtimes a-folder, b-file, c-link have it")},
		{"nobody has it", "py", "import tracon_nowhere\n", with, lacks("py", "tracon_nowhere", "")},
		{"the names cannot be had", "py", "import " + name + "\n", failing, lacks("py", name, "")},
		{"node", "js", "require('" + name + "/part')\n", with, lacks("js", name, "; the runtime e-node has it")},
		{"node with a scope", "js", "require('@scope/" + name + "')\n", with, lacks("js", "@scope/"+name, "; the runtime e-node has it")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := tell(t, tc.e, w, tc.ext, tc.text)
			if code, ok := got.res.Ending.ExitCode(); got.err != nil || !ok || code != 1 {
				t.Fatal(got)
			}
			if !slices.Contains(got.res.Notes, tc.want) {
				t.Errorf("notes %q, want %q", got.res.Notes, tc.want)
			}
		})
	}
}
