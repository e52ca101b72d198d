//go:build linux

package hostile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/gate"
)

func runAll(t tester, s Setup, cases []testCase, red bool) {
	t.Helper()
	if s.New == nil || s.Interpreters["py"] == (gate.Interpreter{}) {
		t.Fatalf("hostile: Setup without New, or without an interpreter for py")
	}
	for _, id := range s.Only {
		if !slices.ContainsFunc(cases, func(c testCase) bool { return c.id == id }) {
			t.Fatalf("hostile: there is no case %q", id)
		}
	}
	if s.Races == 0 {
		s.Races = DefaultRaces
	}
	h := plant(t, s.Folder)
	ex := s.New(t)
	controls := map[Wall]executor.Executor{}
	control := func(w Wall) executor.Executor {
		if s.Control == nil {
			return nil
		}
		if _, ok := controls[w]; !ok {
			controls[w] = s.Control(t, w)
		}
		return controls[w]
	}
	var rows []Row
	report := func(r Row) {
		rows = append(rows, r)
		if s.Report != nil {
			s.Report(r)
		}
	}
	for _, c := range cases {
		if s.Only != nil && !slices.Contains(s.Only, c.id) {
			continue
		}
		for _, ext := range []string{"py", "sh"} {
			text, ok := c.text(ext)
			if !ok || t.Context().Err() != nil {
				continue // whoever gave up knows that there is more
			}
			row := Row{ID: c.id, Language: ext, Title: c.title, Class: c.class, Wall: c.wall, Must: c.wall.Must(), Outcome: LeftOut, Control: NoControl}
			if s.Interpreters[ext] == (gate.Interpreter{}) {
				report(row)
				continue
			}
			t.run(c.id+" "+ext, func(t tester) {
				k := &trial{tester: t, setup: s, host: h, world: executortest.NewWorld(s.Interpreters), one: c, ext: ext, text: text, row: &row}
				defer func() { report(row) }()
				if red {
					k.red(ex)
					return
				}
				if slices.Contains(s.Lacks, c.wall) {
					row.Outcome = NotPromised
					t.Logf("not promised: %s %s", c.id, c.title)
				} else {
					k.safe(ex)
				}
				k.proved(control(c.wall))
			})
		}
	}
	if len(rows) == 0 {
		t.Errorf("hostile: no case ran")
	}
	t.Logf("%s", Table(rows))
}

// A trial is one case in one language.
type trial struct {
	tester
	setup Setup
	host  *host
	world *executortest.World
	one   testCase
	ext   string
	text  string
	row   *Row

	mustWin bool          // the wall is missing: what must come is waited for
	timeout time.Duration // of a script that does not end by itself
}

// safe runs the case on the executor, where nothing may get through.
func (k *trial) safe(ex executor.Executor) {
	k.Helper()
	f := k.play(ex)
	k.row.Outcome, k.row.Attempts, k.row.Windows = Safe, len(k.tries()), f.windows
	for _, fault := range f.faults {
		k.row.Outcome = Failed
		k.Errorf("%s: the probe did not do its work: %s", k.one.id, fault)
	}
	for _, n := range f.names() {
		k.row.Outcome = Unsafe
		k.row.Through = append(k.row.Through, n)
		k.Errorf("%s (%s): %s: %q got through: %s", k.one.id, k.one.class, k.one.title, n, f.through[n])
	}
	if k.setup.Leftovers != nil {
		if left := k.setup.Leftovers(); len(left) > 0 {
			k.row.Outcome = Unsafe
			k.Errorf("%s: B3: when a run has ended, nothing of it is left: found %q", k.one.id, left)
		}
	}
}

// red runs the case on an executor without the wall, where something must get
// through.
func (k *trial) red(ex executor.Executor) {
	k.Helper()
	k.mustWin = true
	defer func() { k.mustWin = false }()
	f := k.play(ex)
	k.row.Outcome, k.row.Attempts, k.row.Windows, k.row.Through = Safe, len(k.tries()), f.windows, f.names()
	if len(f.through) > 0 {
		k.row.Outcome = Unsafe
		return
	}
	k.Errorf("%s: %s: nothing got through where the wall is missing; this case does not notice it (%v)", k.one.id, k.one.title, f.faults)
}

// proved runs the case on the control, where every attempt must get through.
func (k *trial) proved(ex executor.Executor) {
	k.Helper()
	if ex == nil {
		return
	}
	k.mustWin = true
	defer func() { k.mustWin = false }()
	f := k.play(ex)
	k.row.Control = Worked
	none := true
	for _, a := range k.tries() {
		_, through := f.through[a.name]
		switch {
		case through:
			k.row.Worked++
			none = false
		case a.root && !isRoot():
			k.Logf("%s: %q has no control: the host is not root", k.one.id, a.name)
		case a.maybe != "":
			k.Logf("%s: %q has no control here: %s (%s)", k.one.id, a.name, a.maybe, f.said[a.name].detail)
		default:
			k.row.Control = Broken
			k.Errorf("%s: this case proves nothing: %q does not get through where the wall is missing: %+v; %v", k.one.id, a.name, f.said[a.name], f.faults)
		}
	}
	if none && k.row.Control == Worked {
		k.row.Control = NotHere
	}
}

