package toolset

import (
	"context"
	"slices"
	"time"

	"github.com/tracon-go/tracon/grant"
)

// runnable is what a tenant may run now, as far as it can be told without reading a
// skill: the gates decide when it is called.
type runnable struct {
	scripts map[string][]string // skill to scripts with a grant of their own in force
	refused map[string][]string // those whose own grant is no longer in force: it decides alone
	whole   map[string]bool     // skills of which every other script may run
}

// may reports whether the script may run.
func (r runnable) may(skill, script string) bool {
	return slices.Contains(r.scripts[skill], script) || r.whole[skill] && !slices.Contains(r.refused[skill], script)
}

// any reports whether some script of the skill may run.
func (r runnable) any(skill string) bool { return len(r.scripts[skill]) > 0 || r.whole[skill] }

// grantsPage is how many grants are read at once.
const grantsPage = 1000

// runnable reads the switches and the tenant's grants: of each Ref the newest counts.
func (s *Session) runnable(ctx context.Context) (runnable, error) {
	r := runnable{scripts: map[string][]string{}, refused: map[string][]string{}, whole: map[string]bool{}}
	host, err := s.t.c.Hosts.Host(ctx)
	if err != nil || !host.Enabled {
		return r, err
	}
	policy, err := s.t.c.Policies.Policy(ctx, s.tenant)
	if err != nil || !policy.Enabled || policy.Suspended {
		return r, err
	}
	now, seen := time.Now(), map[grant.Ref]bool{}
	for before := ""; ; {
		page, err := s.t.c.Grants.Grants(ctx, s.tenant, grant.Filter{Before: before, Limit: grantsPage})
		if err != nil {
			return r, err
		}
		for _, g := range page {
			before = g.ID
			if seen[g.Ref] {
				continue
			}
			seen[g.Ref] = true
			switch in := g.InForce(now); {
			case g.Ref.AllScripts && in:
				r.whole[g.Ref.Skill] = true
			case g.Ref.AllScripts:
			case in:
				r.scripts[g.Ref.Skill] = append(r.scripts[g.Ref.Skill], g.Ref.Script)
			default:
				r.refused[g.Ref.Skill] = append(r.refused[g.Ref.Skill], g.Ref.Script)
			}
		}
		if len(page) < grantsPage {
			return r, nil
		}
	}
}
