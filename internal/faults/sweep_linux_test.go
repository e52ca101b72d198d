package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/daemon"
)

// A step is one command of the canonical workload, with the look at what must be
// there once it was acknowledged.
type step struct {
	name  string
	args  []string
	acked func(h *daemon.House, out []byte) error
}

// base makes the installation that every fault starts from, and the steps from
// there on.
func base(t *testing.T) (site, []step) {
	s := newSite(t)
	s.must(t, "run", "--grant", "x", "a.sh", "--args", `["`+s.proof()+`"]`)
	var g struct{ ID string }
	find := func(text string) string {
		m := regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(text)
		if m == "" {
			t.Fatalf("no digest in %s", text)
		}
		return m
	}
	digest := find(s.must(t, "grant", "review", "y", "--all-scripts"))
	if err := json.Unmarshal([]byte(s.must(t, "grant", "add", "y", "a.sh", "--digest", digest, "--tier", "process", "--json")), &g); err != nil || g.ID == "" {
		t.Fatalf("grant add --json: %v", err)
	}
	ctx := context.Background()
	return s, []step{
		{"run", []string{"run", "x", "a.sh", "--json", "--args", "PROOF"}, func(h *daemon.House, out []byte) error {
			var run struct{ ID string }
			if err := json.Unmarshal(out, &run); err != nil || run.ID == "" {
				return fmt.Errorf("it printed %q: %w", out, err)
			}
			r, err := h.Store.Call(ctx, "local", run.ID)
			if err != nil || r.Ending != "exited" {
				return fmt.Errorf("its record says %q: %w", r.Ending, err)
			}
			return nil
		}},
		{"grant add", []string{"grant", "add", "y", "--all-scripts", "--digest", digest, "--tier", "process"}, func(h *daemon.House, _ []byte) error {
			g, err := h.Store.Grant(ctx, grant.Ref{Tenant: "local", Skill: "y", AllScripts: true})
			if err == nil && !g.InForce(time.Now()) {
				err = errors.New("the grant is not in force")
			}
			return err
		}},
		{"grant revoke", []string{"grant", "revoke", g.ID}, func(h *daemon.House, _ []byte) error {
			g, err := h.Store.GrantByID(ctx, "local", g.ID)
			if err == nil && g.InForce(time.Now()) {
				err = errors.New("the grant is in force")
			}
			return err
		}},
		{"skill import", []string{"skill", "import", "z/"}, func(h *daemon.House, _ []byte) error {
			skills, err := h.Admin.Skills(ctx, "local")
			if err == nil && !slices.ContainsFunc(skills, func(v admin.Version) bool { return v.Skill == "z" }) {
				err = errors.New("the skill is not there")
			}
			return err
		}},
		{"key create", []string{"key", "create", "k", "--platform", "--json"}, func(h *daemon.House, out []byte) error {
			var made struct{ Secret string }
			if err := json.Unmarshal(out, &made); err != nil {
				return fmt.Errorf("it printed no key: %w", err) // which is not shown
			}
			p, err := access.Authenticate(ctx, h.Store, made.Secret, time.Now())
			if err == nil && !p.IsPlatform() {
				err = errors.New("the key lets nobody in")
			}
			return err
		}},
		{"policy set", []string{"policy", "set", "--timeout", "7s"}, func(h *daemon.House, _ []byte) error {
			p, err := h.Admin.Policy(ctx, "local")
			if err == nil && p.Timeout != 7*time.Second {
				err = fmt.Errorf("the timeout is %s", p.Timeout)
			}
			return err
		}},
	}
}

// The calls of the write path. Those that only a file of ours can mean are looked
// at where the database and the instances lie; the others, wherever they are made.
var (
	onFiles  = []string{"openat", "pwrite64", "write", "ftruncate", "unlink", "unlinkat"}
	anywhere = []string{"fsync", "fdatasync", "rename", "renameat", "renameat2", "link", "linkat", "mkdirat"}
	// In the full sweep also: what is locked, mapped and closed.
	rarely = []string{"fcntl", "flock", "mmap", "close", "pread64"}
)

// A mode is what happens at a call.
type mode struct {
	name, inject string
	kills        bool
}

var modes = []mode{{"EIO", "error=EIO", false}, {"ENOSPC", "error=ENOSPC", false}, {"KILL", "signal=KILL", true}}

// A row of the table counts what one call was good for.
type row struct{ explored, fired, acked, violations atomic.Int64 }

