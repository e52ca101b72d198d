package gate_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/gatecase"
	"github.com/tracon-go/tracon/internal/id"
)

// R19: the Request carries what the gates saw, and what they saw alone.
func TestRequest(t *testing.T) {
	h := gatecase.New(t)
	h.Policy(t, func(p *gate.Policy) {
		p.Timeout, p.MaxOutput, p.MaxOutputs, p.MaxOutputFiles = 7*time.Second, 1000, 2000, 3
		p.Memory, p.Processes, p.KeepArguments = 40<<20, 5, true
		p.Environment = map[string]string{"REPORT_STYLE": "short"}
		p.RequireWalls = []string{"memory", "files"}
	})
	h.Host(t, func(h *gate.Host) { h.RequireWalls = []string{"processes", "memory"} })
	for _, wall := range []string{"memory", "files", "processes"} {
		h.Standing.Walls = append(h.Standing.Walls, gate.Wall{Name: wall, Stands: true})
	}
	h.Call.Actor, h.Call.ID = "ann", id.New()
	h.Call.Arguments = json.RawMessage(`[ "--value", "3" ]`)
	h.Call.Inputs = []bundle.File{{Path: "in.txt", Data: []byte("in")}}
	h.Call.Live = gate.NewLive(1)
	g, err := h.Store.Grant(t.Context(), grant.Ref{Tenant: gatecase.Tenant, Skill: h.Call.Skill, Script: h.Call.Script})
	if err != nil {
		t.Fatal(err)
	}
	content, err := h.Skills.Read(t.Context(), gatecase.Tenant, gatecase.Skill, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	req, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing)
	if err != nil {
		t.Fatal(err)
	}

	script, scriptDigest, _ := content.Text("scripts/run.py")
	outputBytes, outputFiles := req.MaxOutputs()
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"ID", req.ID(), h.Call.ID},
		{"Tenant", req.Tenant(), gatecase.Tenant},
		{"Actor", req.Actor(), "ann"},
		{"Skill", req.Skill(), gatecase.Skill},
		{"Script", req.Script(), "scripts/run.py"},
		{"Extension", req.Extension(), "py"},
		{"Interpreter", req.Interpreter().Digest, bundle.Sum([]byte("python3"))},
		{"Bundle", req.Bundle().Digest(), content.Digest()},
		{"Digest", req.Digest(), g.Pin},
		{"Content", string(req.Content()), script},
		{"ScriptDigest", req.ScriptDigest(), scriptDigest},
		{"GrantID", req.GrantID(), g.ID},
		{"Mode", req.Mode(), gate.Argv},
		{"Arguments", string(req.Arguments()), `["--value","3"]`},
		{"Words", req.Words(), []string{"--value", "3"}},
		{"Stdin", req.Stdin(), []byte(nil)},
		{"Inputs", req.Inputs().Paths(), []string{"in.txt"}},
		{"Timeout", req.Timeout(), 7 * time.Second},
		{"MaxOutputBytes", req.MaxOutputBytes(), 1000},
		{"MaxOutputs", []int64{outputBytes, int64(outputFiles)}, []int64{2000, 3}},
		{"Memory", req.Memory(), int64(40 << 20)},
		{"Processes", req.Processes(), 5},
		{"RequireWalls", req.RequireWalls(), []string{"files", "memory", "processes"}},
		{"Environment", req.Environment(), map[string]string{"REPORT_STYLE": "short"}},
		{"Standing", req.Standing(), h.Standing},
		{"KeepArguments", req.KeepArguments(), true},
		{"Receipt", req.Receipt().ID(), entries(t, h, audit.Admission)[0].ID},
		{"Live", req.Live() == h.Call.Live, true},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}

	// R16: the admission says who ran what, under which grant, with what.
	e := entries(t, h, audit.Admission)[0]
	commitment := sha256.Sum256(append(req.ArgumentsSalt(), req.Arguments()...))
	for name, want := range map[string]string{
		"digest": g.Pin.String(), "script": scriptDigest.String(), "grant": g.ID, "executor": "counting", "tier": "process", "tierClaimed": "",
		"argumentsMode": "argv", "argumentsBytes": "15", "argumentsCommitment": bundle.Digest(commitment).String(),
		"interpreter": "py", "interpreterDigest": bundle.Sum([]byte("python3")).String(), "inputs": "1 files, 2 bytes",
		"inputsCommitment": bundle.Sum(fmt.Append(req.ArgumentsSalt(), "inputs ", req.Inputs().Digest())).String(),
	} {
		if got := e.Fact(name); got != want {
			t.Errorf("the admission's %s is %q, want %q", name, got, want)
		}
	}
	if e.Run != h.Call.ID || e.Tenant != gatecase.Tenant || e.Actor != "ann" || e.Subject != "unit-converter scripts/run.py" {
		t.Errorf("the admission is %+v", e)
	}
	for _, f := range e.Facts { // R28: a host's path is nobody's business; the interpreter is named by its digest
		if strings.Contains(f.Value, "hidden-w2m8") || strings.Contains(f.Value, "--value") {
			t.Errorf("the admission's %s is %q", f.Name, f.Value)
		}
	}
}

