//go:build linux

package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/process"
)

// memory returns a folder in memory.
func memory(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tracon-")
	if err != nil {
		if os.Getenv("TRACON_REQUIRE") == "all" {
			b.Fatal(err)
		}
		b.Skip(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// BenchmarkRun compares a run of a script that does nothing with os/exec of the
// same interpreter and the same script.
func BenchmarkRun(b *testing.B) {
	in := interpreters(b)
	for _, tc := range []struct{ name, ext, text string }{{"sh", "sh", "true\n"}, {"python", "py", "pass\n"}} {
		dir := b.TempDir()
		path := write(b, dir+"/main."+tc.ext, tc.text)
		argv := append(interpreter.Command(tc.ext, in[tc.ext].Path), path)
		b.Run(tc.name+"/os-exec", func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Env = []string{"PATH=" + interpreter.SearchPath}
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatal(err, out)
				}
			}
		})
		for _, c := range []struct {
			name   string
			config process.Config
		}{{"cgroup", process.Config{}}, {"no-cgroup", process.Config{NoCgroup: true}}, {"cgroup-in-memory", process.Config{}}} {
			b.Run(tc.name+"/"+c.name, func(b *testing.B) {
				if c.name == "cgroup-in-memory" { // where a user's runtime folder usually is
					c.config.Runtime = filepath.Join(memory(b), "run")
				}
				e, _ := open(b, c.config)
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
}