// TestFaultSweep: I1 to I9, case 57. Every call of the write path fails, or is the
// moment at which the process is killed; then the next process finds what was
// acknowledged, whole, and nothing that is half.
func TestFaultSweep(t *testing.T) {
	strace := need(t, "strace")
	s, steps := base(t)
	h, err := s.open(t)
	if err != nil {
		t.Fatal(err)
	}
	before, admissions, err := leaves(h)
	if err := errors.Join(err, h.Close(context.Background())); err != nil {
		t.Fatal(err)
	}
	w := &sweep{T: t, strace: strace, base: s, log: before, admissions: admissions}
	if !full() {
		// The same part each time: each call, at its first occurrences and at every
		// seventh of the rest, in the two steps that matter most; the others at their
		// flushes.
		w.every, w.first = 7, 3
	}
	began := time.Now()
	type lot struct {
		step step
		call string
		mode mode
	}
	var lots []lot
	for i, st := range steps {
		for _, call := range slices.Concat(anywhere, onFiles, rarely) {
			for _, m := range modes {
				if !full() && (slices.Contains(rarely, call) || i > 1 && call != "fsync" || m.name == "ENOSPC" && call != "pwrite64" ||
					testing.Short() && (i > 0 || call != "fsync")) {
					continue
				}
				lots = append(lots, lot{st, call, m})
			}
		}
	}
	rows := map[string]*row{}
	for _, l := range lots {
		rows[l.step.name+" "+l.call+" "+l.mode.name] = &row{}
	}
	work := make(chan lot)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for l := range work {
				w.explore(l.step, l.call, l.mode, rows[l.step.name+" "+l.call+" "+l.mode.name])
			}
		})
	}
	for _, l := range lots {
		work <- l
	}
	close(work)
	wg.Wait()
	w.table(rows, time.Since(began))
}

type sweep struct {
	*testing.T
	strace       string
	base         site
	log          []audit.Hash // of the base
	admissions   int          // in it
	every, first int          // which occurrences: all up to first, then each every-th; zero: all
}

// explore takes the occurrences of a call one after the other, until a process
// makes no more of it.
func (w *sweep) explore(st step, call string, m mode, r *row) {
	for n := 1; w.Context().Err() == nil; n++ {
		if w.every > 0 && n > w.first && n%w.every != 0 {
			continue
		}
		fired, made := w.fault(st, call, m, n, r)
		if !fired {
			// Strace counts for each thread. That no thread made so many calls is the
			// end; a call that was made and did not fail is an error of this test.
			if made >= n {
				w.Errorf("%s, %s of %s number %d: it was made, and the fault did not come", st.name, m.name, call, n)
			}
			return
		}
	}
}

// fault does one step on a copy of the base, with the fault, and looks at what is
// left. It returns whether the fault came, and how many calls one thread made at most.
func (w *sweep) fault(st step, call string, m mode, n int, r *row) (fired bool, made int) {
	t, s := w.T, w.base.copy(w.T)
	defer os.RemoveAll(s.dir) // thousands of copies are not kept until the end
	trace := filepath.Join(s.dir, "trace")
	words := []string{w.strace, "-f", "-qq", "-o", trace, "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", call, m.inject, n)}
	if !slices.Contains(anywhere, call) {
		for _, p := range []string{"", "/tracon.db", "/tracon.db-wal", "/tracon.db-shm", "/instances", "/keys"} {
			words = append(words, "-P", s.data()+p)
		}
	}
	args := slices.Clone(st.args)
	for i, word := range args {
		if word == "PROOF" {
			args[i] = `["` + s.proof() + `"]`
		}
	}
	c := s.command(t.Context(), words, args...)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	exit, exited := errors.AsType[*exec.ExitError](err)
	if err != nil && !exited {
		t.Errorf("%s: %v", st.name, err)
		return false, 0
	}
	text, rerr := os.ReadFile(trace)
	if rerr != nil {
		t.Errorf("the trace: %v; strace says %s", rerr, &stderr)
		return false, 0
	}
	killed := exited && exit.Sys().(syscall.WaitStatus).Signaled()
	fired = strings.Contains(string(text), "(INJECTED)") || m.kills && killed
	if !fired {
		return false, most(string(text), call)
	}
	r.explored.Add(1)
	r.fired.Add(1)
	if err == nil {
		r.acked.Add(1)
	}
	if why := w.violated(s, st, err == nil, out); why != "" {
		r.violations.Add(1)
		t.Errorf("%s, %s of %s number %d (exit %v): %s\n%s", st.name, m.name, call, n, err, why, &stderr)
	}
	return true, 0
}