// The Request never changes: not by its caller, not by what it handed out, not
// by its sources.
func TestRequestNeverChanges(t *testing.T) {
	h := gatecase.New(t)
	policies := &shared{policy: gate.Policy{Enabled: true, Interpreters: []string{"py"}, Environment: map[string]string{"A": "1"}}}
	h.Config.Policies = policies
	h.Call.Script, h.Call.Arguments = "scripts/open.py", json.RawMessage(`{"a":1}`)
	h.Call.Inputs = []bundle.File{{Path: "in", Data: []byte("old")}}
	h.Grant(t, nil)
	req, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing)
	if err != nil {
		t.Fatal(err)
	}
	copy(h.Call.Arguments, `{"b":2}`)
	copy(h.Call.Inputs[0].Data, "new")
	policies.policy.Environment["A"] = "2"
	clear(req.Arguments())
	clear(req.Stdin())
	clear(req.Content())
	clear(req.ArgumentsSalt())
	req.Environment()["A"] = "3"
	in, _, _ := req.Inputs().Text("in")
	if string(req.Arguments()) != `{"a":1}` || string(req.Stdin()) != `{"a":1}` || in != "old" || req.Environment()["A"] != "1" {
		t.Errorf("got %s, %s, %q, %v", req.Arguments(), req.Stdin(), in, req.Environment())
	}
	if len(req.Content()) == 0 || req.Content()[0] == 0 || slices.Equal(req.ArgumentsSalt(), make([]byte, 32)) {
		t.Error("the content or the salt changed")
	}
}

// shared answers with a policy whose map it keeps.
type shared struct{ policy gate.Policy }

func (s *shared) Policy(context.Context, string) (gate.Policy, error) { return s.policy, nil }

// A declaration may shorten the tenant's timeout, never lengthen it.
func TestTimeout(t *testing.T) {
	for declared, want := range map[string]time.Duration{"": 10 * time.Second, `,"seconds":2`: 2 * time.Second, `,"seconds":60`: 10 * time.Second} {
		h := gatecase.New(t)
		h.Policy(t, func(p *gate.Policy) { p.Timeout = 10 * time.Second })
		h.Skills.Of(gatecase.Skill).Declaration = `{"scripts/run.py":{"mode":"argv"` + declared + `}}`
		h.Grant(t, nil)
		req, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing)
		if err != nil {
			t.Fatal(err)
		}
		if req.Timeout() != want {
			t.Errorf("declared %q: got %s, want %s", declared, req.Timeout(), want)
		}
	}
}

// Two calls of the same arguments have commitments that nobody can tell to be
// of one text.
func TestCommitmentIsSalted(t *testing.T) {
	h := gatecase.New(t)
	g := gate.New(h.Config)
	for range 2 {
		if _, err := g.Admit(t.Context(), h.Call, h.Standing); err != nil {
			t.Fatal(err)
		}
	}
	e := entries(t, h, audit.Admission)
	if e[0].Fact("argumentsCommitment") == e[1].Fact("argumentsCommitment") {
		t.Error("two commitments to one text are equal")
	}
	if e[0].Run == e[1].Run || !id.Valid(e[0].Run) {
		t.Errorf("the calls' ids are %q and %q", e[0].Run, e[1].Run)
	}
}

