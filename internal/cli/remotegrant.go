package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// noSkill is the error for a skill that the server does not know.
func noSkill(name string) error { return fmt.Errorf("%w: skill %q", gate.ErrUnknown, name) }

// unknown returns err, or, where it says that something is not there, whether that is
// the skill or the script.
func (r *remote) unknown(ctx context.Context, err error, ref grant.Ref) error {
	if !errors.Is(err, client.NotFound) {
		return r.told(ctx, err, nil)
	}
	if _, _, err := r.c.Skill(ctx, ref.Skill, "", false); err != nil {
		return r.told(ctx, err, noSkill(ref.Skill))
	}
	return fmt.Errorf("%w: skill %q has no script %q", gate.ErrUnknown, ref.Skill, ref.Script)
}

func (r *remote) Review(ctx context.Context, ref grant.Ref, full bool) (reviewJSON, error) {
	v, err := r.c.Review(ctx, ref.Skill, ref.Script, full)
	if err != nil {
		return reviewJSON{}, r.unknown(ctx, err, ref)
	}
	j := reviewJSON{Ref: grant.Ref(v.Ref), Digest: v.Digest, Files: ofFiles(v.Files), Changes: ofChanges(v.Changes), Risks: ofDiagnostics(v.Risks)}
	if v.Granted != nil {
		g := ofGrant(*v.Granted)
		j.Granted, j.State = &g, v.Granted.State
	}
	return j, nil
}

func (r *remote) Difference(ctx context.Context, ref grant.Ref) (grant.Grant, []changeJSON, error) {
	d, err := r.c.Difference(ctx, ref.Skill, ref.Script)
	if errors.Is(err, client.NotFound) {
		// It was never granted, or there is no such skill: a review knows.
		_, err := r.Review(ctx, ref, false)
		return grant.Grant{}, nil, err
	}
	if err != nil {
		return grant.Grant{}, nil, r.told(ctx, err, nil)
	}
	return ofGrant(d.Granted), ofChanges(d.Changes), nil
}

func (r *remote) Grant(ctx context.Context, g admin.Granting) (grant.Grant, error) {
	made, err := r.c.CreateGrant(ctx, client.NewGrant{Skill: g.Ref.Skill, Script: g.Ref.Script, AllScripts: g.Ref.AllScripts,
		Digest: g.Digest, MinTier: string(g.MinTier), Reason: g.Reason, Expires: g.Expires, Replace: g.Replace})
	if errors.Is(err, client.ContentPinned) {
		if d, derr := r.c.Difference(ctx, g.Ref.Skill, g.Ref.Script); derr == nil { // else it says less
			return grant.Grant{}, fmt.Errorf("%w: grant %s for %s", admin.ErrPinned, d.Granted.ID, g.Ref)
		}
	}
	return ofGrant(made), r.unknown(ctx, err, g.Ref)
}

func (r *remote) Grants(ctx context.Context, f grant.Filter) ([]listedGrant, error) {
	list, err := r.c.Grants(ctx, f.Skill, f.Limit)
	grants := []listedGrant{}
	for _, g := range list {
		grants = append(grants, listedGrant{ofGrant(g), g.State})
	}
	return grants, r.told(ctx, err, nil)
}

func (r *remote) Revoke(ctx context.Context, id, reason string) (grant.Grant, error) {
	g, err := r.c.RevokeGrant(ctx, id, "", reason)
	if errors.Is(err, client.Conflict) {
		return grant.Grant{}, fmt.Errorf("%w: grant %s was revoked before", grant.ErrConflict, id)
	}
	return ofGrant(g), r.told(ctx, err, fmt.Errorf("%w: %s", grant.ErrNotFound, id))
}

func (r *remote) Policy(ctx context.Context) (gate.Policy, error) {
	p, _, err := r.c.Policy(ctx)
	return ofPolicy(p), r.told(ctx, err, nil)
}

func (r *remote) SetPolicy(ctx context.Context, f policyFlags) (gate.Policy, error) {
	change, err := f.wire()
	if err != nil {
		return gate.Policy{}, err
	}
	p, err := r.c.ChangePolicy(ctx, "", change)
	return ofPolicy(p), r.told(ctx, err, nil)
}

func (r *remote) Host(ctx context.Context) (gate.Host, error) {
	h, _, err := r.platform.Host(ctx)
	return ofHost(h), r.told(ctx, err, nil)
}

func (r *remote) HostKept() string { return "the server " + r.server }

func (r *remote) SetHost(ctx context.Context, c hostChange) (gate.Host, error) {
	change := client.HostChange{Enabled: c.enabled, RequireWalls: c.require, Interpreters: c.interpreters}
	if c.network != nil {
		change.Network = (*string)(c.network)
	}
	if c.interpreters != nil { // the list becomes what was named
		h, _, err := r.platform.Host(ctx)
		if err != nil {
			return gate.Host{}, r.told(ctx, err, nil)
		}
		for ext := range h.Interpreters {
			if _, stays := c.interpreters[ext]; !stays {
				change.Unlist = append(change.Unlist, ext)
			}
		}
	}
	h, err := r.platform.ChangeHost(ctx, "", change)
	return ofHost(h), r.told(ctx, err, nil)
}

func ofGrant(g client.Grant) grant.Grant {
	return grant.Grant{ID: g.ID, Ref: grant.Ref(g.Ref), Pin: g.Pin, Reason: g.Reason, Source: g.Source, GrantedBy: g.GrantedBy, Granted: g.Granted,
		Expires: g.Expires, Revoked: g.Revoked, RevokedBy: g.RevokedBy, MinTier: grant.Tier(g.MinTier)}
}

func ofPolicy(p client.Policy) gate.Policy {
	q := gate.Policy{Enabled: p.Enabled, Interpreters: p.Interpreters, MinTier: grant.Tier(p.MinTier), MaxArguments: p.MaxArguments, MaxOutput: p.MaxOutput,
		MaxInputs: p.MaxInputs, MaxOutputs: p.MaxOutputs, MaxOutputFiles: p.MaxOutputFiles, Timeout: time.Duration(p.TimeoutSeconds * float64(time.Second)),
		Memory: p.Memory, Processes: p.Processes, Network: gate.Network(p.Network), RequireWalls: p.RequireWalls, KeepArguments: p.KeepArguments}
	for name, value := range p.Environment {
		if q.Environment == nil {
			q.Environment = map[string]string{}
		}
		q.Environment[name] = fmt.Sprintf("(%d bytes, which the server does not tell)", value.Bytes)
	}
	return q
}

func ofHost(h client.Host) gate.Host {
	g := gate.Host{Enabled: h.Enabled, Network: gate.Network(h.Network), RequireWalls: h.RequireWalls, TrustClaimed: h.TrustClaimed, Interpreters: map[string]gate.Interpreter{}}
	g.Content.FileBytes, g.Content.TotalBytes, g.Content.Files = h.Content.FileBytes, h.Content.TotalBytes, h.Content.Files
	g.Content.Depth, g.Content.PathBytes = h.Content.Depth, h.Content.PathBytes
	for ext, in := range h.Interpreters {
		g.Interpreters[ext] = gate.Interpreter(in)
	}
	return g
}
