package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/grant"
)

// held proves that the tenant has a grant in force for the script.
type held struct {
	safeName
	grant grant.Grant
}

// held is the gate "grant" (R9).
func (g *Gate) held(ctx context.Context, n safeName) (held, error) {
	gr, err := newest(ctx, g.c.Grants, n.tenant, n.skill, n.script)
	if err != nil {
		return held{}, err
	}
	return held{n, gr}, nil
}

// newest finds the grant that decides. The script's own decides alone, in force
// or not; where there is none, that for all scripts of the skill.
func newest(ctx context.Context, grants grant.Finder, tenant, skill, script string) (grant.Grant, error) {
	deny := func(err error) (grant.Grant, error) {
		return grant.Grant{}, &Denial{Gate: GrantGate, Err: err, Remedy: "review the skill and grant the script"}
	}
	ref := grant.Ref{Tenant: tenant, Skill: skill, Script: script}
	gr, err := grants.Grant(ctx, ref)
	if errors.Is(err, grant.ErrNotFound) {
		ref = grant.Ref{Tenant: tenant, Skill: skill, AllScripts: true}
		gr, err = grants.Grant(ctx, ref)
	}
	switch {
	case errors.Is(err, grant.ErrNotFound):
		return deny(fmt.Errorf("tenant %q has no grant for %s %s", tenant, skill, script))
	case err != nil:
		return grant.Grant{}, fmt.Errorf("gate: reading the grant: %w", err)
	case gr.Ref != ref:
		return deny(fmt.Errorf("the store answered with a grant for %s", gr.Ref))
	}
	if state := gr.State(time.Now()); state != "in force" {
		return deny(fmt.Errorf("grant %s for %s is %s", gr.ID, gr.Ref, state))
	}
	return gr, nil
}