// What a call's id is not, no record could be found by.
func TestCallID(t *testing.T) {
	for _, bad := range []string{"x", strings.Repeat("x", 5000), "\xff", strings.ToUpper(id.New())} {
		h := gatecase.New(t)
		h.Call.ID = bad
		req, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing)
		if err == nil || req.Valid() || errors.Is(err, gate.ErrDenied) {
			t.Errorf("id %.20q: got %v, want an error that is no refusal", bad, err)
		}
		if n := len(entries(t, h, audit.Admission)); n != 0 {
			t.Errorf("id %.20q: %d admissions", bad, n)
		}
	}
}

// Zero is closed: the zero Request is not valid, and says nothing.
func TestZeroRequest(t *testing.T) {
	var req gate.Request
	if req.Valid() || req.LogValue().String() != "not admitted" {
		t.Errorf("the zero Request is valid, or %v", req.LogValue())
	}
	h := gatecase.New(t)
	g := gate.New(h.Config)
	if err := g.Confirm(t.Context(), req); err == nil {
		t.Error("Confirm lets the zero Request pass")
	}
	if r, err := g.End(t.Context(), req, "exited", nil, nil); err == nil || r.Valid() {
		t.Error("End writes the ending of the zero Request")
	}
}

// Logs hold neither content nor arguments, however a Request gets there.
func TestLogValue(t *testing.T) {
	h := gatecase.New(t)
	h.Call.Arguments = json.RawMessage(`["` + gatecase.Canary + `"]`)
	req, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	slog.New(slog.NewJSONHandler(&out, nil)).Info("run", "request", req)
	fmt.Fprintf(&out, "%v %+v %#v", req, req, req)
	if s := out.String(); strings.Contains(s, gatecase.Canary) || strings.Contains(s, "import lib") || !strings.Contains(s, req.ID()) {
		t.Errorf("the log holds %s", s)
	}
}

// brokenLog is a store whose log cannot be written.
type brokenLog struct {
	audit.Sink
	err error // of Append; nil: it keeps nothing and says that all is well
}

func (b brokenLog) Append(context.Context, audit.Pending) error { return b.err }
func (b brokenLog) Ready(context.Context) error                 { return b.err }

// R16, case 57: where the log cannot be written nothing runs, and it is no
// refusal of the call. That holds for the entry of a refusal too.
func TestLogFails(t *testing.T) {
	full := errors.New("disk full")
	for _, tt := range []struct {
		name   string
		append error
		refuse bool
	}{
		{"the admission", full, false},
		{"the admission, forgotten", nil, false},
		{"the refusal", full, true},
		{"the refusal, forgotten", nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := gatecase.New(t)
			if tt.refuse {
				h.Revoke(t, nil)
			}
			h.Config.Log = audit.NewLog(brokenLog{Sink: h.Store, err: tt.append})
			req, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing)
			_, denial := errors.AsType[*gate.Denial](err)
			if req.Valid() || !errors.Is(err, audit.ErrUnavailable) || errors.Is(err, gate.ErrDenied) || denial {
				t.Errorf("got %v, want ErrUnavailable and no Denial", err)
			}
			if tt.append != nil && !errors.Is(err, full) {
				t.Errorf("got %v, want the store's error in it", err)
			}
		})
	}
}

// unreadable is every source of a gate, and cannot be read.
type unreadable struct{ err error }

func (u unreadable) Host(context.Context) (gate.Host, error)             { return gate.Host{Enabled: true}, u.err }
func (u unreadable) Policy(context.Context, string) (gate.Policy, error) { return gate.Policy{}, u.err }
func (u unreadable) Grant(context.Context, grant.Ref) (grant.Grant, error) {
	return grant.Grant{}, u.err
}
func (u unreadable) Declare(bundle.Bundle, string) (gate.Declaration, error) {
	return gate.Declaration{Mode: gate.Argv}, u.err
}
func (u unreadable) Find(context.Context, string, string, string) (gate.Origin, error) {
	return gate.FileScript, u.err
}
func (u unreadable) Read(context.Context, string, string, bundle.Limits) (bundle.Bundle, error) {
	return bundle.Bundle{}, u.err
}

