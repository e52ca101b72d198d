package gate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/id"
)

// Accept is the second door and the last: that of a runner service. There another
// host's gates have decided; this one decides whether that host may have it run
// here. It takes d through this host's own gates, in the order below, and writes
// the audit entry. As in [Gate.Admit] each gate hands on a value that a later one
// consumes, so none can be left out. A refusal is written too.
//
// The gates have the names of Admit's: switch is the reception's own, grant the
// peer's tenants and its ticket, interpreter the list of runtimes, content and pin
// the bytes that came, arguments everything that is bounded.
//
// # Errors
//
// Those of Admit.
func (g *Gate) Accept(ctx context.Context, d Delivery, s Standing) (Request, error) {
	call := Call{ID: id.New(), Tenant: d.Tenant, Actor: d.Peer.Name, Skill: d.Skill, Script: d.Script, Live: d.Live, Still: d.Peer.Still}
	req, err := g.accept(ctx, call, d, s)
	if denial, ok := errors.AsType[*Denial](err); ok {
		if lerr := g.refusedDelivery(ctx, call, d, denial); lerr != nil {
			return Request{}, fmt.Errorf("%w (what could not be written: %v)", lerr, denial)
		}
		return Request{}, denial
	}
	if err == nil {
		call.Live.pass(req.s.masker)
	}
	return req, err
}

func (g *Gate) accept(ctx context.Context, call Call, d Delivery, s Standing) (Request, error) {
	received, err := g.received(ctx, d)
	if err != nil {
		return Request{}, err
	}
	runtime, err := received.runtime(d)
	if err != nil {
		return Request{}, err
	}
	pinned, err := received.delivered(runtime, d)
	if err != nil {
		return Request{}, err
	}
	arguments, err := received.handed(pinned, d)
	if err != nil {
		return Request{}, err
	}
	ticketed, err := g.ticket(ctx, received, pinned, d)
	if err != nil {
		return Request{}, err
	}
	tier, err := ticketed.tier(pinned, s)
	if err != nil {
		return Request{}, err
	}
	receipt, err := g.c.Log.Append(ctx, acceptance(call, d, g.c.Instance, ticketed, runtime, tier, arguments, pinned))
	if err != nil {
		return Request{}, err // no Denial: nothing was refused, the log could not be written
	}
	return seal(call, received.open, runtime, tier, arguments, pinned, receipt)
}

// received proves that the reception is open, and to this peer for this tenant. It
// carries what was asked for as the policy of this one run.
type received struct {
	open
	reception Reception
}

// received is the gates "switch" and "grant" of a delivery (R8, R9).
func (g *Gate) received(ctx context.Context, d Delivery) (received, error) {
	reception, err := g.reception(ctx)
	if err != nil {
		return received{}, err
	}
	if err := d.Peer.may(d.Tenant); err != nil {
		return received{}, &Denial{Gate: GrantGate, Err: err, Remedy: "give the peer a key for the tenant"}
	}
	policy, err := reception.policy(d)
	if err != nil {
		return received{}, &Denial{Gate: ArgumentsGate, Err: err, Remedy: "ask for less, or raise the runner's limit", model: "more is asked for than the runner gives."}
	}
	host := Host{Enabled: true, RequireWalls: reception.RequireWalls, TrustClaimed: reception.TrustClaimed, Network: reception.Network, Content: reception.Content}
	return received{open{d.Tenant, host, policy, d.Peer.clone()}, reception}, nil
}

// reception reads the runner's own settings, and refuses where they are off or
// cannot hold.
func (g *Gate) reception(ctx context.Context) (Reception, error) {
	deny := func(err error) (Reception, error) {
		return Reception{}, &Denial{Gate: SwitchGate, Err: err, Remedy: "switch the runner on"}
	}
	if g.c.Receptions == nil {
		return deny(errors.New("this host takes no deliveries"))
	}
	r, err := g.c.Receptions.Reception(ctx)
	if err != nil {
		return Reception{}, fmt.Errorf("gate: reading the runner's settings: %w", err)
	}
	if !r.Enabled {
		return deny(errors.New("the runner is off"))
	}
	if err := r.Validate(); err != nil {
		return deny(err)
	}
	return r.OrDefaults(), nil
}

// runtime is the gate "interpreter" of a delivery (R11).
func (r received) runtime(d Delivery) (interpreter, error) {
	in, ok := r.reception.Runtimes[d.Runtime]
	if !ok {
		return interpreter{}, &Denial{Gate: InterpreterGate, Remedy: "add the runtime to the runner's list",
			Err: fmt.Errorf("the runner has no runtime %.80q", d.Runtime)}
	}
	return interpreter{in.Extension, in.Interpreter}, nil
}