// tries are the attempts of the case in this language.
func (k *trial) tries() []attempt {
	return slices.DeleteFunc(slices.Clone(k.one.tries), func(a attempt) bool {
		return a.only != "" && a.only != k.ext || a.net && k.setup.Loopback || a.own && k.setup.OwnKernel
	})
}

// attempts reports whether an attempt of that name is among the case's.
func (k *trial) attempts(name string) bool {
	return slices.ContainsFunc(k.tries(), func(a attempt) bool { return a.name == name })
}

// findings are what came of a case on an executor.
type findings struct {
	result  executor.Result
	err     error
	said    map[string]said
	through map[string]string // what got through, by attempt, and how that is known
	faults  []string          // why the probe proves nothing
	windows int               // how often a race was won
}

// A said is what a script said of an attempt.
type said struct {
	outcome string // "ok", "no", "fact"
	detail  string
}

func (f *findings) names() []string {
	var list []string
	for n := range f.through {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

func (f *findings) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

func (k *trial) play(ex executor.Executor) *findings {
	if k.one.play != nil {
		return k.one.play(k, ex)
	}
	return k.once(ex)
}

// once runs the script once and judges it.
func (k *trial) once(ex executor.Executor) *findings {
	k.Helper()
	return k.judged(func(token string) *findings { return k.script(k.Context(), ex, token, nil, nil) })
}

// judged runs a part of a case and asks the canaries what came of it.
func (k *trial) judged(run func(token string) *findings) *findings {
	k.Helper()
	token := newDigits()
	f := run(token)
	defer delete(k.host.secrets, inToken)
	left := survivors(token)
	if k.mustWin && k.attempts("survivors") {
		// One that is about to become another program has no command line.
		for begin := time.Now(); len(left) == 0 && time.Since(begin) < patience; left = survivors(token) {
			time.Sleep(10 * time.Millisecond)
		}
	}
	if len(left) > 0 {
		f.through["survivors"] = fmt.Sprintf("%d processes of the run are there when it has ended", len(left))
		end(token)
	}
	if k.one.judge != nil {
		k.one.judge(k, f)
	}
	harm, err := k.host.harm()
	if err != nil {
		f.fault("the canaries could not be looked at: %v", err)
	}
	for _, what := range harm {
		f.through["harm"] += what + "; "
	}
	k.secrets(f)
	return f
}

// secrets judges what came back by the secrets in it.
func (k *trial) secrets(f *findings) {
	shown := map[secret]bool{}
	for _, a := range k.tries() {
		s := f.said[a.name]
		switch {
		case s.outcome == "":
			continue
		case a.shows != "" && strings.Contains(s.detail, k.secret(a.shows)):
			f.through[a.name] = "it showed " + string(a.shows)
			shown[a.shows] = true
		case a.shows == "" && a.check == nil && s.outcome == "ok":
			f.through[a.name] = strings.TrimSpace("the script says so: " + s.detail)
		case a.check != nil && a.check(k, s):
			f.through[a.name] = "the host knows it: " + s.detail
		}
	}
	parts := map[string][]byte{"standard output": f.result.Stdout, "standard error": f.result.Stderr, "the notes": []byte(strings.Join(f.result.Notes, "\n"))}
	for _, o := range f.result.Outputs {
		parts["the outputs"] = append(parts["the outputs"], o.Data...)
	}
	for where, b := range parts {
		for _, s := range k.host.found(b) {
			if !shown[s] || where != "standard output" {
				f.through["in "+where] = "there is what only " + string(s) + " holds"
			}
		}
	}
}

func (k *trial) secret(s secret) string {
	if text, ok := k.host.secrets[s]; ok {
		return text
	}
	return "\x00none"
}

// script runs the case's script and holds that it did its work.
func (k *trial) script(ctx context.Context, ex executor.Executor, token string, more map[string]string, live *gate.Live) *findings {
	k.Helper()
	f := k.execute(ctx, ex, token, more, live)
	if f.err != nil || len(f.faults) > 0 {
		return f
	}
	if ok := k.one.ends; ok == nil && f.result.Ending != executor.Exited(0) || ok != nil && !ok(f.result.Ending) {
		f.fault("it ended with %v: %.300s", f.result.Ending, f.result.Stderr)
	}
	for _, a := range k.tries() {
		if _, ok := f.said[a.name]; !ok && !a.judged {
			f.fault("it says nothing of %q: %.300s", a.name, f.result.Stderr)
		}
	}
	for _, n := range k.one.armed {
		if o := f.said[n].outcome; o != "ok" && o != "fact" {
			f.fault("the trap %q was not laid: %.300s", n, f.result.Stderr)
		}
	}
	return f
}

// execute admits and runs the case's script, and reads what it says.
func (k *trial) execute(ctx context.Context, ex executor.Executor, token string, more map[string]string, live *gate.Live) *findings {
	f := &findings{said: map[string]said{}, through: map[string]string{}}
	req, err := k.world.Admit(ctx, k.order(token, more, live))
	if err != nil {
		f.fault("the gates refused it: %v", err)
		return f
	}
	f.result, f.err = ex.Execute(ctx, req)
	if f.err != nil && ctx.Err() == nil {
		f.fault("the executor failed: %v", f.err)
	}
	f.read(f.result.Stdout)
	return f
}

func (f *findings) read(out []byte) {
	for line := range strings.Lines(string(out)) {
		w := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(w) == 3 {
			f.said[w[0]] = said{w[1], w[2]}
		}
	}
}
