//go:build linux && (amd64 || arm64)

package container_test

import (
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/container"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// script returns the order of a script that is alone in its skill.
func script(ext, text string) executortest.Order {
	return executortest.Order{
		Files:  []bundle.File{{Path: "SKILL.md", Data: []byte("# A skill\n")}, {Path: "main." + ext, Data: []byte(text)}},
		Script: "main." + ext, Mode: gate.Argv,
	}
}

func BenchmarkExecute(b *testing.B) {
	if !asRoot(b) {
		return
	}
	for _, name := range engines {
		b.Run(name, func(b *testing.B) {
			e, _ := open(b, container.Config{Engine: find(b, name)})
			w := executortest.NewWorld(hostcase.Interpreters(b))
			for b.Loop() {
				req, err := w.Admit(b.Context(), script("py", "print('hi')\n"))
				if err != nil {
					b.Fatal(err)
				}
				res, err := e.Execute(b.Context(), req)
				if err != nil || string(res.Stdout) != "hi\n" {
					b.Fatalf("%v, %q", err, res.Stdout)
				}
			}
		})
	}
}
