package grant_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
)

// A grant says what it covers; a blank script alone is an error, never
// "everything" (mission.md, R9; architecture.md, Ref).
func TestRefValidate(t *testing.T) {
	long := strings.Repeat("x", grant.MaxName)
	for _, r := range []grant.Ref{
		{Tenant: "t", Skill: "s", Script: "scripts/x.py"},
		{Tenant: "t", Skill: "s", AllScripts: true},
		{Tenant: "ünï", Skill: "with blank", Script: "名前.py"},
		{Tenant: long, Skill: long, Script: long},
	} {
		if err := r.Validate(); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for _, tt := range []struct {
		name string
		ref  grant.Ref
	}{
		{"zero", grant.Ref{}},
		{"no script", grant.Ref{Tenant: "t", Skill: "s"}},
		{"both", grant.Ref{Tenant: "t", Skill: "s", Script: "x", AllScripts: true}},
		{"no tenant", grant.Ref{Skill: "s", Script: "x"}},
		{"no tenant, all scripts", grant.Ref{Skill: "s", AllScripts: true}},
		{"no skill", grant.Ref{Tenant: "t", Script: "x"}},
		{"no skill, all scripts", grant.Ref{Tenant: "t", AllScripts: true}},
		{"script of a blank", grant.Ref{Tenant: "t", Skill: "s", Script: " "}},
	} {
		if err := tt.ref.Validate(); !errors.Is(err, grant.ErrRef) {
			t.Errorf("%s: got %v, want ErrRef", tt.name, err)
		}
	}
	for _, bad := range []struct{ name, text string }{
		{"too long", long + "x"},
		{"blank before", " x"},
		{"blank behind", "x "},
		{"no-break space behind", "x\u00a0"},
		{"line separator behind", "x\u2028"},
		{"tab", "x\ty"},
		{"NUL", "x\x00"},
		{"line feed", "x\ny"},
		{"escape", "x\x1by"},
		{"right to left", "x\u202ey"},
		{"not UTF-8", "x\xff"},
		{"half a surrogate", "\xed\xa0\x80"},
	} {
		for what, r := range map[string]grant.Ref{
			"tenant": {Tenant: bad.text, Skill: "s", Script: "x"},
			"skill":  {Tenant: "t", Skill: bad.text, AllScripts: true},
			"script": {Tenant: "t", Skill: "s", Script: bad.text},
		} {
			err := r.Validate()
			if !errors.Is(err, grant.ErrRef) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s as %s: got %v, want ErrRef that names the %s", bad.name, what, err, what)
			} else if strings.ContainsAny(err.Error(), "\n\x1b\x00\u202e\u2028") {
				t.Errorf("%s as %s: the error holds the character itself: %q", bad.name, what, err)
			}
		}
	}
}

func TestRefString(t *testing.T) {
	for want, r := range map[string]grant.Ref{
		"s scripts/x.py":  {Tenant: "t", Skill: "s", Script: "scripts/x.py"},
		"s (all scripts)": {Tenant: "t", Skill: "s", AllScripts: true},
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

var granted = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func good() grant.Grant {
	return grant.Grant{
		ID: "g", Ref: grant.Ref{Tenant: "t", Skill: "s", Script: "x"}, Pin: bundle.Sum([]byte("x")),
		Granted: granted, MinTier: grant.Process, GrantedBy: "ann",
	}
}

func TestGrantValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*grant.Grant)
		ok     bool
	}{
		{"good", func(*grant.Grant) {}, true},
		{"expires later", func(g *grant.Grant) { g.Expires = granted.Add(1) }, true},
		{"zero", func(g *grant.Grant) { *g = grant.Grant{} }, false},
		{"no id", func(g *grant.Grant) { g.ID = "" }, false},
		{"no pin", func(g *grant.Grant) { g.Pin = bundle.Digest{} }, false},
		{"no tier", func(g *grant.Grant) { g.MinTier = "" }, false},
		{"unknown tier", func(g *grant.Grant) { g.MinTier = "Process" }, false},
		{"no time", func(g *grant.Grant) { g.Granted = time.Time{} }, false},
		{"expires at once", func(g *grant.Grant) { g.Expires = granted }, false},
		{"expired before", func(g *grant.Grant) { g.Expires = granted.Add(-1) }, false},
		{"blank script", func(g *grant.Grant) { g.Ref.Script = "" }, false},
		{"no tenant", func(g *grant.Grant) { g.Ref.Tenant = "" }, false},
	} {
		g := good()
		tt.change(&g)
		if err := g.Validate(); (err == nil) != tt.ok {
			t.Errorf("%s: got %v, want ok: %t", tt.name, err, tt.ok)
		}
	}
}

