// Package bench compares, side by side and in one run, what a call costs with
// what it would cost without Tracon. Run it with
//
//	go test -bench . ./bench
//
// and read the ratios, not the times.
package bench

import (
	"context"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/schema"
	"github.com/tracon-go/tracon/skill"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/memstore"
	"github.com/tracon-go/tracon/store/sqlite"
)

// memory is a gate.Contents of one skill, as a folder would give it.
type memory struct{ files []bundle.File }

func (m memory) Find(_ context.Context, _, _, script string) (gate.Origin, error) {
	for _, f := range m.files {
		if f.Path == script {
			return gate.FileScript, nil
		}
	}
	return 0, gate.ErrUnknown
}

func (m memory) Read(_ context.Context, _, _ string, l bundle.Limits) (bundle.Bundle, error) {
	return bundle.New(m.files, nil, l)
}

// host is everything that a call goes through.
type host struct {
	*tracon.Runner
	call gate.Call
}

func newHost(b *testing.B, st store.Store, e executor.Executor, script, body string) host {
	b.Helper()
	ctx := b.Context()
	contents := memory{[]bundle.File{{Path: "SKILL.md", Data: []byte("---\nname: s\ndescription: s\n---\n")}, {Path: script, Data: []byte(body)}}}
	found, err := interpreter.Find(ctx, gate.Extension(script, body))
	if err != nil {
		b.Fatal(err)
	}
	ext := found.Extension
	hosts := gate.Static{Enabled: true, Interpreters: map[string]gate.Interpreter{ext: found.Interpreter()}}
	log := audit.NewLog(st)
	g := gate.New(gate.Config{Hosts: hosts, Policies: st, Contents: contents, Declarer: new(skill.Declarations),
		Schemas: schema.New(schema.Options{}), Grants: st, Log: log})
	desk := admin.New(admin.Config{Store: st, Log: log, Hosts: hosts, Contents: contents})
	if _, err := desk.SetPolicy(ctx, "op", "t", func(p *gate.Policy) error {
		p.Enabled, p.Interpreters = true, []string{ext}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	ref := grant.Ref{Tenant: "t", Skill: "s", Script: script}
	review, err := desk.Review(ctx, ref)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := desk.Grant(ctx, admin.Granting{Actor: "op", Ref: ref, Digest: review.Content.Digest(), MinTier: grant.Process}); err != nil {
		b.Fatal(err)
	}
	r, err := tracon.New(tracon.Config{Gate: g, Executor: e, Calls: st, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.Close(context.Background()) })
	return host{r, gate.Call{Tenant: "t", Actor: "bench", Skill: "s", Script: script}}
}

func (h host) run(b *testing.B) {
	out, err := h.Run(b.Context(), h.call)
	if code, ok := out.Ending.ExitCode(); err != nil || !ok || code != 0 {
		b.Fatalf("%v, %v\n%s", out.Ending, err, out.Stderr)
	}
}

func openSQLite(b *testing.B) store.Store {
	b.Helper()
	st, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "tracon.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { st.Close() })
	return st
}

// local is an executor of this host, staged where a host stages by default.
type local interface {
	executor.Executor
	io.Closer
}

// A way is an executor and a store.
type way struct {
	name     string
	executor func() (local, error)
	open     func(*testing.B) store.Store
}

func ways() []way {
	plain := func() (local, error) { return process.New(process.Config{}) }
	boxed := func() (local, error) { return sandbox.New(sandbox.Config{}) }
	memory := func(*testing.B) store.Store { return memstore.New() }
	all := []way{{"process/memory", plain, memory}, {"process/sqlite", plain, openSQLite}}
	if runtime.GOOS == "linux" {
		all = append(all, way{"sandbox/memory", boxed, memory}, way{"sandbox/sqlite", boxed, openSQLite})
	}
	return all
}

// BenchmarkTrue runs a script that does nothing: bare, by os/exec of the same
// interpreter; and the whole path, by each executor, with everything in memory and
// with SQLite at full durability. These report their ratio to bare.
func BenchmarkTrue(b *testing.B) {
	for _, lang := range []struct{ name, script, body string }{
		{"sh", "true.sh", ":\n"},
		{"python", "true.py", "pass\n"},
	} {
		b.Run(lang.name, func(b *testing.B) {
			found, err := interpreter.Find(b.Context(), gate.Extension(lang.script, lang.body))
			if err != nil {
				b.Fatal(err)
			}
			argv := interpreter.Command(found.Extension, found.Path)
			bare := func() {
				cmd := exec.Command(argv[0], append(argv[1:], "/dev/null")...)
				cmd.Env = []string{"LANG=C.UTF-8"}
				cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
			}
			b.Run("bare", func(b *testing.B) {
				for b.Loop() {
					bare()
				}
			})
			for _, way := range ways() {
				b.Run(way.name, func(b *testing.B) {
					e, err := way.executor()
					if err != nil {
						b.Fatal(err)
					}
					defer e.Close()
					h := newHost(b, way.open(b), e, lang.script, lang.body)
					var with, without time.Duration
					for b.Loop() { // in turn, so that both see the same machine
						start := time.Now()
						bare()
						middle := time.Now()
						h.run(b)
						without += middle.Sub(start)
						with += time.Since(middle)
					}
					b.ReportMetric(float64(with)/float64(without), "x-bare")
					b.ReportMetric(float64(with.Nanoseconds())/float64(b.N), "ns/run")
				})
			}
		})
	}
}
