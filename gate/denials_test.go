package gate_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/gatecase"
)

// entries returns what the log has of kind, and checks that the log adds up.
func entries(t testing.TB, h *gatecase.House, kind audit.Kind) []audit.Entry {
	t.Helper()
	if _, err := h.Log.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
	var found []audit.Entry
	for leaf, err := range h.Log.Entries(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if leaf.Entry.Kind == kind {
			found = append(found, leaf.Entry)
		}
	}
	return found
}

// each runs test over the denial table, one subtest a gate.
func each(t *testing.T, test func(t *testing.T, c gatecase.Case, h *gatecase.House)) {
	cases := gatecase.Denials()
	for _, name := range gate.Names() {
		t.Run(string(name), func(t *testing.T) {
			n := 0
			for _, c := range cases {
				if c.Gate != name {
					continue
				}
				n++
				t.Run(c.Name, func(t *testing.T) {
					h := gatecase.New(t)
					c.Change(t, h)
					test(t, c, h)
				})
			}
			if n < 5 {
				t.Errorf("the gate has %d cases, want several", n)
			}
		})
	}
}

// R8–R16, B8: every gate refuses in every way of the table, says so with its
// own name, and leaves exactly one entry in the log. Nothing is admitted, and
// the model learns nothing of the host, the grant or the content.
func TestDenials(t *testing.T) {
	each(t, func(t *testing.T, c gatecase.Case, h *gatecase.House) {
		req, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing)
		if req.Valid() {
			t.Fatalf("%s: it is admitted", c.Rule)
		}
		d, ok := errors.AsType[*gate.Denial](err)
		if !ok || !errors.Is(err, gate.ErrDenied) || errors.Is(err, audit.ErrUnavailable) {
			t.Fatalf("%s: got %v, want a *Denial", c.Rule, err)
		}
		if d.Gate != c.Gate {
			t.Errorf("%s: gate %s refuses (%v), want %s", c.Rule, d.Gate, d.Err, c.Gate)
		}
		if d.Err == nil || d.Remedy == "" {
			t.Errorf("%s: the operator is not told why (%v) and what to do (%q)", c.Rule, d.Err, d.Remedy)
		}
		checkModelText(t, h, d)
		checkRefusal(t, h, d)
	})
}

func checkModelText(t *testing.T, h *gatecase.House, d *gate.Denial) {
	t.Helper()
	text := d.ModelText()
	if text == "" || !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x00\x1b\u2028\u202e") || len(text) > 1100 {
		t.Errorf("the model's text is not one short line: %q", text)
	}
	secrets := []string{"sha256:", gatecase.Tenant, "hidden-w2m8", "counting", "granter-c4v1"}
	if g, err := h.Store.Grant(t.Context(), grant.Ref{Tenant: gatecase.Tenant, Skill: gatecase.Skill, Script: "scripts/run.py"}); err == nil {
		secrets = append(secrets, g.ID, g.Pin.Hex())
	}
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("the model is told %q: %q", secret, text)
		}
	}
}

func checkRefusal(t *testing.T, h *gatecase.House, d *gate.Denial) {
	t.Helper()
	if n := len(entries(t, h, audit.Admission)); n != 0 {
		t.Errorf("the log has %d admissions", n)
	}
	refusals := entries(t, h, audit.Refusal)
	if len(refusals) != 1 {
		t.Fatalf("the log has %d refusals, want one", len(refusals))
	}
	e := refusals[0]
	want := gate.NoTenant
	if gate.CheckTenant(h.Call.Tenant) == nil {
		want = h.Call.Tenant
	}
	if e.Tenant != want || e.Fact("gate") != string(d.Gate) || e.Fact("reason") == "" || e.Actor != "model" || len(e.Run) != 36 {
		t.Errorf("the refusal is %+v, want one of gate %s in the history of %q", e, d.Gate, want)
	}
	// Arguments are committed to, never written down: they can be erased, the log cannot.
	for _, f := range e.Facts {
		if strings.Contains(f.Value, gatecase.Canary) {
			t.Errorf("the log holds a value of the arguments: %q", f.Value)
		}
	}
	if content, err := h.Skills.Read(t.Context(), gatecase.Tenant, gatecase.Skill, bundle.Limits{}); err == nil && d.Gate == gate.PinGate {
		// Case 44: who learns the new digest from a refusal could grant it unseen.
		if found := content.Digest().Hex(); strings.Contains(d.Error(), found) || strings.Contains(e.Fact("reason"), found) {
			t.Error("the refusal hands out the digest that was found")
		}
	}
}

