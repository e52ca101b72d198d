package httpapi

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/internal/params"
)

func (s *server) policyRoutes() {
	route(s, operation{id: "get-policy", method: http.MethodGet, path: "/v1/policy", tag: "policy", summary: "What holds for the tenant",
		need: may(access.ReadPolicy)}, s.getPolicy)
	route(s, operation{id: "change-policy", method: http.MethodPatch, path: "/v1/policy", tag: "policy", summary: "Change what holds for the tenant, within what the host allows", change: true,
		need: may(access.WritePolicy)}, s.changePolicy)
}

func policyTag(tenant string, revision int64) string {
	return params.ETag("policy", tenant, strconv.FormatInt(revision, 10))
}

func (s *server) getPolicy(ctx context.Context, p access.Principal, _ *struct{}) (*tagged[client.Policy], error) {
	policy, revision, err := s.Store.PolicyAt(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	return &tagged[client.Policy]{policyTag(p.Tenant, revision), toPolicy(policy)}, nil
}

func (s *server) changePolicy(ctx context.Context, p access.Principal, in *struct {
	params.IfMatch
	Body client.PolicyChange
}) (*tagged[client.Policy], error) {
	m, err := in.Match()
	if err != nil {
		return nil, err
	}
	_, err = s.Admin.SetPolicy(ctx, p.Actor, p.Tenant, func(policy *gate.Policy) error {
		// The revision is read behind the policy and no change is made behind another, so
		// it is that of this policy, or the change is refused, or tried again.
		_, revision, err := s.Store.PolicyAt(ctx, p.Tenant)
		if err != nil {
			return err
		}
		if err := m.Check(policyTag(p.Tenant, revision)); err != nil {
			return err
		}
		return apply(in.Body, policy)
	})
	if err != nil {
		return nil, err
	}
	return s.getPolicy(ctx, p, nil)
}

// apply changes the fields that are there.
func apply(c client.PolicyChange, p *gate.Policy) error {
	assign(&p.Enabled, c.Enabled)
	if c.Interpreters != nil {
		p.Interpreters = slices.Compact(slices.Sorted(slices.Values(*c.Interpreters)))
	}
	if c.MinTier != nil {
		p.MinTier = grant.Tier(*c.MinTier)
	}
	assign(&p.MaxArguments, c.MaxArguments)
	assign(&p.MaxOutput, c.MaxOutput)
	assign(&p.MaxInputs, c.MaxInputs)
	assign(&p.MaxOutputs, c.MaxOutputs)
	assign(&p.MaxOutputFiles, c.MaxOutputFiles)
	if c.TimeoutSeconds != nil {
		t, err := seconds(*c.TimeoutSeconds)
		if err != nil {
			return err
		}
		p.Timeout = t
	}
	assign(&p.Memory, c.Memory)
	assign(&p.Processes, c.Processes)
	if c.Network != nil {
		p.Network = gate.Network(*c.Network)
	}
	if c.RequireWalls != nil {
		p.RequireWalls = slices.Clone(*c.RequireWalls)
	}
	assign(&p.KeepArguments, c.KeepArguments)
	if c.Secrets != nil {
		p.Secrets = slices.Compact(slices.Sorted(slices.Values(*c.Secrets)))
	}
	for name, value := range c.SetEnvironment {
		if p.Environment == nil {
			p.Environment = map[string]string{}
		}
		p.Environment[name] = value
	}
	for _, name := range c.Unset {
		p.Unset(name)
	}
	return nil
}

func assign[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// seconds reads a duration to the microsecond.
func seconds(n float64) (time.Duration, error) {
	if math.IsNaN(n) || math.Abs(n) > 1e9 {
		return 0, problem(client.Invalid, "a number of seconds is out of all bounds")
	}
	d := time.Duration(math.Round(n*1e6)) * time.Microsecond
	if d == 0 && n != 0 {
		return 0, problem(client.Invalid, "a number of seconds is less than a microsecond")
	}
	return d, nil
}

// toPolicy tells a policy with the defaults of what was not set. The values of its
// environment, which may be secret, are not told.
func toPolicy(p gate.Policy) client.Policy {
	out := client.Policy{
		Enabled: p.Enabled, Interpreters: append([]string{}, p.Interpreters...), MinTier: string(p.MinTier),
		MaxArguments: cmp.Or(p.MaxArguments, gate.DefaultMaxArguments), MaxOutput: cmp.Or(p.MaxOutput, gate.DefaultMaxOutput),
		MaxInputs: cmp.Or(p.MaxInputs, gate.DefaultMaxInputs), MaxOutputs: cmp.Or(p.MaxOutputs, gate.DefaultMaxOutputs),
		MaxOutputFiles: cmp.Or(p.MaxOutputFiles, gate.DefaultMaxOutputFiles), TimeoutSeconds: cmp.Or(p.Timeout, gate.DefaultTimeout).Seconds(),
		Memory: cmp.Or(p.Memory, gate.DefaultMemory), Processes: cmp.Or(p.Processes, gate.DefaultProcesses),
		Network: string(p.Network), RequireWalls: p.RequireWalls, KeepArguments: p.KeepArguments, Secrets: p.Secrets,
	}
	for name, value := range p.Environment {
		if out.Environment == nil {
			out.Environment = map[string]client.Hides{}
		}
		out.Environment[name] = client.Hides{Bytes: len(value)}
	}
	return out
}
