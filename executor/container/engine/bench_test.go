//go:build linux && (amd64 || arm64)

package engine_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container"
	"github.com/tracon-go/tracon/executor/container/engine"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/internal/enginecase"
)

// BenchmarkStart compares how long a script that does nothing takes from the call to its
// end: bare, in a container of crun, and in one of each engine, all with the programs of
// one runtime. They take turns, so that noise meets all alike. A metric is the ratio of
// a median to the bare one's.
func BenchmarkStart(b *testing.B) {
	if !withEngines(b) {
		return
	}
	r, err := aRuntime()
	if err != nil {
		b.Fatal(err)
	}
	crun, err := exec.LookPath("crun")
	if err != nil {
		enginecase.Need(b, err)
	}
	c, err := container.New(container.Config{Engine: crun, Runtime: filepath.Join(b.TempDir(), "run"), Images: r.store})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	executors := map[string]executor.Executor{"crun": c}
	for _, name := range names {
		executors[name] = open(b, engineOf(b, name), engine.Config{})
	}
	w := executortest.NewWorld(r.found)
	for ext, text := range map[string]string{"sh": "true\n", "py": "pass\n"} {
		b.Run(ext, func(b *testing.B) {
			o := script(text)
			o.Script = "main." + ext
			o.Files[1].Path = o.Script
			took := map[string][]time.Duration{}
			measure := func(name string, f func() error) {
				begin := time.Now()
				if err := f(); err != nil {
					b.Fatalf("%s: %v", name, err)
				}
				took[name] = append(took[name], time.Since(begin))
			}
			for b.Loop() {
				measure("bare", func() error {
					return exec.Command(r.found[ext].Path, "-c", map[string]string{"sh": "true", "py": "pass"}[ext]).Run()
				})
				for _, name := range []string{"crun", "docker", "podman"} {
					measure(name, func() error {
						req, err := w.Admit(b.Context(), o)
						if err != nil {
							return err
						}
						res, err := executors[name].Execute(b.Context(), req)
						if err == nil && res.Ending != executor.Exited(0) {
							err = errors.New(res.Ending.String())
						}
						return err
					})
				}
			}
			half := func(name string) float64 {
				slices.Sort(took[name])
				return took[name][len(took[name])/2].Seconds()
			}
			for _, name := range []string{"crun", "docker", "podman"} {
				b.ReportMetric(half(name)/half("bare"), name+"-half")
			}
			b.ReportMetric(1000*half("bare"), "bare-ms")
			b.ReportMetric(0, "ns/op") // of all together: it says nothing
		})
	}
}
