package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/toolcall"
)

// A backend is what a verb acts on, for one tenant and one actor. What it returns
// reads the same wherever it comes from, so that a verb's output is written once.
// It is not safe for concurrent use.
type backend interface {
	Tenant() string // whose everything is

	// SkillName returns the name of the skill that word means.
	SkillName(ctx context.Context, word string) (string, error)

	records
	grants
	policies
	calls
}

// records are what came of admitted calls.
type records interface {
	// Calls returns the newest calls.
	Calls(ctx context.Context, f toolcall.Filter) ([]toolcall.Record, error)

	// Call returns the record of one call with its admission and, where it has
	// one, its ending in the log; toolcall.ErrNotFound where there is none.
	Call(ctx context.Context, id string) (toolcall.Record, []audit.Leaf, error)
}

// grants are who may run what.
type grants interface {
	// Review returns what a reviewer reads; with the text of every file where full is true.
	Review(ctx context.Context, ref grant.Ref, full bool) (reviewJSON, error)

	// Difference returns the grant that decides for ref and what has changed since:
	// the zero Grant where there was never one.
	Difference(ctx context.Context, ref grant.Ref) (grant.Grant, []changeJSON, error)

	// Grant grants what g names. The backend knows the actor; an empty MinTier
	// means the tier in force. The errors are those of [admin.Admin.Grant].
	Grant(ctx context.Context, g admin.Granting) (grant.Grant, error)
	Grants(ctx context.Context, f grant.Filter) ([]grant.Grant, error)
	Revoke(ctx context.Context, id, reason string) (grant.Grant, error)
}

// policies are what holds for the tenant and for the host.
type policies interface {
	// Policy returns the tenant's policy, with the defaults of what is not set.
	Policy(ctx context.Context) (gate.Policy, error)

	// SetPolicy changes it, as [admin.Admin.SetPolicy] does, and returns it with defaults.
	SetPolicy(ctx context.Context, change func(*gate.Policy) error) (gate.Policy, error)

	Host(ctx context.Context) (gate.Host, error)
	SetHost(ctx context.Context, c hostChange) (gate.Host, error)

	// HostKept says where the host's settings are kept, for people.
	HostKept() string
}

// A hostChange is what is to change in the host's settings; nil leaves a field alone.
type hostChange struct {
	enabled      *bool
	network      *gate.Network
	require      *[]string
	interpreters map[string]string // by extension: a path, "runtime:…", or empty for wherever it is
}

// calls is asking the gates, and running.
type calls interface {
	// Declare returns how the script takes its arguments, as the skill says now.
	Declare(ctx context.Context, skill, script string) (gate.Declaration, error)

	// Explain asks every gate.
	Explain(ctx context.Context, c gate.Call) ([]gate.Verdict, error)

	// Run runs it and waits for the end: what [tracon.Runner.Run] returns. Once ctx is
	// done the script is stopped, wherever it runs, and the error wraps tracon.ErrCancelled.
	Run(ctx context.Context, c gate.Call) (ran, error)

	// GrantsAtOnce reports whether `run --grant` exists here.
	GrantsAtOnce() bool

	// OpenHint says what opens the switch and the allow-list.
	OpenHint() string
}

// ran is what came of a call, with what the seal of an outcome keeps for itself.
type ran struct {
	tracon.Outcome
	audit *auditJSON // nil: it was not admitted
	model string     // all that a model would read
}

// at opens what the verb acts on, calls f and closes it. What f started is waited for.
func (a *app) at(cmd *cobra.Command, use daemon.Use, f func(ctx context.Context, b backend) error) error {
	return a.houseTo(cmd, use, func(ctx context.Context, h *daemon.House) error { return f(ctx, a.local(h)) })
}
