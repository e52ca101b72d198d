package gate

import (
	"fmt"

	"github.com/tracon-go/tracon/grant"
)

// tier proves that the executor stands as high as the grant and the policy ask,
// with the walls that the host and the policy ask for.
type tier struct{ Standing }

// tier is the gate "tier". Less than asked is a refusal, never a downgrade.
func (o open) tier(h held, s Standing) (tier, error) {
	if err := meets(o.host, o.policy, h.grant.MinTier, s); err != nil {
		return tier{}, err
	}
	return tier{s}, nil
}

func meets(host Host, policy Policy, want grant.Tier, s Standing) error {
	has := s.Tier
	if s.Claimed && !host.TrustClaimed && has.Valid() {
		has = grant.Process
	}
	wants := []grant.Tier{want}
	if policy.MinTier != "" {
		wants = append(wants, policy.MinTier)
	}
	for _, want := range wants {
		if !has.Meets(want) {
			remedy := "run it on a host with that tier, or grant it for a lower one"
			if s.Tier.Meets(want) {
				remedy = "trust what the executor claims (trust_claimed), or grant it for the tier " + string(grant.Process)
			}
			return &Denial{Gate: TierGate, Remedy: remedy,
				Err: fmt.Errorf("tier %q is asked for; executor %q stands at %q", want, s.Executor, has)}
		}
	}
	return walled(host, policy, s)
}