// unread reads nothing, but finds.
type unread struct {
	gate.Contents
	unreadable
}

func (u unread) Find(ctx context.Context, tenant, skill, script string) (gate.Origin, error) {
	return u.Contents.Find(ctx, tenant, skill, script)
}

func (u unread) Read(ctx context.Context, tenant, skill string, l bundle.Limits) (bundle.Bundle, error) {
	return u.unreadable.Read(ctx, tenant, skill, l)
}

// Case 47: what cannot be read is an error and no refusal: the operator must
// not be told that there was no grant. Nothing runs, and nothing is logged.
func TestSourcesThatCannotBeRead(t *testing.T) {
	disk := unreadable{errors.New("disk")}
	for name, change := range map[string]func(h *gatecase.House){
		"the host's settings": func(h *gatecase.House) { h.Config.Hosts = disk },
		"the policy":          func(h *gatecase.House) { h.Config.Policies = disk },
		"the known scripts":   func(h *gatecase.House) { h.Config.Contents = disk },
		"the skill's files":   func(h *gatecase.House) { h.Config.Contents = unread{h.Skills, disk} },
		"the grant":           func(h *gatecase.House) { h.Config.Grants = disk },
		"the declaration":     func(h *gatecase.House) { h.Config.Declarer = disk },
	} {
		t.Run(name, func(t *testing.T) {
			h := gatecase.New(t)
			change(h)
			before, err := h.Store.Tip(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			g := gate.New(h.Config)
			req, err := g.Admit(t.Context(), h.Call, h.Standing)
			if req.Valid() || !errors.Is(err, disk.err) || errors.Is(err, gate.ErrDenied) {
				t.Errorf("got %v, want the source's error and no Denial", err)
			}
			if after, err := h.Store.Tip(t.Context()); err != nil || after.Size() != before.Size() {
				t.Errorf("something was logged (%v)", err)
			}
			failed := slices.ContainsFunc(g.Explain(t.Context(), h.Call, h.Standing), func(v gate.Verdict) bool { return v.Answer == gate.Failed })
			if !failed {
				t.Error("explain does not say that something could not be read")
			}
		})
	}
}

// A caller who hangs up gets no record-free look at the gates: the refusal is
// logged. But nobody is admitted who has left.
func TestCallerHasLeft(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	h := gatecase.New(t)
	h.Config.Hosts, h.Config.Policies, h.Config.Grants = gate.Static{}, deaf{h}, deaf{h}
	if req, err := gate.New(h.Config).Admit(ctx, h.Call, h.Standing); req.Valid() || !errors.Is(err, gate.ErrDenied) {
		t.Errorf("got %v, want a Denial", err)
	}
	if n := len(entries(t, h, audit.Refusal)); n != 1 {
		t.Errorf("%d refusals are logged, want one", n)
	}

	h = gatecase.New(t)
	if req, err := gate.New(h.Config).Admit(ctx, h.Call, h.Standing); req.Valid() || !errors.Is(err, gone) || errors.Is(err, gate.ErrDenied) {
		t.Errorf("got %v, want the cause", err)
	}
	if n := len(entries(t, h, audit.Admission)); n != 0 {
		t.Errorf("%d admissions", n)
	}
}

// deaf reads from the store without regard to the caller's leaving.
type deaf struct{ h *gatecase.House }

func (d deaf) Policy(ctx context.Context, tenant string) (gate.Policy, error) {
	return d.h.Store.Policy(context.WithoutCancel(ctx), tenant)
}

func (d deaf) Grant(ctx context.Context, ref grant.Ref) (grant.Grant, error) {
	return d.h.Store.Grant(context.WithoutCancel(ctx), ref)
}

// lenient finds everything that it is asked for, and counts.
type lenient struct {
	gate.Contents
	asked *int
}

func (l lenient) Find(context.Context, string, string, string) (gate.Origin, error) {
	*l.asked++
	return gate.FileScript, nil
}

// Cases 1 and 2: a name that is not plain is refused before anybody looks for
// it, so that a source which joins paths does no harm.
func TestNamesAreCheckedBeforeAnybodyLooks(t *testing.T) {
	for _, script := range []string{
		"/tmp/evil.py", `..\..\evil.py`, "scripts/../../x.py", "x.py\x00.txt", "C:x.py", "x.py.", "x.py ", "../x.py", ".", "a//b", "a/", "", strings.Repeat("x", 600), "a\xff", "nul",
	} {
		h := gatecase.New(t)
		asked := 0
		h.Config.Contents = lenient{h.Skills, &asked}
		h.Call.Script = script
		_, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing)
		if d, ok := errors.AsType[*gate.Denial](err); !ok || d.Gate != gate.NameGate || asked != 0 {
			t.Errorf("%q: got %v after %d look-ups, want a refusal of gate name after none", script, err, asked)
		}
	}
	h := gatecase.New(t)
	asked := 0
	h.Config.Contents = lenient{h.Skills, &asked}
	for _, skill := range []string{"", " x", "x\n", "\xff", strings.Repeat("x", 600)} {
		h.Call.Skill = skill
		if _, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing); !errors.Is(err, gate.ErrDenied) || asked != 0 {
			t.Errorf("skill %q: got %v after %d look-ups", skill, err, asked)
		}
	}
}