// delivered is the gates "name", "content" and "pin" of a delivery (R10, R15, B1):
// the digests are those of the bytes that came, computed here. A script that came
// alone is a closure of one file.
func (r received) delivered(i interpreter, d Delivery) (pinned, error) {
	deny := func(gate Name, remedy string, err error) (pinned, error) {
		return pinned{}, &Denial{Gate: gate, Err: err, Remedy: remedy}
	}
	b, skill, script := d.Bundle, d.Skill, d.Script
	if d.alone() {
		var err error
		skill, script = d.Runtime, "script."+i.extension
		if b, err = bundle.New([]bundle.File{{Path: script, Data: d.Source}}, nil, r.host.Content); err != nil {
			return deny(ContentGate, "send a smaller script, or raise the runner's limit", err)
		}
	} else if err := errors.Join(grant.CheckName("skill", skill), grant.CheckName("script", script), bundle.CheckPath(script)); err != nil {
		return deny(NameGate, "send names that are plain", err)
	}
	if err := b.Within(r.host.Content); err != nil {
		return deny(ContentGate, "send less, or raise the runner's limit", err)
	}
	_, found, ok := b.Text(script)
	if !ok {
		return deny(ContentGate, "send the whole closure", fmt.Errorf("the closure has no %.80q", script))
	}
	if found != d.ScriptDigest || !d.alone() && b.Digest() != d.Digest {
		return deny(PinGate, "send the bytes that were approved", errors.New("the bytes are not those of the digest that came with them"))
	}
	if d.Module != "" {
		if rival := moduleRival(b, script); d.Module != ModuleOf(script) || rival != "" {
			return deny(ContentGate, "mend the skill's declaration", fmt.Errorf("the module %.80q is not the script %.80q (%q)", d.Module, script, rival))
		}
	}
	// The peer stands where at home the grant does: it vouches for the content.
	vouched := grant.Grant{ID: "peer " + d.Peer.Name, Pin: b.Digest(), MinTier: cmp.Or(d.Tier, grant.Process)}
	return pinned{content{safeName{r.tenant, skill, script, FileScript}, b}, vouched}, nil
}

// handed is the gate "arguments" of a delivery (R12): what the script gets is
// within limits and of a form that a program can be given.
func (r received) handed(p pinned, d Delivery) (arguments, error) {
	deny := func(err error) (arguments, error) {
		return arguments{}, &Denial{Gate: ArgumentsGate, Err: err, Remedy: "send what fits, or raise the runner's limit", model: err.Error()}
	}
	declaration := Declaration{Mode: d.Mode, Module: d.Module, Outputs: slices.Clone(d.OutputPatterns)}
	if err := declaration.check(p.script); err != nil {
		return deny(err)
	}
	words := d.Mode == Argv || d.Mode == Flags
	if len(d.Words) > 0 && !words || len(d.Stdin) > 0 && d.Mode != Stdin {
		return deny(fmt.Errorf("what came is not for a script of mode %q", d.Mode))
	}
	if n := len(d.Stdin); n > r.policy.MaxArguments {
		return deny(fmt.Errorf("standard input of %d bytes, at most %d", n, r.policy.MaxArguments))
	}
	if err := checkWords(d.Words); err != nil {
		return deny(err)
	}
	a := arguments{mode: d.Mode, json: bytes.Clone(d.Stdin), stdin: bytes.Clone(d.Stdin), words: slices.Clone(d.Words),
		timeout: r.policy.Timeout, module: d.Module, outputs: declaration.Outputs}
	if words {
		text, err := json.Marshal(append([]string{}, d.Words...))
		if err != nil {
			return deny(err)
		}
		a.json = text
	}
	var err error
	if a.inputs, err = bundle.New(d.Inputs, nil, bundle.Limits{FileBytes: r.policy.MaxInputs, TotalBytes: r.policy.MaxInputs}); err != nil {
		return deny(fmt.Errorf("inputs: %w", err))
	}
	a.newSalt()
	return a, nil
}

// ticketed proves that a ticket was given where the runner asks for one, and that
// it stands for this delivery and is used up.
type ticketed struct{ received }

// ticket is the gate "grant" of a delivery, where tickets are asked for.
func (g *Gate) ticket(ctx context.Context, r received, p pinned, d Delivery) (ticketed, error) {
	deny := func(err error) (ticketed, error) {
		return ticketed{}, &Denial{Gate: GrantGate, Err: err, Remedy: "send a new ticket for each run"}
	}
	switch {
	case d.Ticket == "" && !r.reception.RequireTicket:
		return ticketed{r}, nil
	case d.Ticket == "":
		return deny(errors.New("the runner asks for a ticket, and none came"))
	case g.c.Tickets == nil:
		return deny(errors.New("a ticket came, and the runner knows nobody who signs them"))
	}
	claim := Claim{Peer: d.Peer.Name, Tenant: r.tenant, Run: d.Run, Digest: p.bundle.Digest(), Request: d.Request}
	err := g.c.Tickets.Redeem(ctx, d.Ticket, claim)
	if err != nil && !errors.Is(err, ErrTicket) {
		return ticketed{}, fmt.Errorf("gate: reading the tickets: %w", err)
	}
	if err != nil {
		return deny(err)
	}
	return ticketed{r}, nil
}

