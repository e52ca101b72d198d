package gate

import (
	"context"
	"errors"
)

// Confirm asks the gates that can close while a call waits for a slot once
// more: the switches and the network, the grant and its pin, the allow-list and
// the tier. The content cannot have changed: the Request carries the bytes.
//
// # Errors
//
// A *Denial when a gate has closed, audit.ErrUnavailable when the log takes no
// more entries, the cause of ctx when it is done, any other
// error when something could not be read. With each of them the call must not
// reach the executor, and its ending goes to the log: see [Gate.End].
func (g *Gate) Confirm(ctx context.Context, req Request) error {
	if !req.Valid() {
		return errors.New("gate: the request came through no gate")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// A log that failed since the admission takes no ending either.
	if err := g.Ready(ctx); err != nil {
		return err
	}
	s := req.s
	if err := s.mayStill(ctx); err != nil {
		return err
	}
	if s.open.peer.Name != "" {
		return g.stillReceived(ctx, req)
	}
	host, policy, err := g.rules(ctx, s.open.tenant)
	if err != nil {
		return err
	}
	if err := switches(s.open.tenant, host, policy); err != nil {
		return err
	}
	if err := sameNetwork(s.open.network(), host, policy); err != nil {
		return err
	}
	gr, err := newest(ctx, g.c.Grants, s.open.tenant, s.pinned.skill, s.pinned.script)
	if err != nil {
		return err
	}
	if err := samePin(gr, req.Digest()); err != nil {
		return err
	}
	script, _, _ := s.pinned.bundle.Text(s.pinned.script)
	ext, in, err := allowed(host, policy, s.pinned.script, script)
	if err != nil {
		return err
	}
	if ext != s.interpreter.extension || in != s.interpreter.Interpreter {
		return &Denial{Gate: InterpreterGate, Err: errors.New("the allow-list was changed while the call waited"), Remedy: "call again"}
	}
	return meets(host, policy, gr.MinTier, s.tier.Standing)
}

// mayStill asks whether who called may still.
func (s *sealed) mayStill(ctx context.Context) error {
	if s.still == nil {
		return nil
	}
	err := s.still(ctx)
	if errors.Is(err, ErrDenied) {
		return &Denial{Gate: GrantGate, Err: err, Remedy: "call again, with a credential that holds"}
	}
	return err
}
