package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
)

// safeName proves that skill and script are known to the tenant by exactly these bytes.
type safeName struct {
	tenant, skill, script string
	origin                Origin
}

// name is the gate "name" (R14).
func (o open) name(ctx context.Context, known Contents, call Call) (safeName, error) {
	origin, err := look(ctx, known, o.tenant, call.Skill, call.Script)
	if err != nil {
		return safeName{}, err
	}
	return safeName{o.tenant, call.Skill, call.Script, origin}, nil
}

// look finds the script in the known set. A name that is not plain is refused
// before anybody looks for it.
func look(ctx context.Context, known Contents, tenant, skill, script string) (Origin, error) {
	deny := func(err error) (Origin, error) {
		return 0, &Denial{Gate: NameGate, Err: err, Remedy: "use the exact name of a known skill and script"}
	}
	if err := errors.Join(grant.CheckName("skill", skill), grant.CheckName("script", script)); err != nil {
		return deny(err)
	}
	if err := bundle.CheckPath(script); err != nil {
		return deny(fmt.Errorf("script: %w", err))
	}
	origin, err := known.Find(ctx, tenant, skill, script)
	switch {
	case errors.Is(err, ErrUnknown):
		return deny(err)
	case err != nil:
		return 0, fmt.Errorf("gate: looking for the script: %w", err)
	case origin == StoredScript && strings.Contains(script, "/"):
		return deny(fmt.Errorf("stored script %q is not a plain file name", script))
	case origin != StoredScript && origin != FileScript:
		return deny(fmt.Errorf("%w: script %q", ErrUnknown, script))
	}
	return origin, nil
}
