package gate

import (
	"context"
	"encoding/json"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
)

// A Call is what a model or a person asked for. Nothing in it is trusted but
// Tenant and Actor, which whoever makes the Call takes from a credential.
type Call struct {
	ID     string // UUIDv7; empty: Admit gives one
	Tenant string // whose grant must open the gates; never from the model
	Actor  string // who asks, for the log
	Skill  string // the skill's name, exact bytes
	Script string // a file script's path in the skill, or a stored script's name

	// Arguments is one JSON value in the form that the script's declaration says:
	// a list of strings for argv, an object for flags. Empty means none: an empty
	// list for argv, an empty object for flags and stdin.
	Arguments json.RawMessage

	Inputs []bundle.File // laid out below inputs/
	Live   *Live         // where output goes while the script runs; nil: nowhere

	// Still says whether who asks may still: it is asked when the call has its slot, with
	// the gates that may have closed meanwhile. An error that wraps ErrDenied refuses the
	// call, any other says that it could not be found out: with both nothing runs. Nil:
	// the tenant's word is enough.
	Still func(ctx context.Context) error
}

func (c Call) subject() string { return audit.Clip(c.Skill + " " + c.Script) }

// logTenant is whose history a refusal of c belongs to. A tenant's name that
// breaks the rules has no history, and must not make one.
func (c Call) logTenant() string {
	if CheckTenant(c.Tenant) != nil {
		return NoTenant
	}
	return c.Tenant
}

// Histories that belong to no tenant. No tenant can have such a name: see [CheckTenant].
const (
	NoTenant   = "@nobody" // refused calls without a tenant that could be one
	HostTenant = "@host"   // changes of the host's own switch and allow-list
)