// B8: explain says of every row what Admit says, and writes nothing.
func TestExplainAgreesWithAdmit(t *testing.T) {
	each(t, func(t *testing.T, c gatecase.Case, h *gatecase.House) {
		before, err := h.Store.Tip(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		verdicts := gate.New(h.Config).Explain(t.Context(), h.Call, h.Standing)
		var names []gate.Name
		for _, v := range verdicts {
			names = append(names, v.Gate)
			switch v.Answer {
			case gate.Yes, gate.Unasked, gate.Failed:
			case gate.No:
				if v.Detail == "" || v.Remedy == "" {
					t.Errorf("%+v says neither why nor what to do", v)
				}
			default:
				t.Errorf("%+v has no answer", v)
			}
		}
		if diff := cmp.Diff(gate.Names(), names); diff != "" {
			t.Errorf("not every gate, or not in order:\n%s", diff)
		}
		i := slices.IndexFunc(verdicts, func(v gate.Verdict) bool { return v.Answer != gate.Yes })
		if i < 0 || verdicts[i].Answer != gate.No || verdicts[i].Gate != c.Gate {
			t.Errorf("the first that is not yes must be no of gate %s: %+v", c.Gate, verdicts)
		}
		if after, err := h.Store.Tip(t.Context()); err != nil || after.Size() != before.Size() {
			t.Errorf("explain wrote to the log (%v)", err)
		}
	})
}

// What stands right beside each refusal is admitted: no gate is shut for good.
func TestAdmits(t *testing.T) {
	list := func(n int) string { return `["` + strings.Repeat("x", n-4) + `"]` }
	raised := func(t testing.TB, h *gatecase.House) {
		h.Policy(t, func(p *gate.Policy) { p.MaxArguments = gate.CeilingMaxArguments })
	}
	tests := []struct {
		name   string
		change func(t testing.TB, h *gatecase.House)
	}{
		{"as it is", func(testing.TB, *gatecase.House) {}},
		{"no arguments", func(_ testing.TB, h *gatecase.House) { h.Call.Arguments = nil }},
		{"R12: arguments at the limit", func(_ testing.TB, h *gatecase.House) {
			h.Call.Arguments = json.RawMessage(list(gate.DefaultMaxArguments))
		}},
		{"case 11: one argument of 131,071 bytes", func(t testing.TB, h *gatecase.House) {
			raised(t, h)
			h.Call.Arguments = json.RawMessage(list(gate.MaxArgument + 4))
		}},
		{"case 10: an argument that looks like an interpreter's", func(_ testing.TB, h *gatecase.House) { h.Call.Arguments = json.RawMessage(`["-c","import os"]`) }},
		{"R9: a grant for all scripts of the skill", func(t testing.TB, h *gatecase.House) {
			h.Call.Script = "scripts/free.py"
			h.Grant(t, func(g *grant.Grant) { g.Ref.Script, g.Ref.AllScripts = "", true })
		}},
		{"case 45: a new grant for the script makes it run again", func(t testing.TB, h *gatecase.House) {
			h.Grant(t, func(g *grant.Grant) { g.Ref.Script, g.Ref.AllScripts = "", true })
			h.Revoke(t, nil)
			h.Grant(t, nil)
		}},
		{"case 48: deleted and imported again with the same bytes", func(_ testing.TB, h *gatecase.House) {
			h.Skills.Of(gatecase.Skill).Files = h.Skills.Of("private").Files
		}},
		{"R14: a stored script", func(t testing.TB, h *gatecase.House) { h.Call.Script = "stored.py"; h.Grant(t, nil) }},
		{"case 39b: a script without an extension", func(t testing.TB, h *gatecase.House) { h.Call.Script = "scripts/run"; h.Grant(t, nil) }},
		{"case 8: a name beyond ASCII, by exact bytes", func(t testing.TB, h *gatecase.House) { h.Call.Script = "scripts/é.py"; h.Grant(t, nil) }},
		{"R11: a runtime's name", func(t testing.TB, h *gatecase.House) {
			h.Host(t, func(h *gate.Host) { h.Interpreters["py"] = gate.Interpreter{Name: "python-3.12"} })
		}},
		{"R11: an interpreter in a runtime", func(t testing.TB, h *gatecase.House) {
			h.Host(t, func(h *gate.Host) {
				h.Interpreters["py"] = gate.Interpreter{Name: "python-3.12", Path: "/usr/bin/python3", Digest: bundle.Sum([]byte("python3")), Image: bundle.Sum([]byte("root"))}
			})
		}},
		{"B2: a claim that is trusted", func(t testing.TB, h *gatecase.House) {
			h.Host(t, func(h *gate.Host) { h.TrustClaimed = true })
			h.Grant(t, func(g *grant.Grant) { g.MinTier = grant.VM })
			h.Standing.Tier, h.Standing.Claimed = grant.VM, true
		}},
		{"B2: a claim that is not trusted counts as the lowest", func(_ testing.TB, h *gatecase.House) { h.Standing.Tier, h.Standing.Claimed = grant.VM, true }},
		{"B2: walls that are asked for, and stand", func(t testing.TB, h *gatecase.House) {
			h.Policy(t, func(p *gate.Policy) { p.RequireWalls = []string{"memory"} })
			h.Host(t, func(h *gate.Host) { h.RequireWalls = []string{"processes", "memory"} })
			h.Standing.Walls = []gate.Wall{{Name: "memory", Stands: true}, {Name: "files"}, {Name: "processes", Stands: true}}
		}},
		{"B2: a wall that is claimed and trusted", func(t testing.TB, h *gatecase.House) {
			h.Policy(t, func(p *gate.Policy) { p.RequireWalls = []string{"memory"} })
			h.Host(t, func(h *gate.Host) { h.TrustClaimed = true })
			h.Standing.Claimed, h.Standing.Walls = true, []gate.Wall{{Name: "memory", Stands: true}}
		}},
		{"case 17: a number that no float holds", func(t testing.TB, h *gatecase.House) {
			h.Call.Script, h.Call.Arguments = "scripts/stdin.py", json.RawMessage(`{"value":9007199254740993}`)
			h.Grant(t, nil)
		}},
		{"B5: an input", func(_ testing.TB, h *gatecase.House) {
			h.Call.Inputs = []bundle.File{{Path: "in/a.txt", Data: []byte("x")}}
		}},
		{"R15: a content at its limits", func(t testing.TB, h *gatecase.House) {
			h.Host(t, func(h *gate.Host) { h.Content = bundle.Limits{Depth: 3, PathBytes: len("scripts/lib/units.py")} })
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := gatecase.New(t)
			tt.change(t, h)
			g := gate.New(h.Config)
			for _, v := range g.Explain(t.Context(), h.Call, h.Standing) {
				if v.Answer != gate.Yes {
					t.Errorf("explain: %+v", v)
				}
			}
			req, err := g.Admit(t.Context(), h.Call, h.Standing)
			if err != nil || !req.Valid() {
				t.Fatalf("got %v", err)
			}
			if n := len(entries(t, h, audit.Admission)); n != 1 {
				t.Errorf("the log has %d admissions, want one", n)
			}
			if n := len(entries(t, h, audit.Refusal)); n != 0 {
				t.Errorf("the log has %d refusals, want none", n)
			}
			if err := g.Confirm(t.Context(), req); err != nil {
				t.Errorf("Confirm: %v", err)
			}
		})
	}
}
