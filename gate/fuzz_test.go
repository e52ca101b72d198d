package gate_test

import (
	"errors"
	"testing"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/gatecase"
)

// R16: whatever the call, there is no Request without its admission in the log,
// no Denial without its refusal, and no panic.
func FuzzAdmit(f *testing.F) {
	f.Add(gatecase.Tenant, gatecase.Skill, "scripts/run.py", []byte(`["--value","3"]`), "in.txt", "", true)
	f.Add(gatecase.Tenant, gatecase.Skill, "scripts/stdin.py", []byte(`{"value":1}`), "", "", true)
	f.Add(gatecase.Tenant, gatecase.Skill, "scripts/flags.py", []byte(`{"file":"-x","a":[1,"b"]}`), "", "", false)
	f.Add(gatecase.Tenant, gatecase.Skill, "scripts/none.py", []byte(``), "", "", false)
	f.Add("@host", "../../etc", "passwd", []byte("\x00"), "../x", "019e9d3c-0000-7000-8000-000000000001", false)
	f.Add("", "", "", []byte(nil), "", "x", false)
	f.Fuzz(func(t *testing.T, tenant, skill, script string, arguments []byte, input, callID string, claimed bool) {
		h := gatecase.New(t)
		h.Grant(t, func(g *grant.Grant) { g.Ref.Script, g.Ref.AllScripts = "", true })
		h.Call.Tenant, h.Call.Skill, h.Call.Script, h.Call.Arguments, h.Call.Actor, h.Call.ID = tenant, skill, script, arguments, input, callID
		if input != "" {
			h.Call.Inputs = []bundle.File{{Path: input, Data: arguments}}
		}
		h.Standing.Claimed = claimed
		g := gate.New(h.Config)
		verdicts := g.Explain(t.Context(), h.Call, h.Standing)
		req, err := g.Admit(t.Context(), h.Call, h.Standing)

		admissions, refusals := entries(t, h, audit.Admission), entries(t, h, audit.Refusal)
		d, denied := errors.AsType[*gate.Denial](err)
		switch {
		case req.Valid() == (err != nil):
			t.Fatalf("valid: %t, error: %v", req.Valid(), err)
		case req.Valid() && (len(admissions) != 1 || admissions[0].ID != req.Receipt().ID() || len(refusals) != 0):
			t.Fatalf("it is admitted with %d admissions and %d refusals", len(admissions), len(refusals))
		case denied && (len(admissions) != 0 || len(refusals) != 1 || refusals[0].Fact("gate") != string(d.Gate)):
			t.Fatalf("it is refused with %d admissions and %d refusals", len(admissions), len(refusals))
		case !req.Valid() && !denied && len(admissions)+len(refusals) != 0:
			t.Fatalf("it fails with %d admissions and %d refusals: %v", len(admissions), len(refusals), err)
		}
		for _, v := range verdicts {
			if v.Answer == gate.Yes {
				continue
			}
			if req.Valid() || denied && v.Gate != d.Gate {
				t.Errorf("explain says %+v, Admit says %v", v, err)
			}
			break
		}
		if denied {
			checkModelText(t, h, d)
		}
		if req.Valid() && (req.Tenant() != gatecase.Tenant || req.Skill() != gatecase.Skill || req.Script() != script) {
			t.Errorf("%q, %q, %q is admitted as %q, %q, %q", tenant, skill, script, req.Tenant(), req.Skill(), req.Script())
		}
	})
}
