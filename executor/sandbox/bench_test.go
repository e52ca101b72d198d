//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
)

var nothing = []struct{ name, ext, text string }{{"sh", "sh", "true\n"}, {"python", "py", "pass\n"}, {"node", "js", "0\n"}}

// script returns the order of a script that is alone in its skill.
func script(ext, text string) executortest.Order {
	return executortest.Order{
		Files:  []bundle.File{{Path: "SKILL.md", Data: []byte("# A skill\n")}, {Path: "main." + ext, Data: []byte(text)}},
		Script: "main." + ext, Mode: gate.Argv,
	}
}

func admit(t testing.TB, w *executortest.World, o executortest.Order) executor.Request {
	t.Helper()
	req, err := w.Admit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// bubblewrap returns the command line of bubblewrap with the namespaces and
// mounts of a box; it has no cgroups, no Landlock and no filter.
func bubblewrap(b *testing.B, dir string) []string {
	b.Helper()
	path, err := exec.LookPath("bwrap")
	if err != nil {
		if os.Getenv("TRACON_REQUIRE") == "all" {
			b.Fatal(err)
		}
		b.Skip(err)
	}
	return []string{
		path, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv",
		"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--ro-bind", "/etc/alternatives", "/etc/alternatives", "--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", dir, "/skill", "--chdir", "/skill",
	}
}

// BenchmarkStart compares a run of a script that does nothing, from the request
// to the result, with os/exec and with bubblewrap of the same interpreter and script.
func BenchmarkStart(b *testing.B) {
	in := interpreters(b)
	for _, tc := range nothing {
		dir := b.TempDir()
		path := filepath.Join(dir, "main."+tc.ext)
		if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
			b.Fatal(err)
		}
		argv := interpreter.Command(tc.ext, in[tc.ext].Path)
		command := func(b *testing.B, argv []string) {
			for b.Loop() {
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Env = []string{"PATH=" + interpreter.SearchPath}
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatal(err, string(out))
				}
			}
		}
		b.Run(tc.name+"/os-exec", func(b *testing.B) { command(b, append(argv, path)) })
		b.Run(tc.name+"/bubblewrap", func(b *testing.B) {
			command(b, append(append(bubblewrap(b, dir), argv...), "/skill/main."+tc.ext))
		})
		b.Run(tc.name+"/box", func(b *testing.B) {
			e, _ := open(b, sandbox.Config{})
			req := admit(b, executortest.NewWorld(in), script(tc.ext, tc.text))
			for b.Loop() {
				res, err := e.Execute(b.Context(), req)
				if err != nil || res.Ending != executor.Exited(0) {
					b.Fatal(res.Ending, err)
				}
			}
		})
	}
}
