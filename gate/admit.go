package gate

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/id"
)

// Admit takes call through every gate, in the order below, and writes the audit
// entry. Each gate hands on a value that a later one consumes and that only
// this gate makes, so none can be left out. A refusal is written too.
//
// # Errors
//
// A *Denial, which wraps ErrDenied, when a gate refused. One that wraps
// audit.ErrUnavailable, and is no Denial, when the log could not be written, be
// it the intent or the refusal. Any other error means that something could not
// be read, or that the call's ID is none. With each of them nothing runs.
func (g *Gate) Admit(ctx context.Context, call Call, s Standing) (Request, error) {
	if call.ID == "" {
		call.ID = id.New()
	}
	if !id.Valid(call.ID) {
		return Request{}, errors.New("gate: the call's id is not a UUIDv7")
	}
	req, err := g.admit(ctx, call, s)
	if d, ok := errors.AsType[*Denial](err); ok {
		if lerr := g.refused(ctx, call, d); lerr != nil {
			return Request{}, fmt.Errorf("%w (what could not be written: %v)", lerr, d)
		}
		return Request{}, d
	}
	if err == nil {
		call.Live.pass(req.s.masker)
	}
	return req, err
}

func (g *Gate) admit(ctx context.Context, call Call, s Standing) (_ Request, err error) {
	open, err := g.open(ctx, call.Tenant)
	if err != nil {
		return Request{}, err
	}
	defer func() { err = masked(open.policy, err) }()
	name, err := open.name(ctx, g.c.Contents, call)
	if err != nil {
		return Request{}, err
	}
	held, err := g.held(ctx, name)
	if err != nil {
		return Request{}, err
	}
	content, err := open.content(ctx, g.c.Contents, held)
	if err != nil {
		return Request{}, err
	}
	pinned, err := held.pin(content)
	if err != nil {
		return Request{}, err
	}
	interpreter, err := open.interpreter(pinned)
	if err != nil {
		return Request{}, err
	}
	tier, err := open.tier(held, s)
	if err != nil {
		return Request{}, err
	}
	arguments, err := open.arguments(ctx, g.c.Declarer, g.c.Schemas, pinned, call)
	if err != nil {
		return Request{}, err
	}
	receipt, err := g.c.Log.Append(ctx, intent(call, g.c.Instance, open, interpreter, tier, arguments, pinned))
	if err != nil {
		return Request{}, err // no Denial: nothing was refused, the log could not be written
	}
	return seal(call, open, interpreter, tier, arguments, pinned, receipt)
}

// intent is the entry that stands in the log before the executor is called.
func intent(call Call, instance string, o open, i interpreter, t tier, a arguments, p pinned) audit.Entry {
	files, size := a.inputs.Size()
	_, script, _ := p.bundle.Text(p.script)
	e := audit.Entry{Tenant: o.tenant, Actor: audit.Clip(call.Actor), Kind: audit.Admission, Subject: call.subject(), Run: call.ID}
	e.Facts = audit.Facts(
		"argumentsBytes", fmt.Sprint(len(a.json)),
		"argumentsCommitment", a.commitment().String(),
		"argumentsMode", string(a.mode),
		"digest", p.bundle.Digest().String(),
		"executor", audit.Clip(t.Executor),
		"grant", p.grant.ID,
		"inputs", fmt.Sprintf("%d files, %d bytes", files, size),
		"inputsCommitment", a.inputsCommitment(),
		"instance", instance,
		"interpreter", i.extension,
		"interpreterDigest", text(i.Digest),
		"interpreterName", audit.Clip(i.Name),
		"limits", fmt.Sprintf("timeout %s, output %d, memory %d, processes %d", a.timeout, o.policy.MaxOutput, o.policy.Memory, o.policy.Processes),
		"network", string(o.network()),
		"runtimeDigest", text(i.Image),
		"script", script.String(),
		"skill", p.skill,
		"tier", string(t.Tier),
		"tierClaimed", flag(t.Claimed),
	)
	return e
}

// refused writes the entry of a refusal. It does so even when the caller has
// left: the model must not be able to ask without a record by hanging up. More are
// names and values of further facts.
func (g *Gate) refused(ctx context.Context, call Call, d *Denial, more ...string) error {
	facts := append([]string{"gate", string(d.Gate), "reason", audit.Clip(d.Err.Error())}, more...)
	if pin, ok := errors.AsType[*PinError](d.Err); ok {
		facts = append(facts, "grant", pin.Grant.ID)
	}
	if call.logTenant() == NoTenant {
		facts = append(facts, "tenant", audit.Clip(fmt.Sprintf("%+q", call.Tenant)))
	}
	e := audit.Entry{
		Tenant: call.logTenant(), Actor: audit.Clip(call.Actor), Kind: audit.Refusal, Subject: call.subject(), Run: audit.Clip(call.ID),
		Facts: audit.Facts(facts...),
	}
	alike := bundle.Sum(fmt.Appendf(nil, "%q %q %q %q %q", call.Tenant, call.Actor, call.Skill, call.Script, d.Gate))
	return g.c.Log.Count(context.WithoutCancel(ctx), e, alike.String())
}

// Flush writes the refusals that were counted and not written yet: those of one
// tenant, actor, script and gate that came soon after another (case 61).
func (g *Gate) Flush(ctx context.Context) error { return g.c.Log.Flush(ctx) }

func text(d interface{ IsZero() bool }) string {
	if d.IsZero() {
		return ""
	}
	return fmt.Sprint(d)
}

func flag(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
