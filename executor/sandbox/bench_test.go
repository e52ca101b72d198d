//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"golang.org/x/sys/unix"
)

var nothing = []struct{ name, ext, text string }{{"sh", "sh", "true\n"}, {"python", "py", "pass\n"}, {"node", "js", "0\n"}}

// script returns the order of a script that is alone in its skill.
func script(ext, text string) executortest.Order {
	return executortest.Order{
		Files:  []bundle.File{{Path: "SKILL.md", Data: []byte("# A skill\n")}, {Path: "main." + ext, Data: []byte(text)}},
		Script: "main." + ext, Mode: gate.Argv, Policy: gate.Policy{Timeout: 2 * time.Minute},
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
// to the result, with os/exec and with bubblewrap of the same interpreter and
// script. They take turns. A quarter of the runs were faster than the time
// reported, and half of them than the other. The third number is processor time,
// of this process and of what it started: it holds also where the machine does
// other things, which a box, in a session and a cgroup of its own, suffers from
// more than a child of this session does.
func BenchmarkStart(b *testing.B) {
	in := interpreters(b)
	for _, tc := range nothing {
		b.Run(tc.name, func(b *testing.B) {
			dir := b.TempDir()
			path := filepath.Join(dir, "main."+tc.ext)
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				b.Fatal(err)
			}
			argv := interpreter.Command(tc.ext, in[tc.ext].Path)
			command := func(argv []string) func() {
				return func() {
					cmd := exec.Command(argv[0], argv[1:]...)
					cmd.Env = []string{"PATH=" + interpreter.SearchPath}
					if out, err := cmd.CombinedOutput(); err != nil {
						b.Fatal(err, string(out))
					}
				}
			}
			e, _ := open(b, sandbox.Config{})
			req := admit(b, executortest.NewWorld(in), script(tc.ext, tc.text))
			kinds := []struct {
				name string
				run  func()
				took []time.Duration
				cpu  time.Duration
			}{
				{name: "os-exec", run: command(append(slices.Clone(argv), path))},
				{name: "bubblewrap", run: command(append(append(bubblewrap(b, dir), argv...), "/skill/main."+tc.ext))},
				{name: "box", run: func() {
					res, err := e.Execute(b.Context(), req)
					if err != nil || res.Ending != executor.Exited(0) {
						b.Fatal(res.Ending, err)
					}
				}},
			}
			for b.Loop() {
				for i := range kinds {
					begin, before := time.Now(), processorTime(b)
					kinds[i].run()
					kinds[i].took = append(kinds[i].took, time.Since(begin))
					kinds[i].cpu += processorTime(b) - before
				}
			}
			var bare [3]float64
			for i, k := range kinds {
				slices.Sort(k.took)
				for j, took := range []time.Duration{k.took[len(k.took)/4], k.took[len(k.took)/2], k.cpu / time.Duration(len(k.took))} {
					ms := float64(took) / 1e6
					if i == 0 {
						bare[j] = ms
					}
					what := []string{"quarter", "half", "cpu"}[j]
					if what == "cpu" && k.name == "bubblewrap" {
						continue // it does not wait for all that it starts, so that cannot be known
					}
					b.ReportMetric(ms, k.name+"-"+what+"-ms")
					b.ReportMetric(ms/bare[j], k.name+"-"+what+"-ratio")
				}
			}
			b.ReportMetric(0, "ns/op") // of all three together: it says nothing
		})
	}
}

// processorTime returns that of this process and of all that it has waited for.
func processorTime(b *testing.B) time.Duration {
	var total time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return total
}
