package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracon-go/tracon/bundle"
)

// An Answer is what a gate says of a call.
type Answer string

// The answers.
const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unasked Answer = "unasked" // it needs what an earlier gate did not have
	Failed  Answer = "failed"  // something could not be read
)

// A Verdict is one gate's answer, for the operator.
type Verdict struct {
	Gate   Name   `json:"gate"`
	Answer Answer `json:"answer"`
	Detail string `json:"detail,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Explain asks every gate about call and returns their answers in order. It
// writes nothing and runs nothing, and nothing that it finds is a proof: it
// asks each gate's question also where an earlier gate says no, so that an
// operator sees all that is amiss at once.
func (g *Gate) Explain(ctx context.Context, call Call, s Standing) (verdicts []Verdict) {
	say := func(gate Name, yes string, err error) bool {
		v := Verdict{Gate: gate, Answer: Yes, Detail: yes}
		if d, ok := errors.AsType[*Denial](err); ok {
			v = Verdict{gate, No, d.Err.Error(), d.Remedy}
		} else if err != nil {
			v = Verdict{gate, Failed, err.Error(), "mend what cannot be read"}
		}
		verdicts = append(verdicts, v)
		return err == nil
	}
	unasked := func(why string, gates ...Name) {
		for _, gate := range gates {
			verdicts = append(verdicts, Verdict{Gate: gate, Answer: Unasked, Detail: why})
		}
	}

	host, policy, err := g.rules(ctx, call.Tenant)
	defer func() {
		m := policy.masker()
		for i := range verdicts {
			verdicts[i].Detail = m.Text(verdicts[i].Detail)
		}
	}()
	if err != nil {
		say(SwitchGate, "", err)
		unasked("the settings cannot be read", Names()[1:]...)
		return verdicts
	}
	say(SwitchGate, "the host's switch and the tenant's are on", switches(call.Tenant, host, policy))

	_, err = look(ctx, g.c.Contents, call.Tenant, call.Skill, call.Script)
	if !say(NameGate, "skill and script are known", err) {
		unasked("there is no such script", Names()[2:]...)
		return verdicts
	}

	gr, err := newest(ctx, g.c.Grants, call.Tenant, call.Skill, call.Script)
	granted := say(GrantGate, "grant "+gr.ID+" for "+gr.Ref.String()+" is in force", err)

	b, err := read(ctx, g.c.Contents, host.Content, call.Tenant, call.Skill, call.Script)
	files, size := b.Size()
	// The digest is not told here: who learns it from an answer could grant it unseen.
	readable := say(ContentGate, fmt.Sprintf("%d files, %d bytes", files, size), err)
	content := len(verdicts) - 1

	switch {
	case !granted:
		unasked("there is no grant in force whose pin could be compared", PinGate)
	case !readable:
		unasked("the content cannot be used", PinGate)
	default:
		say(PinGate, "the bytes are those that the grant pins, "+gr.Pin.String(), samePin(gr, b.Digest()))
	}

	if readable {
		script, _, _ := b.Text(call.Script)
		ext, in, err := allowed(host, policy, call.Script, script)
		say(InterpreterGate, fmt.Sprintf("%s runs with %s%s", ext, in.Path, in.Name), err)
	} else {
		unasked("the content cannot be used", InterpreterGate)
	}

	if granted {
		yes := fmt.Sprintf("executor %q stands at %q, and %q is asked for", s.Executor, s.Tier, gr.MinTier)
		if walls := slices.Concat(host.RequireWalls, policy.RequireWalls); len(walls) > 0 {
			yes += fmt.Sprintf("; the walls that are asked for stand: %q", walls)
		}
		say(TierGate, yes, meets(host, policy, gr.MinTier, s))
	} else {
		unasked("there is no grant in force that asks for a tier", TierGate)
	}

	if !readable {
		unasked("the content cannot be used", ArgumentsGate)
		return verdicts
	}
	err = g.tryArguments(ctx, policy, b, call)
	if d, ok := errors.AsType[*Denial](err); ok && d.Gate == ContentGate {
		// The declaration is looked at behind the other gates, and its fault is the
		// content's. Where one of them says no, that is what Admit answers.
		unasked("the skill's declaration cannot be used: "+d.Err.Error(), ArgumentsGate)
		if !slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Answer == No }) {
			verdicts[content] = Verdict{ContentGate, No, d.Err.Error(), d.Remedy}
		}
		return verdicts
	}
	say(ArgumentsGate, "the arguments fit", err)
	return verdicts
}

func (g *Gate) tryArguments(ctx context.Context, policy Policy, b bundle.Bundle, call Call) error {
	d, err := declared(g.c.Declarer, b, call.Script)
	if err != nil {
		return err
	}
	_, err = checked(ctx, g.c.Schemas, policy, d, call)
	return err
}