// most returns how many calls the busiest thread of a trace made.
func most(trace, call string) (n int) {
	by := map[string]int{}
	for line := range strings.Lines(trace) {
		thread, rest, _ := strings.Cut(line, " ")
		if strings.HasPrefix(strings.TrimLeft(rest, " "), call+"(") {
			by[thread]++
			n = max(n, by[thread])
		}
	}
	return n
}

// violated looks at what a fault left, and says what must not be.
func (w *sweep) violated(s site, st step, acked bool, out []byte) string {
	h, found, err := s.recovered(w.T)
	if h != nil {
		defer func() {
			if err := h.Close(context.Background()); err != nil {
				w.Errorf("closing: %v", err)
			}
		}()
	}
	if err != nil {
		return "the next process: " + err.Error()
	}
	if len(found) > 0 {
		return "fsck finds " + asJSON(found)
	}
	now, admissions, err := leaves(h)
	switch {
	case err != nil:
		return err.Error()
	case len(now) < len(w.log) || !slices.Equal(now[:len(w.log)], w.log):
		return "I1, I2: the log does not begin with what was acknowledged before"
	}
	if ran := s.proofs(w.T); ran > admissions-w.admissions {
		return fmt.Sprintf("I4: the script ran %d times, and %d calls were admitted", ran, admissions-w.admissions)
	} else if ran > 1 {
		return fmt.Sprintf("R21: the script ran %d times for one call", ran)
	}
	if acked {
		if err := st.acked(h, out); err != nil {
			return "I1: it was acknowledged, and " + err.Error()
		}
	}
	return ""
}

// table prints what was explored, and fails when some step was not tried at all.
func (w *sweep) table(rows map[string]*row, took time.Duration) {
	var total row
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-42s %9s %6s %6s %10s\n", "step, call, fault", "explored", "fired", "acked", "violations")
	var names []string
	for name := range rows {
		names = append(names, name)
	}
	slices.Sort(names)
	flushed := map[string]bool{}
	for _, name := range names {
		r := rows[name]
		if r.explored.Load() == 0 {
			continue // no process of the step makes the call
		}
		fmt.Fprintf(&b, "%-42s %9d %6d %6d %10d\n", name, r.explored.Load(), r.fired.Load(), r.acked.Load(), r.violations.Load())
		total.explored.Add(r.explored.Load())
		total.fired.Add(r.fired.Load())
		total.acked.Add(r.acked.Load())
		total.violations.Add(r.violations.Load())
		flushed[name] = true
	}
	fmt.Fprintf(&b, "%-42s %9d %6d %6d %10d in %s\n", "all", total.explored.Load(), total.fired.Load(), total.acked.Load(), total.violations.Load(), took.Round(time.Second))
	w.Log(b.String())
	for name := range rows {
		if strings.Contains(name, " fsync ") && !flushed[name] {
			w.Errorf("%s: no fault came, and the step flushes", name)
		}
	}
}

// What the sweep looks at shows what it is there for: each invariant that it
// checks is broken once, by hand.
func TestTheSweepNotices(t *testing.T) {
	s, steps := base(t)
	h, err := s.open(t)
	if err != nil {
		t.Fatal(err)
	}
	log, admissions, err := leaves(h)
	if err := errors.Join(err, h.Close(context.Background())); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		acked bool
		harm  func(s site) error
		says  string
	}{
		{"nothing is amiss", false, func(site) error { return nil }, ""},
		{"I1: acknowledged, and not there", true, func(site) error { return nil }, "I1: it was acknowledged"},
		{"I2: an old backup", false, func(s site) error { return os.Remove(filepath.Join(s.data(), daemon.DatabaseFile)) }, " "},
		{"I4: a script without an admission", false, func(s site) error { return os.WriteFile(s.proof(), []byte("ran\n"), 0o600) }, "I4"},
		{"I8: a folder that is left", false, func(s site) error {
			return os.MkdirAll(filepath.Join(s.dir, "home/.local/share/tracon/instances/01900000-0000-7000-8000-000000000001.json"), 0o700)
		}, "instance"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &sweep{T: t, base: s, log: log, admissions: admissions}
			broken := s.copy(t)
			if err := tt.harm(broken); err != nil {
				t.Fatal(err)
			}
			why := w.violated(broken, steps[1], tt.acked, nil)
			if tt.says == "" && why != "" || !strings.Contains(why, tt.says) {
				t.Errorf("it says %q, want %q", why, tt.says)
			}
		})
	}
}