// Cases 12, 13 and 15: the model is told which form is wanted, and which member is unknown.
func TestFormIsToldFirst(t *testing.T) {
	for _, tt := range []struct{ name, script, arguments, says string }{
		{"case 12: the list as a string", "scripts/run.py", `"[\"--value\",\"3\"]"`, `a list of strings, such as ["--value","3"]; got a string: send the list itself`},
		{"case 12: without a schema", "scripts/free.py", `"[]"`, `a list of strings, such as ["--value","3"]; got a string`},
		{"case 13: an object for argv", "scripts/run.py", `{"value":3}`, `a list of strings, such as ["--value","3"]; got an object`},
		{"case 13: a list for stdin", "scripts/stdin.py", `["x"]`, "must be of type object"},
		{"case 13: a list for flags", "scripts/flags.py", `["x"]`, `an object, such as {"value":3}; got a list`},
		{"a number in the list", "scripts/free.py", `["a",3]`, "item 2 is a number"},
		{"case 15: env", "scripts/stdin.py", `{"value":1,"env":{}}`, `property "env" is not known`},
		{"R12", "scripts/run.py", `["` + strings.Repeat("x", 70_000) + `"]`, "arguments of 70004 bytes, at most 65536"},
	} {
		h := gatecase.New(t)
		h.Call.Script, h.Call.Arguments = tt.script, json.RawMessage(tt.arguments)
		h.Grant(t, nil)
		_, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing)
		if d, ok := errors.AsType[*gate.Denial](err); !ok || !strings.Contains(d.ModelText(), tt.says) {
			t.Errorf("%s: got %v, want %q in what the model is told", tt.name, err, tt.says)
		}
	}
}

// R21: each call passes every gate again; one that was admitted leaves nothing behind.
func TestEachCallIsJudgedAnew(t *testing.T) {
	h := gatecase.New(t)
	g := gate.New(h.Config)
	for i := range 4 {
		if i%2 == 1 {
			h.Revoke(t, nil)
		} else if i > 0 {
			h.Grant(t, nil)
		}
		_, err := g.Admit(t.Context(), h.Call, h.Standing)
		if denied := errors.Is(err, gate.ErrDenied); denied != (i%2 == 1) {
			t.Errorf("call %d: got %v", i, err)
		}
	}
}

func TestAdmitConcurrently(t *testing.T) {
	h := gatecase.New(t)
	g := gate.New(h.Config)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			call := h.Call
			if i%2 == 1 {
				call.Script = "scripts/free.py"
			}
			req, err := g.Admit(context.Background(), call, h.Standing)
			if req.Valid() != (i%2 == 0) || errors.Is(err, gate.ErrDenied) != (i%2 == 1) {
				t.Errorf("call %d: got %v", i, err)
			}
		})
	}
	wg.Wait()
	if err := g.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused := uint64(0)
	for _, e := range entries(t, h, audit.Refusal) {
		refused += e.Count
	}
	if a := len(entries(t, h, audit.Admission)); a != 20 || refused != 20 {
		t.Errorf("%d admissions and %d refusals, want 20 each", a, refused)
	}
}