// tier is the gate "tier" of a delivery: less than asked is a refusal.
func (r ticketed) tier(p pinned, s Standing) (tier, error) {
	if err := meets(r.host, r.policy, p.grant.MinTier, s); err != nil {
		return tier{}, err
	}
	return tier{s}, nil
}

// acceptance is the entry that stands in the runner's log before the executor is
// called. What the peer told of its own gates is marked as told.
func acceptance(call Call, d Delivery, instance string, o ticketed, i interpreter, t tier, a arguments, p pinned) audit.Entry {
	call.Skill, call.Script = p.skill, p.script
	e := intent(call, instance, o.open, i, t, a, p)
	told := func(name, value string) {
		if value != "" {
			e.Facts = append(e.Facts, audit.Fact{Name: name, Value: audit.Clip(value)})
		}
	}
	told("peer", d.Peer.Name)
	told("runtime", d.Runtime)
	told("ticket", flag(d.Ticket != ""))
	told("toldActor", d.Actor)
	told("toldGrant", d.Grant)
	told("toldRun", d.Run)
	slices.SortFunc(e.Facts, func(a, b audit.Fact) int { return cmp.Compare(a.Name, b.Name) })
	return e
}

// refusedDelivery writes the entry of a refusal. A tenant that the peer may not
// name has no history here, and must not make one.
func (g *Gate) refusedDelivery(ctx context.Context, call Call, d Delivery, denial *Denial) error {
	if d.Peer.may(d.Tenant) != nil {
		call.Tenant = ""
	}
	return g.refused(ctx, call, denial, "peer", audit.Clip(d.Peer.Name), "peerTenant", audit.Clip(fmt.Sprintf("%+q", d.Tenant)), "toldRun", audit.Clip(d.Run))
}

// stillReceived is [Gate.Confirm] for a request that was delivered: the switch, the
// list of runtimes and the tier once more.
func (g *Gate) stillReceived(ctx context.Context, req Request) error {
	reception, err := g.reception(ctx)
	if err != nil {
		return err
	}
	s := req.s
	for _, in := range reception.Runtimes {
		if in.Interpreter == s.interpreter.Interpreter && in.Extension == s.interpreter.extension {
			host := s.open.host
			host.RequireWalls, host.TrustClaimed = reception.RequireWalls, reception.TrustClaimed
			return meets(host, s.open.policy, s.pinned.grant.MinTier, s.tier.Standing)
		}
	}
	return &Denial{Gate: InterpreterGate, Err: errors.New("the list of runtimes was changed while the run waited"), Remedy: "send it again"}
}

// policy is what d asks for, where that is within r's limits.
func (r Reception) policy(d Delivery) (Policy, error) {
	for _, l := range []struct {
		name        string
		asked, most int64
	}{
		{"a timeout of nanoseconds", int64(d.Timeout), int64(r.Timeout)},
		{"output of bytes", int64(d.MaxOutput), int64(r.MaxOutput)},
		{"outputs of bytes", d.MaxOutputs, r.MaxOutputs},
		{"output files", int64(d.MaxOutputFiles), int64(r.MaxOutputFiles)},
		{"memory of bytes", d.Memory, r.Memory},
		{"processes", int64(d.Processes), int64(r.Processes)},
	} {
		if l.asked < 0 || l.asked > l.most {
			return Policy{}, fmt.Errorf("%s: %d are asked for, at most %d", l.name, l.asked, l.most)
		}
	}
	if d.Timeout == 0 || d.MaxOutput == 0 {
		return Policy{}, errors.New("a timeout and a limit of the output are asked for by none")
	}
	if d.Network == Loopback && r.Network != Loopback {
		return Policy{}, errors.New("the network is asked for, and the runner gives none")
	}
	if d.Tier != "" && !d.Tier.Valid() {
		return Policy{}, fmt.Errorf("the tier %.40q is none", d.Tier)
	}
	p := Policy{Enabled: true, MaxArguments: r.MaxArguments, MaxOutput: d.MaxOutput, MaxInputs: r.MaxInputs, MaxOutputs: d.MaxOutputs,
		MaxOutputFiles: d.MaxOutputFiles, Timeout: d.Timeout, Memory: cmp.Or(d.Memory, min(DefaultMemory, r.Memory)),
		Processes: cmp.Or(d.Processes, min(DefaultProcesses, r.Processes)), Network: d.Network, MinTier: r.MinTier,
		RequireWalls: slices.Clone(d.RequireWalls), Environment: maps.Clone(d.Environment)}
	return p, p.Validate()
}
