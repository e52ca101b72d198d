package gate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// open proves that the host's switch and the tenant's are on. It carries what
// holds for this call.
type open struct {
	tenant string
	host   Host
	policy Policy
	peer   Peer // that delivered it; zero: it came by Admit
}

// network is what the run may reach.
func (o open) network() Network { return network(o.host, o.policy) }

// open is the gate "switch" (R8).
func (g *Gate) open(ctx context.Context, tenant string) (open, error) {
	host, policy, err := g.rules(ctx, tenant)
	if err != nil {
		return open{}, err
	}
	if err := switches(tenant, host, policy); err != nil {
		return open{}, err
	}
	policy.Environment = maps.Clone(policy.Environment) // a Request never changes, whatever its source does
	policy.Secrets = slices.Clone(policy.Secrets)
	return open{tenant, host, policy, Peer{}}, nil
}

// rules reads what holds for the host and for the tenant. No store is asked for
// a name that no tenant can have.
func (g *Gate) rules(ctx context.Context, tenant string) (Host, Policy, error) {
	if err := CheckTenant(tenant); err != nil {
		return Host{}, Policy{}, &Denial{Gate: SwitchGate, Err: err, Remedy: "name a tenant"}
	}
	host, err := g.c.Hosts.Host(ctx)
	if err != nil {
		return Host{}, Policy{}, fmt.Errorf("gate: reading the host's settings: %w", err)
	}
	policy, err := g.c.Policies.Policy(ctx, tenant)
	if err != nil {
		return Host{}, Policy{}, fmt.Errorf("gate: reading the tenant's policy: %w", err)
	}
	host.Content = host.Content.OrDefaults()
	return host, policy.orDefaults(), nil
}

func switches(tenant string, host Host, policy Policy) error {
	deny := func(remedy string, err error) error { return &Denial{Gate: SwitchGate, Err: err, Remedy: remedy} }
	if !host.Enabled {
		return deny("switch the host on", errors.New("scripts are off on this host"))
	}
	if policy.Suspended {
		return deny(fmt.Sprintf("the platform's operator switches it on with `tracon tenant set %s --on`, unless it was deleted, which is for ever", tenant),
			fmt.Errorf("tenant %q is switched off", tenant))
	}
	if !policy.Enabled {
		return deny("switch the tenant on", fmt.Errorf("scripts are off for tenant %q", tenant))
	}
	if err := policy.Validate(); err != nil {
		return deny("set the policy again", err)
	}
	if err := host.Network.check(); err != nil {
		return deny("set the host's network again", err)
	}
	if err := checkWalls(host.RequireWalls); err != nil {
		return deny("set the walls that the host asks for again", err)
	}
	return nil
}
