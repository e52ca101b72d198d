package gate

import (
	"context"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/grant"
)

// Config holds what the gates look at. Every field down to Log is required.
type Config struct {
	Hosts    Hosts
	Policies Policies
	Contents Contents
	Declarer Declarer
	Schemas  Schemas
	Grants   grant.Finder
	Log      *audit.Log

	// Instance is the id of this process, for the entries of its admissions: whoever
	// finds it dead can tell which of them have no ending. Empty: they name none.
	Instance string

	// Receptions says what this host does for others: see [Gate.Accept]. Nil: nothing.
	// Tickets knows who signs tickets. Nil: nobody does.
	Receptions Receptions
	Tickets    Tickets
}

// A Gate takes calls through the gates. It is safe for concurrent use.
type Gate struct{ c Config }

// New returns a Gate over c. It panics when a field is nil: a gate that has
// nothing to look at is a mistake in the program.
func New(c Config) *Gate {
	if c.Hosts == nil || c.Policies == nil || c.Contents == nil || c.Declarer == nil || c.Schemas == nil || c.Grants == nil || c.Log == nil {
		panic("gate: New with a nil field in Config")
	}
	c.Contents = share(c.Contents)
	return &Gate{c}
}

// Ready says why nothing can be admitted, whatever the call, or nil: the log
// takes no entry. It writes nothing.
//
// # Errors
//
// One that wraps audit.ErrUnavailable; it names the remedy.
func (g *Gate) Ready(ctx context.Context) error { return g.c.Log.Ready(ctx) }

// A Standing says how strong the executor that will run the script is. The
// runner knows; the zero Standing meets no grant.
type Standing struct {
	Executor string     // its name, for the log
	Tier     grant.Tier // the tier it stands at
	Claimed  bool       // nobody proved the tier and the walls; see [Host.TrustClaimed]
	Walls    []Wall     // that its posture tells of
}

// Policy returns what holds for tenant, with the limits that are in force.
func (g *Gate) Policy(ctx context.Context, tenant string) (Policy, error) {
	p, err := g.c.Policies.Policy(ctx, tenant)
	return p.orDefaults(), err
}
