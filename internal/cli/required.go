package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// required is the tier that must stand, and who asks for it.
type required struct {
	tier grant.Tier // empty: nobody asks for one
	by   string
}

func (r *required) raise(t grant.Tier, by string) {
	if t.Valid() && (r.tier == "" || !r.tier.Meets(t)) {
		*r = required{t, by}
	}
}

// requiredBy is the highest tier that the tenant's policy and its grants in force ask for.
func requiredBy(ctx context.Context, b backend) (r required, err error) {
	policy, err := b.Policy(ctx)
	if err != nil {
		return r, err
	}
	r.raise(policy.MinTier, "the policy of tenant "+b.Tenant())
	grants, err := b.Grants(ctx, grant.Filter{})
	if err != nil {
		return r, err
	}
	for _, g := range grants {
		if g.decides() {
			r.raise(g.MinTier, "the grant "+g.ID+" for "+g.Ref.String())
		}
	}
	return r, nil
}

// concluded adds to the findings what the required tier and walls make of the
// posture, and says what the exit code says. Asked is the tier of the words; where
// there is one it alone decides.
func concluded(findings []finding, asked grant.Tier, need required, host gate.Host, policy gate.Policy, p executor.Posture) examination {
	stands := need.stands(host, p)
	findings = append(append(findings, stands), requiredWalls(host, policy, p)...)
	ok := stands.OK
	if asked == "" {
		ok = !slices.ContainsFunc(findings, func(f finding) bool { return !f.OK })
	}
	return examination{ok, need.tier, stands.OK, findings, p}
}

// stands says whether the required tier stands.
func (r required) stands(host gate.Host, p executor.Posture) finding {
	has, word := p.Tier, ""
	if p.Claimed && !host.TrustClaimed {
		has, word = grant.Process, ", which is its own word and counts as "+string(grant.Process)
	}
	f := finding{"tier", has.Meets(r.tier), fmt.Sprintf("%s%s; %s asks for %s", p.Tier, word, r.by, r.tier), ""}
	switch {
	case r.tier == "":
		return finding{"tier", p.Tier.Valid(), cmp.Or(string(p.Tier), "none stands") + word + "; nobody asks for one", ""}
	case !f.OK && p.Tier == "":
		f.Detail = fmt.Sprintf("none stands; %s asks for %s", r.by, r.tier)
		f.Remedy = "mend what the executor names"
	case !f.OK && word != "" && p.Tier.Meets(r.tier):
		f.Remedy = "set trust_claimed: true, if that word is to count, or grant it with --tier " + string(grant.Process)
	case !f.OK && p.Executor == "process":
		f.Remedy = "take the executor sandbox, on Linux"
	case !f.OK:
		f.Remedy = "no executor of this program is higher; ask for less, or register one of your own"
	}
	return f
}

// requiredWalls says of each wall that the host or the tenant's policy asks for
// whether it stands.
func requiredWalls(host gate.Host, policy gate.Policy, p executor.Posture) (list []finding) {
	for _, name := range slices.Concat(host.RequireWalls, policy.RequireWalls) {
		f := finding{"required wall", false, name + " is no wall of the executor " + p.Executor, "take one that has it, or do not ask for it"}
		for _, w := range p.Walls {
			switch {
			case w.Name != name:
			case p.Claimed && !host.TrustClaimed:
				f.Detail, f.Remedy = name+" is claimed, and proved by nobody", "take an executor that proves it, or set trust_claimed"
			case !w.Stands:
				f.Detail, f.Remedy = name+" does not stand", w.Remedy
			default:
				f = finding{"required wall", true, name + " stands", ""}
			}
		}
		list = append(list, f)
	}
	return list
}
