// Package bench compares, side by side and in one run, what a call costs with
// what it would cost without Tracon. Run it with
//
//	go test -bench . ./bench
//
// and read the ratios, not the times. BenchmarkStart also compares with other
// tools that wall programs off, those that are here. The test holds what must hold
// when thousands of calls come at once.
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

// A house is everything that a call goes through.
type house struct {
	*tracon.Runner
	desk *admin.Admin
	log  *audit.Log
	gate *gate.Gate
	ext  string // of the scripts
}

// newHouse opens a house with one skill, "s", whose scripts are all of the kind of
// the named one. It takes c with its gate and its records filled in.
func newHouse(t testing.TB, st store.Store, c tracon.Config, script string, files ...bundle.File) house {
	t.Helper()
	contents := memory{append(files, bundle.File{Path: "SKILL.md", Data: []byte("---\nname: s\ndescription: s\n---\n")})}
	found, err := interpreter.Find(t.Context(), gate.Extension(script, ""))
	if err != nil {
		t.Fatal(err)
	}
	hosts := gate.Static{Enabled: true, Interpreters: map[string]gate.Interpreter{found.Extension: found.Interpreter()}}
	log := audit.NewLog(st)
	c.Gate = gate.New(gate.Config{Hosts: hosts, Policies: st, Contents: contents, Declarer: new(skill.Declarations),
		Schemas: schema.New(schema.Options{}), Grants: st, Log: log})
	c.Calls, c.Logger = st, slog.New(slog.DiscardHandler)
	r, err := tracon.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return house{r, admin.New(admin.Config{Store: st, Log: log, Hosts: hosts, Contents: contents}), log, c.Gate, found.Extension}
}

// open lets the tenant run the script.
func (h house) open(t testing.TB, tenant, script string, timeout time.Duration) gate.Call {
	t.Helper()
	if _, err := h.desk.SetPolicy(t.Context(), "op", tenant, func(p *gate.Policy) error {
		p.Enabled, p.Interpreters, p.Timeout = true, []string{h.ext}, timeout
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ref := grant.Ref{Tenant: tenant, Skill: "s", Script: script}
	review, err := h.desk.Review(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.desk.Grant(t.Context(), admin.Granting{Actor: "op", Ref: ref, Digest: review.Content.Digest(), MinTier: grant.Process}); err != nil {
		t.Fatal(err)
	}
	return gate.Call{Tenant: tenant, Actor: "bench", Skill: "s", Script: script}
}

// A host is a house with one tenant and its call.
type host struct {
	house
	call gate.Call
}

func newHost(t testing.TB, st store.Store, e executor.Executor, script, body string) host {
	t.Helper()
	h := newHouse(t, st, tracon.Config{Executor: e}, script, bundle.File{Path: script, Data: []byte(body)})
	return host{h, h.open(t, "t", script, 0)}
}

func (h host) run(b *testing.B) {
	out, err := h.Run(b.Context(), h.call)
	if code, ok := out.Ending.ExitCode(); err != nil || !ok || code != 0 {
		b.Fatalf("%v, %v\n%s", out.Ending, err, out.Stderr)
	}
}

func openSQLite(b testing.TB) store.Store {
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
	open     func(testing.TB) store.Store
}

func ways() []way {
	plain := func() (local, error) { return process.New(process.Config{}) }
	boxed := func() (local, error) { return sandbox.New(sandbox.Config{}) }
	memory := func(testing.TB) store.Store { return memstore.New() }
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
