package tracon

import (
	"context"

	"github.com/tracon-go/tracon/gate"
)

// A Delivered is what came of a run that another host delivered.
type Delivered struct {
	Outcome

	// The streams as the executor gave them, any bytes, at most the delivery's limit of
	// each, without this system's own keys: the other host does with them what its own
	// policy says, and masks what that marks.
	RawStdout, RawStderr []byte
}

// Deliver is [Runner.Run] for what another host delivers: it goes through the gate's
// second door, see [gate.Gate.Accept], and is like every other call from there on. The
// ID of the Outcome is this host's own. It has no receipt, which would be for nobody: the
// log is signed on behind it, and whoever delivered does not wait for that.
//
// # Errors
//
// Those of Run.
func (r *Runner) Deliver(ctx context.Context, d gate.Delivery) (Delivered, error) {
	call := gate.Call{Tenant: d.Tenant, Actor: d.Peer.Name, Skill: d.Skill, Script: d.Script, Live: d.Live}
	out, raw, err := r.run(ctx, call, func(ctx context.Context, s gate.Standing) (gate.Request, error) { return r.gate.Accept(ctx, d, s) }, r.proveLater)
	if err != nil {
		raw = streams{}
	}
	return Delivered{out, raw.stdout, raw.stderr}, err
}