// Case 61: the same refused call 1,000 times is refused each time, and the log
// holds the first and one counted entry. Another actor, script or gate is
// another kind.
func TestRefusalFlood(t *testing.T) {
	h := gatecase.New(t)
	g := gate.New(h.Config)
	refuse := func(change func(*gate.Call)) {
		call := h.Call
		call.Script = "scripts/free.py"
		change(&call)
		if _, err := g.Admit(t.Context(), call, h.Standing); !errors.Is(err, gate.ErrDenied) {
			t.Fatalf("got %v, want a refusal", err)
		}
	}
	for range 1000 {
		refuse(func(*gate.Call) {})
	}
	refuse(func(c *gate.Call) { c.Actor = "another" })
	refuse(func(c *gate.Call) { c.Script = "scripts/none.py" })
	refuse(func(c *gate.Call) { c.Tenant = "" })
	if err := g.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for _, e := range entries(t, h, audit.Refusal) {
		got = append(got, e.Count)
	}
	if diff := cmp.Diff([]uint64{1, 1, 1, 1, 999}, got); diff != "" {
		t.Errorf("the counts of the refusals (-want +got):\n%s", diff)
	}
}

// An admission names the host process that answers for its ending.
func TestAdmissionNamesTheInstance(t *testing.T) {
	h := gatecase.New(t)
	h.Config.Instance = "instance-1"
	if _, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, h, audit.Admission)[0].Fact("instance"); got != "instance-1" {
		t.Errorf("the admission's instance is %q", got)
	}
}

func TestNewPanicsOnANilField(t *testing.T) {
	full := gatecase.New(t).Config
	for name, change := range map[string]func(*gate.Config){
		"Hosts": func(c *gate.Config) { c.Hosts = nil }, "Policies": func(c *gate.Config) { c.Policies = nil }, "Contents": func(c *gate.Config) { c.Contents = nil },
		"Declarer": func(c *gate.Config) { c.Declarer = nil }, "Schemas": func(c *gate.Config) { c.Schemas = nil },
		"Grants": func(c *gate.Config) { c.Grants = nil }, "Log": func(c *gate.Config) { c.Log = nil },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it does not panic")
				}
			}()
			c := full
			change(&c)
			gate.New(c)
		})
	}
}

// R16, B7: an ending stands in the tenant's history, even when the caller left.
func TestEnd(t *testing.T) {
	h := gatecase.New(t)
	g := gate.New(h.Config)
	req, err := g.Admit(t.Context(), h.Call, h.Standing)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := g.End(ctx, req, "exited", audit.Facts("exitCode", "3", "long", strings.Repeat("x", 10_000)), nil)
	if err != nil || !r.Valid() {
		t.Fatal(err)
	}
	e := entries(t, h, audit.Ending)
	if len(e) != 1 || e[0].Run != req.ID() || e[0].Tenant != gatecase.Tenant || e[0].Fact("ending") != "exited" || e[0].Fact("exitCode") != "3" {
		t.Errorf("got %+v", e)
	}
	conflict := errors.New("conflict")
	if _, err := g.End(ctx, req, "exited", nil, func(ctx context.Context, _ audit.Pending) error { return errors.Join(conflict, ctx.Err()) }); err == nil || err.Error() != "conflict" {
		t.Errorf("got %v, want the store's error as it is", err)
	}
}

func TestModelTexts(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range append(gate.Names(), "other") {
		d := &gate.Denial{Gate: name, Err: errors.New("secret /host/path")}
		text := d.ModelText()
		if seen[text] || strings.Contains(text, "secret") || text == "" {
			t.Errorf("%s: the model is told %q", name, text)
		}
		seen[text] = true
		if !errors.Is(d, gate.ErrDenied) || !errors.Is(d, d.Err) || !strings.Contains(d.Error(), string(name)) {
			t.Errorf("%s: the operator is told %v", name, d)
		}
	}
}
