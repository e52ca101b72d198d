// Package gatecase is the denial table as data: a host on which every gate is
// open, and the ways in which each gate must refuse. Tests of gate run the
// table through Admit, those of the runner through Run with an executor that
// counts its calls.
//
// A test makes a [House], lets a [Case] change it, and asks with House.Call,
// House.Standing and a gate of House.Config.
package gatecase

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/store/memstore"
)

// Names that a model must never learn from a refusal are ones that no text
// holds by chance.
const (
	Tenant = "tenant-q7x3"
	Skill  = "unit-converter"
	Canary = "canary-b5k9" // a value in arguments, which the log must not hold either
)

// interpreter is the path of an interpreter on this host. Nothing is started.
func interpreter() string {
	if runtime.GOOS == "windows" {
		return `C:\hidden-w2m8\python3.exe`
	}
	return "/opt/hidden-w2m8/bin/python3"
}

// A House is one host with a store in memory. Its skill has scripts of every
// mode, and Tenant may run scripts/run.py of it.
type House struct {
	Store    *memstore.Store
	Log      *audit.Log
	Skills   *Skills
	Config   gate.Config // of the gate to ask; a Case may put another source into it
	Call     gate.Call
	Standing gate.Standing // of the executor; it proved its tier
}

// New returns a House on which Call passes every gate.
func New(t testing.TB) *House {
	t.Helper()
	st := memstore.New()
	t.Cleanup(func() { _ = st.Close() })
	h := &House{
		Store: st, Log: audit.NewLog(st), Skills: NewSkills(),
		Call:     gate.Call{Tenant: Tenant, Actor: "model", Skill: Skill, Script: "scripts/run.py", Arguments: json.RawMessage(`["--value","3"]`)},
		Standing: gate.Standing{Executor: "counting", Tier: grant.Process},
	}
	h.Config = gate.Config{Hosts: st, Policies: st, Contents: h.Skills, Declarer: h.Skills, Schemas: Strict{}, Grants: st, Log: h.Log}
	h.Host(t, func(host *gate.Host) {
		*host = gate.Host{Enabled: true, Interpreters: map[string]gate.Interpreter{
			"py": {Path: interpreter(), Digest: bundle.Sum([]byte("python3"))}, "sh": {Name: "sh-1"}, "js": {Name: "node-24"},
		}}
	})
	h.Policy(t, func(p *gate.Policy) { *p = gate.Policy{Enabled: true, Interpreters: []string{"py", "sh"}} })
	h.Grant(t, nil)
	return h
}

// Python is the path of py's interpreter. Nothing is started.
func (h *House) Python() string { return interpreter() }

// Host changes the host's settings, in the log too.
func (h *House) Host(t testing.TB, change func(*gate.Host)) {
	t.Helper()
	host, revision, err := h.Store.HostAt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	change(&host)
	h.commit(t, audit.Entry{Tenant: gate.HostTenant, Kind: audit.Host}, func(ctx context.Context, p audit.Pending) error {
		return h.Store.SetHost(ctx, host, revision, p)
	})
}

// Policy changes the tenant's policy, in the log too.
func (h *House) Policy(t testing.TB, change func(*gate.Policy)) {
	t.Helper()
	policy, revision, err := h.Store.PolicyAt(t.Context(), Tenant)
	if err != nil {
		t.Fatal(err)
	}
	change(&policy)
	h.commit(t, audit.Entry{Tenant: Tenant, Kind: audit.Policy}, func(ctx context.Context, p audit.Pending) error {
		return h.Store.SetPolicy(ctx, Tenant, policy, revision, p)
	})
}

// SwitchOff switches the tenant off as a whole, in the log too.
func (h *House) SwitchOff(t testing.TB) {
	t.Helper()
	off := access.Tenant{Name: Tenant, Created: time.Now(), By: "platform-m2k8", Off: true}
	h.commit(t, audit.Entry{Tenant: Tenant, Kind: audit.Tenant}, func(ctx context.Context, p audit.Pending) error {
		return h.Store.SetTenant(ctx, off, 0, p)
	})
}

// Grant grants what is there now: House.Call's script, or what change says. It
// replaces the newest grant of the same reference.
func (h *House) Grant(t testing.TB, change func(*grant.Grant)) grant.Grant {
	t.Helper()
	g := grant.Grant{
		ID: id.New(), Ref: grant.Ref{Tenant: Tenant, Skill: h.Call.Skill, Script: h.Call.Script},
		GrantedBy: "granter-c4v1", Granted: time.Now().Add(-time.Hour), MinTier: grant.Process,
	}
	if change != nil {
		change(&g)
	}
	content, err := h.Skills.Read(t.Context(), g.Ref.Tenant, g.Ref.Skill, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	g.Pin = content.Digest()
	after := ""
	if newest, err := h.Store.Grant(t.Context(), g.Ref); err == nil {
		after = newest.ID
	}
	h.commit(t, audit.Entry{Tenant: g.Ref.Tenant, Kind: audit.Granted}, func(ctx context.Context, p audit.Pending) error {
		return h.Store.AddGrant(ctx, g, content, after, p)
	})
	return g
}

// Revoke revokes the newest grant of House.Call's script, or of what change says.
func (h *House) Revoke(t testing.TB, change func(*grant.Ref)) {
	t.Helper()
	ref := grant.Ref{Tenant: Tenant, Skill: h.Call.Skill, Script: h.Call.Script}
	if change != nil {
		change(&ref)
	}
	g, err := h.Store.Grant(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	h.commit(t, audit.Entry{Tenant: ref.Tenant, Kind: audit.Revoked}, func(ctx context.Context, p audit.Pending) error {
		return h.Store.RevokeGrant(ctx, ref.Tenant, g.ID, time.Now(), "granter-c4v1", p)
	})
}

func (h *House) commit(t testing.TB, e audit.Entry, change func(context.Context, audit.Pending) error) {
	t.Helper()
	if _, err := h.Log.Commit(t.Context(), e, change); err != nil {
		t.Fatal(err)
	}
}

// ask makes the call one of another script, which is granted.
func (h *House) ask(t testing.TB, script, arguments string) {
	t.Helper()
	h.Call.Script, h.Call.Arguments = script, json.RawMessage(arguments)
	h.Grant(t, nil)
}

// edit replaces from by to in a file of the skill.
func (h *House) edit(t testing.TB, path, from, to string) {
	t.Helper()
	for i, f := range h.Skills.Of(Skill).Files {
		if f.Path == path && strings.Contains(string(f.Data), from) {
			h.Skills.Of(Skill).Files[i].Data = []byte(strings.Replace(string(f.Data), from, to, 1))
			return
		}
	}
	t.Fatalf("%s has no %q", path, from)
}

// all makes a reference that of all scripts of the skill.
func all(r *grant.Ref) { r.Script, r.AllScripts = "", true }
