package gatecase

import (
	"context"
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// A Case is one way in which a gate must refuse.
type Case struct {
	Name   string
	Gate   gate.Name
	Rule   string // that it holds: a rule of the contract, or a case of runs.md
	Change func(t testing.TB, h *House)
}

// Denials returns the denial table: each gate, several ways.
func Denials() []Case {
	var cases []Case
	for _, part := range [][]Case{switches(), names(), grants(), contents(), pins(), interpreters(), tiers(), arguments()} {
		cases = append(cases, part...)
	}
	return cases
}

func switches() []Case {
	host := func(change func(*gate.Host)) func(testing.TB, *House) {
		return func(t testing.TB, h *House) { h.Host(t, change) }
	}
	policy := func(change func(*gate.Policy)) func(testing.TB, *House) {
		return func(t testing.TB, h *House) { h.Policy(t, change) }
	}
	tenant := func(name string) func(testing.TB, *House) {
		return func(_ testing.TB, h *House) { h.Call.Tenant = name }
	}
	return []Case{
		{"the host's switch is off", gate.SwitchGate, "R8", host(func(h *gate.Host) { h.Enabled = false })},
		{"the host is zero", gate.SwitchGate, "R8", host(func(h *gate.Host) { *h = gate.Host{} })},
		{"the tenant's switch is off", gate.SwitchGate, "R8", policy(func(p *gate.Policy) { p.Enabled = false })},
		{"the tenant's policy is zero", gate.SwitchGate, "R8", policy(func(p *gate.Policy) { *p = gate.Policy{} })},
		{"the platform has switched the tenant off", gate.SwitchGate, "R8", func(t testing.TB, h *House) { h.SwitchOff(t) }},
		{"both are off", gate.SwitchGate, "R8", func(t testing.TB, h *House) {
			h.Host(t, func(h *gate.Host) { h.Enabled = false })
			h.Policy(t, func(p *gate.Policy) { p.Enabled = false })
		}},
		{"a tenant that nobody set up", gate.SwitchGate, "R8", tenant("tenant-unknown")},
		{"no tenant", gate.SwitchGate, "R8", tenant("")},
		{"the tenant in upper case", gate.SwitchGate, "case 8", tenant("TENANT-Q7X3")},
		{"the tenant with a blank", gate.SwitchGate, "case 8", tenant(Tenant + " ")},
		{"the tenant with NUL", gate.SwitchGate, "case 8", tenant(Tenant + "\x00")},
		{"a tenant that is not UTF-8", gate.SwitchGate, "case 8", tenant("\xff")},
		{"a tenant too long", gate.SwitchGate, "case 8", tenant(repeat("t", 513))},
		{"the host's own history as tenant", gate.SwitchGate, "B7", tenant(gate.HostTenant)},
		{"nobody's history as tenant", gate.SwitchGate, "B7", tenant(gate.NoTenant)},
		{"the host's own history, where everybody has a policy", gate.SwitchGate, "B7", func(t testing.TB, h *House) {
			tenant(gate.HostTenant)(t, h)
			h.Config.Policies = generous{h.Store}
		}},
		{"a tenant with NUL, where everybody has a policy", gate.SwitchGate, "case 8", func(t testing.TB, h *House) {
			tenant(Tenant+"\x00")(t, h)
			h.Config.Policies = generous{h.Store}
		}},
		{"a negative timeout", gate.SwitchGate, "R8", policy(func(p *gate.Policy) { p.Timeout = -time.Second })},
		{"a timeout above the ceiling", gate.SwitchGate, "R8", policy(func(p *gate.Policy) { p.Timeout = gate.CeilingTimeout + time.Second })},
		{"an argument limit above the ceiling", gate.SwitchGate, "R12", policy(func(p *gate.Policy) { p.MaxArguments = gate.CeilingMaxArguments + 1 })},
		{"a tier that is none", gate.SwitchGate, "R8", policy(func(p *gate.Policy) { p.MinTier = "none" })},
		{"a wall that is none", gate.SwitchGate, "R8", policy(func(p *gate.Policy) { p.RequireWalls = []string{"Memory"} })},
		{"a wall twice", gate.SwitchGate, "R8", policy(func(p *gate.Policy) { p.RequireWalls = []string{"memory", "memory"} })},
		{"a wall of the host's that is none", gate.SwitchGate, "R8", func(t testing.TB, h *House) { h.Host(t, func(h *gate.Host) { h.RequireWalls = []string{"moat"} }) }},
		{"an extension with a dot", gate.SwitchGate, "R11", policy(func(p *gate.Policy) { p.Interpreters = []string{"py", ".sh"} })},
		{"a variable that steers the loader", gate.SwitchGate, "case 41", policy(func(p *gate.Policy) { p.Environment = map[string]string{"LD_PRELOAD": "x"} })},
	}
}

// generous knows a policy for everybody: that of Tenant.
type generous struct{ gate.Policies }

func (g generous) Policy(ctx context.Context, _ string) (gate.Policy, error) {
	return g.Policies.Policy(ctx, Tenant)
}

func names() []Case {
	script := func(name string) func(testing.TB, *House) {
		return func(_ testing.TB, h *House) { h.Call.Script = name }
	}
	skill := func(name string) func(testing.TB, *House) {
		return func(_ testing.TB, h *House) { h.Call.Skill = name }
	}
	return []Case{
		{"up and out", gate.NameGate, "case 1", func(_ testing.TB, h *House) { h.Call.Skill, h.Call.Script = "../../etc", "passwd" }},
		{"an absolute path", gate.NameGate, "case 2", script("/tmp/evil.py")},
		{"backslashes", gate.NameGate, "case 2", script(`..\..\evil.py`)},
		{"dots that lead back to a script", gate.NameGate, "case 2", script("scripts/../scripts/run.py")},
		{"dots that lead out", gate.NameGate, "case 2", script("scripts/../../x.py")},
		{"NUL behind a script", gate.NameGate, "case 2", script("scripts/run.py\x00.txt")},
		{"a drive", gate.NameGate, "case 2", script("C:scripts/run.py")},
		{"a dot behind a script", gate.NameGate, "case 2", script("scripts/run.py.")},
		{"a blank behind a script", gate.NameGate, "case 2", script("scripts/run.py ")},
		{"a stream", gate.NameGate, "case 2", script("scripts/run.py::$DATA")},
		{"a dot before a script", gate.NameGate, "case 2", script("./scripts/run.py")},
		{"a doubled slash", gate.NameGate, "case 2", script("scripts//run.py")},
		{"a slash behind a script", gate.NameGate, "case 2", script("scripts/run.py/")},
		{"the script's base alone", gate.NameGate, "case 2", script("run.py")},
		{"another case", gate.NameGate, "case 8", script("scripts/Run.py")},
		{"another normal form", gate.NameGate, "case 8", script("scripts/e\u0301.py")},
		{"the skill in another case", gate.NameGate, "case 8", skill("Unit-Converter")},
		{"a character that shows nothing", gate.NameGate, "case 8", script("scripts/\u200brun.py")},
		{"a direction character", gate.NameGate, "case 2", script("scripts/\u202erun.py")},
		{"a line feed", gate.NameGate, "case 2", script("scripts/run.py\n")},
		{"not UTF-8", gate.NameGate, "case 2", script("scripts/\xffrun.py")},
		{"no script", gate.NameGate, "R14", script("")},
		{"no skill", gate.NameGate, "R14", skill("")},
		{"a script too long", gate.NameGate, "R14", script(repeat("x", 513) + ".py")},
		{"an unknown skill", gate.NameGate, "R14", skill("unit-convertor")},
		{"an unknown script", gate.NameGate, "R14", script("scripts/walk.py")},
		{"a script of another skill", gate.NameGate, "R14", script("scripts/second.py")},
		{"a file that is no script", gate.NameGate, "R14", script("SKILL.md")},
		{"a folder", gate.NameGate, "R14", script("scripts")},
		{"a skill of another tenant", gate.NameGate, "R20", skill("private")},
		{"a stored script with a slash", gate.NameGate, "R14", func(_ testing.TB, h *House) {
			h.Skills.Of(Skill).Stored = []string{h.Call.Script}
		}},
		{"a source that says neither yes nor no", gate.NameGate, "R14", func(_ testing.TB, h *House) { h.Config.Contents = vague{h.Skills} }},
	}
}

// vague answers a look-up with neither an origin nor an error.
type vague struct{ gate.Contents }

func (vague) Find(context.Context, string, string, string) (gate.Origin, error) { return 0, nil }

func grants() []Case {
	begun := time.Now().Add(-time.Hour)
	return []Case{
		{"none", gate.GrantGate, "R9", func(_ testing.TB, h *House) { h.Call.Script = "scripts/free.py" }},
		{"revoked", gate.GrantGate, "R9", func(t testing.TB, h *House) { h.Revoke(t, nil) }},
		{"expired", gate.GrantGate, "R9", func(t testing.TB, h *House) {
			h.Grant(t, func(g *grant.Grant) { g.Granted, g.Expires = begun, begun.Add(time.Minute) })
		}},
		{"another tenant's", gate.GrantGate, "R20", func(t testing.TB, h *House) {
			h.Call.Script = "scripts/free.py"
			h.Grant(t, func(g *grant.Grant) { g.Ref.Tenant = "other" })
		}},
		{"another skill's", gate.GrantGate, "R9", func(t testing.TB, h *House) {
			h.Grant(t, func(g *grant.Grant) { g.Ref.Skill = "second"; all(&g.Ref) })
			h.Call.Script = "scripts/free.py"
		}},
		{"revoked, and an older one in force", gate.GrantGate, "R9", func(t testing.TB, h *House) {
			h.Grant(t, nil)
			h.Revoke(t, nil)
		}},
		{"its own revoked, beside one for the skill", gate.GrantGate, "case 45", func(t testing.TB, h *House) {
			h.Grant(t, func(g *grant.Grant) { all(&g.Ref) })
			h.Revoke(t, nil)
		}},
		{"its own expired, beside one for the skill", gate.GrantGate, "case 45", func(t testing.TB, h *House) {
			h.Grant(t, func(g *grant.Grant) { g.Granted, g.Expires = begun, begun.Add(time.Minute) })
			h.Grant(t, func(g *grant.Grant) { all(&g.Ref) })
		}},
		{"that for the skill is revoked", gate.GrantGate, "R9", func(t testing.TB, h *House) {
			h.Call.Script = "scripts/free.py"
			h.Grant(t, func(g *grant.Grant) { all(&g.Ref) })
			h.Revoke(t, all)
		}},
		{"the book answers with that of another script", gate.GrantGate, "R9", lie(func(g *grant.Grant) { g.Ref.Script = "scripts/free.py" })},
		{"the book answers with that of another tenant", gate.GrantGate, "R20", lie(func(g *grant.Grant) { g.Ref.Tenant = "other" })},
		{"the book answers with that for the skill", gate.GrantGate, "case 45", lie(func(g *grant.Grant) { all(&g.Ref) })},
		{"the book answers with the zero grant", gate.GrantGate, "R9", lie(func(g *grant.Grant) { *g = grant.Grant{} })},
		{"a grant without a pin", gate.GrantGate, "R10", lie(func(g *grant.Grant) { g.Pin = bundle.Digest{} })},
		{"a grant without a tier", gate.GrantGate, "R9", lie(func(g *grant.Grant) { g.MinTier = "" })},
		{"a grant without an id", gate.GrantGate, "R9", lie(func(g *grant.Grant) { g.ID = "" })},
	}
}

// lie puts a book before the gate that changes each grant that it answers with,
// as a store would that is half-written.
func lie(change func(*grant.Grant)) func(testing.TB, *House) {
	return func(_ testing.TB, h *House) { h.Config.Grants = liar{h.Store, change} }
}

type liar struct {
	grant.Finder
	change func(*grant.Grant)
}

func (l liar) Grant(ctx context.Context, ref grant.Ref) (grant.Grant, error) {
	g, err := l.Finder.Grant(ctx, ref)
	l.change(&g)
	return g, err
}

func tiers() []Case {
	granted := func(tier grant.Tier) func(testing.TB, *House) {
		return func(t testing.TB, h *House) { h.Grant(t, func(g *grant.Grant) { g.MinTier = tier }) }
	}
	return []Case{
		{"the grant asks for more", gate.TierGate, "B2", granted(grant.Sandbox)},
		{"the grant asks for most", gate.TierGate, "B2", granted(grant.VM)},
		{"the policy asks for more", gate.TierGate, "B2", func(t testing.TB, h *House) { h.Policy(t, func(p *gate.Policy) { p.MinTier = grant.Kernel }) }},
		{"a claim that is not trusted", gate.TierGate, "B2", func(t testing.TB, h *House) {
			granted(grant.Sandbox)(t, h)
			h.Standing.Tier, h.Standing.Claimed = grant.VM, true
		}},
		{"a claim that is trusted, and too low", gate.TierGate, "B2", func(t testing.TB, h *House) {
			granted(grant.VM)(t, h)
			h.Host(t, func(h *gate.Host) { h.TrustClaimed = true })
			h.Standing.Tier, h.Standing.Claimed = grant.Kernel, true
		}},
		{"a claim of no tier", gate.TierGate, "B2", func(_ testing.TB, h *House) { h.Standing.Tier, h.Standing.Claimed = "moon", true }},
		{"a trusted claim of no tier", gate.TierGate, "B2", func(t testing.TB, h *House) {
			h.Host(t, func(h *gate.Host) { h.TrustClaimed = true })
			h.Standing.Tier, h.Standing.Claimed = "moon", true
		}},
		{"the policy asks for a wall that does not stand", gate.TierGate, "B2", walls([]string{"memory"}, nil, false)},
		{"the host asks for a wall that does not stand", gate.TierGate, "B2", walls(nil, []string{"memory"}, false)},
		{"the policy asks for two walls, and the second does not stand", gate.TierGate, "B2", walls([]string{"processes", "memory"}, nil, false)},
		{"the policy asks for a wall that the executor does not know", gate.TierGate, "B2", walls([]string{"disk"}, nil, false)},
		{"a wall of which the executor says both", gate.TierGate, "B2", func(t testing.TB, h *House) {
			walls([]string{"processes"}, nil, false)(t, h)
			h.Standing.Walls = append(h.Standing.Walls, gate.Wall{Name: "processes"})
		}},
		{"a wall that is claimed, and not trusted", gate.TierGate, "B2", walls([]string{"processes"}, nil, true)},
		{"no tier", gate.TierGate, "B2", func(_ testing.TB, h *House) { h.Standing.Tier = "" }},
	}
}

// walls asks an executor for walls that limits processes and not memory.
func walls(policy, host []string, claimed bool) func(testing.TB, *House) {
	return func(t testing.TB, h *House) {
		h.Policy(t, func(p *gate.Policy) { p.RequireWalls = policy })
		h.Host(t, func(h *gate.Host) { h.RequireWalls = host })
		h.Standing.Walls = []gate.Wall{{Name: "processes", Stands: true}, {Name: "memory", Remedy: "have a cgroup"}}
		h.Standing.Claimed = claimed
	}
}

func interpreters() []Case {
	host := func(in gate.Interpreter) func(testing.TB, *House) {
		return func(t testing.TB, h *House) { h.Host(t, func(h *gate.Host) { h.Interpreters["py"] = in }) }
	}
	script := func(name string) func(testing.TB, *House) {
		return func(t testing.TB, h *House) { h.ask(t, name, `[]`) }
	}
	return []Case{
		{"the host lists nothing", gate.InterpreterGate, "R11", func(t testing.TB, h *House) { h.Host(t, func(h *gate.Host) { h.Interpreters = nil }) }},
		{"the host lists another", gate.InterpreterGate, "R11", func(t testing.TB, h *House) { h.Host(t, func(h *gate.Host) { delete(h.Interpreters, "py") }) }},
		{"the tenant lists nothing", gate.InterpreterGate, "R11", func(t testing.TB, h *House) { h.Policy(t, func(p *gate.Policy) { p.Interpreters = nil }) }},
		{"the tenant lists another", gate.InterpreterGate, "R11", func(t testing.TB, h *House) {
			h.Policy(t, func(p *gate.Policy) { p.Interpreters = []string{"sh"} })
		}},
		{"the tenant lists it in upper case", gate.InterpreterGate, "case 8", func(t testing.TB, h *House) {
			h.Policy(t, func(p *gate.Policy) { p.Interpreters = []string{"PY"} })
		}},
		{"the host has it, the tenant does not", gate.InterpreterGate, "R11", script("scripts/x.js")},
		{"the tenant wants what the host has not", gate.InterpreterGate, "R11", func(t testing.TB, h *House) {
			h.Policy(t, func(p *gate.Policy) { p.Interpreters = []string{"py", "rb"} })
			h.ask(t, "scripts/x.rb", `[]`)
		}},
		{"neither path nor name", gate.InterpreterGate, "R11", host(gate.Interpreter{})},
		{"a runtime that is not kept here", gate.InterpreterGate, "R11", host(gate.Interpreter{Path: "/usr/bin/python3", Name: "python-3.12"})},
		{"a relative path in a runtime", gate.InterpreterGate, "R11", host(gate.Interpreter{Path: "usr/bin/python3", Name: "python-3.12", Image: bundle.Sum([]byte("root"))})},
		{"a runtime without its name", gate.InterpreterGate, "R11", host(gate.Interpreter{Path: interpreter(), Image: bundle.Sum([]byte("root"))})},
		{"a runtime without a path in it", gate.InterpreterGate, "R11", host(gate.Interpreter{Name: "python-3.12", Image: bundle.Sum([]byte("root"))})},
		{"a path to be looked up", gate.InterpreterGate, "R11", host(gate.Interpreter{Path: "python3"})},
		{"a relative path", gate.InterpreterGate, "R11", host(gate.Interpreter{Path: "./bin/python3"})},
		{"a name that is a path", gate.InterpreterGate, "R28", host(gate.Interpreter{Name: interpreter()})},
		{"an extension in upper case", gate.InterpreterGate, "case 8", script("scripts/UP.PY")},
		{"a first line that names no interpreter that is known", gate.InterpreterGate, "case 39b", script("scripts/odd")},
		{"neither extension nor first line", gate.InterpreterGate, "case 39b", script("stored")},
	}
}

func repeat(s string, n int) string {
	b := make([]byte, 0, n*len(s))
	for range n {
		b = append(b, s...)
	}
	return string(b)
}