// R9: a grant permits while it is in force, to the instant.
func TestState(t *testing.T) {
	end := granted.Add(time.Hour)
	for _, tt := range []struct {
		name   string
		change func(*grant.Grant)
		now    time.Time
		want   string
	}{
		{"in force", func(*grant.Grant) {}, granted, "in force"},
		{"does not expire", func(*grant.Grant) {}, granted.AddDate(100, 0, 0), "in force"},
		{"the last instant", func(g *grant.Grant) { g.Expires = end }, end.Add(-1), "in force"},
		{"expired to the instant", func(g *grant.Grant) { g.Expires = end }, end, "expired"},
		{"expired long ago", func(g *grant.Grant) { g.Expires = end }, end.AddDate(1, 0, 0), "expired"},
		{"revoked", func(g *grant.Grant) { g.Revoked = end }, end.Add(time.Hour), "revoked"},
		{"revoked by a clock that is ahead", func(g *grant.Grant) { g.Revoked = end }, end.Add(-1), "revoked"},
		{"revoked and expired", func(g *grant.Grant) { g.Revoked, g.Expires = end, end }, end, "revoked"},
		{"zero", func(g *grant.Grant) { *g = grant.Grant{} }, granted, "invalid"},
		{"no id", func(g *grant.Grant) { g.ID = "" }, granted, "invalid"},
		{"no pin", func(g *grant.Grant) { g.Pin = bundle.Digest{} }, granted, "invalid"},
		{"no tier", func(g *grant.Grant) { g.MinTier = "" }, granted, "invalid"},
		{"unknown tier, revoked", func(g *grant.Grant) { g.MinTier, g.Revoked = "root", end }, end, "invalid"},
	} {
		g := good()
		tt.change(&g)
		if got := g.State(tt.now); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if got := g.InForce(tt.now); got != (tt.want == "in force") {
			t.Errorf("%s: InForce is %t", tt.name, got)
		}
	}
}

// A tier that is no tier meets nothing, and nothing meets it.
func TestTierMeets(t *testing.T) {
	tiers := []grant.Tier{"", "bogus", "VM", " process", grant.Process, grant.Sandbox, grant.Kernel, grant.VM}
	want := []string{ // a row is what stands, a column what is asked for
		"........",
		"........",
		"........",
		"........",
		"....y...",
		"....yy..",
		"....yyy.",
		"....yyyy",
	}
	for i, has := range tiers {
		row := ""
		for _, asked := range tiers {
			if has.Meets(asked) {
				row += "y"
			} else {
				row += "."
			}
		}
		if row != want[i] {
			t.Errorf("%q meets %s, want %s", has, row, want[i])
		}
		if has.Valid() != (i >= 4) {
			t.Errorf("%q is valid: %t", has, has.Valid())
		}
	}
	grant.Tiers()[0] = "bogus"
	if diff := cmp.Diff([]grant.Tier{"process", "sandbox", "kernel", "vm"}, grant.Tiers()); diff != "" {
		t.Errorf("a caller changed the tiers:\n%s", diff)
	}
}

func TestGrantJSON(t *testing.T) {
	g := good()
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"g","ref":{"tenant":"t","skill":"s","script":"x"},"pin":"` + g.Pin.String() +
		`","grantedBy":"ann","granted":"2026-11-29T12:00:00Z","minTier":"process"}`
	if string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
	g.Expires, g.Revoked, g.RevokedBy, g.Reason, g.Source = granted.Add(1e9), granted.Add(2e9), "bob", "r", "src"
	text, err = json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	var back grant.Grant
	if err := json.Unmarshal(text, &back); err != nil || !cmp.Equal(back, g) {
		t.Errorf("got %+v, %v", back, err)
	}
}
