//go:build linux

package process_test

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// hostTime returns the time of processors that this process has used: what a run
// costs the host itself, however busy the machine is.
func hostTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure runs f again and again, and reports the host's own time for it.
func measure(b *testing.B, f func()) {
	start := hostTime()
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64((hostTime()-start).Nanoseconds())/float64(b.N), "host-ns/op")
}

// BenchmarkRun compares a run of a script that does nothing with os/exec of the
// same interpreter and the same script.
func BenchmarkRun(b *testing.B) {
	in := hostcase.Interpreters(b)
	for _, tc := range []struct{ name, ext, text string }{{"sh", "sh", "true\n"}, {"python", "py", "pass\n"}} {
		dir := b.TempDir()
		path := write(b, dir+"/main."+tc.ext, tc.text)
		argv := append(interpreter.Command(tc.ext, in[tc.ext].Path), path)
		b.Run(tc.name+"/os-exec", func(b *testing.B) {
			measure(b, func() {
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Env = []string{"PATH=" + interpreter.SearchPath}
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatal(err, out)
				}
			})
		})
		for _, c := range []struct {
			name   string
			config process.Config
		}{{"disk", process.Config{}}, {"memory", process.Config{}}, {"memory-no-cgroup", process.Config{NoCgroup: true}}} {
			b.Run(tc.name+"/"+c.name, func(b *testing.B) {
				if c.name != "disk" { // where the default is
					c.config.Runtime = inMemory(b)
				}
				e, _ := open(b, c.config)
				req := admit(b, executortest.NewWorld(in), script(tc.ext, tc.text))
				measure(b, func() {
					res, err := e.Execute(b.Context(), req)
					if err != nil || res.Ending != executor.Exited(0) {
						b.Fatal(res.Ending, err)
					}
				})
			})
		}
	}
}
