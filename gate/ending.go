package gate

import (
	"context"
	"errors"

	"github.com/tracon-go/tracon/audit"
)

// End writes what came of an admitted call: ending is its name, facts what else
// there is to say. Commit, if not nil, keeps what goes with the entry in one
// transaction; nil writes the entry alone. It writes even when ctx is done.
//
// Only the runner calls it. An executor is handed a Request and no Gate, so it
// can neither write an ending nor keep one from being written.
func (g *Gate) End(ctx context.Context, req Request, ending string, facts []audit.Fact, commit func(context.Context, audit.Pending) error) (audit.Receipt, error) {
	if !req.Valid() {
		return audit.Receipt{}, errors.New("gate: the request came through no gate")
	}
	e := audit.Entry{Tenant: req.Tenant(), Actor: audit.Clip(req.Actor()), Kind: audit.Ending,
		Subject: audit.Clip(req.Skill() + " " + req.Script()), Run: req.ID()}
	all := []string{"ending", ending}
	for _, f := range facts {
		all = append(all, f.Name, audit.Clip(f.Value))
	}
	e.Facts = audit.Facts(all...)
	ctx = context.WithoutCancel(ctx)
	if commit == nil {
		return g.c.Log.Append(ctx, e)
	}
	return g.c.Log.Commit(ctx, e, commit)
}
