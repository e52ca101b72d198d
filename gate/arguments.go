package gate

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tracon-go/tracon/bundle"
)

// arguments proves that what the script will get is within limits, strict JSON,
// valid by the script's schema, and lowered to the form that the script takes.
type arguments struct {
	mode    Mode
	json    []byte   // as validated, re-encoded
	words   []string // for argv and flags
	stdin   []byte   // for stdin
	inputs  bundle.Bundle
	timeout time.Duration
	module  string
	outputs []string
	salt    [32]byte // of the commitment in the log
}

// arguments is the gate "arguments" (R12, R13).
func (o open) arguments(ctx context.Context, declarer Declarer, schemas Schemas, p pinned, call Call) (arguments, error) {
	d, err := declared(declarer, p.bundle, p.script)
	if err != nil {
		return arguments{}, err
	}
	a, err := checked(ctx, schemas, o.policy, d, call)
	if err != nil {
		return arguments{}, err
	}
	a.newSalt()
	return a, nil
}

// newSalt gives the commitment in the log a salt of its own.
func (a *arguments) newSalt() { _, _ = rand.Read(a.salt[:]) } // it never fails; see crypto/rand

// declared asks for the declaration. One that cannot be used is a fault of the
// content, so it is refused under that gate's name.
func declared(declarer Declarer, b bundle.Bundle, script string) (Declaration, error) {
	deny := func(err error) (Declaration, error) {
		return Declaration{}, &Denial{Gate: ContentGate, Err: err, Remedy: "mend the skill's declaration"}
	}
	d, err := declarer.Declare(b, script)
	switch {
	case errors.Is(err, bundle.ErrContent):
		return deny(err)
	case err != nil:
		return Declaration{}, fmt.Errorf("gate: reading the declaration: %w", err)
	}
	if err := d.check(script); err != nil {
		return deny(err)
	}
	if d.Module != "" {
		if rival := moduleRival(b, script); rival != "" {
			return deny(fmt.Errorf("the module %q is the file %q to Python, not the script %q", d.Module, rival, script))
		}
	}
	return d, nil
}

func checked(ctx context.Context, schemas Schemas, policy Policy, d Declaration, call Call) (arguments, error) {
	deny := func(model string, err error) (arguments, error) {
		return arguments{}, &Denial{Gate: ArgumentsGate, Err: err, Remedy: "send arguments that fit, or raise the tenant's limit", model: model}
	}
	if n := len(call.Arguments); n > policy.MaxArguments {
		err := fmt.Errorf("arguments of %d bytes, at most %d", n, policy.MaxArguments)
		return deny(err.Error()+".", err)
	}
	value := bytes.Clone(call.Arguments) // what is checked is what is run, whatever the caller does to its slice
	if len(value) == 0 {
		value = []byte(d.Mode.empty())
	}
	if err := d.Mode.form(value); err != nil {
		return deny(err.Error(), err)
	}
	canonical, err := schemas.Check(ctx, d.Schema, value)
	if err != nil {
		if ctx.Err() != nil {
			return arguments{}, context.Cause(ctx)
		}
		return deny(err.Error(), err)
	}
	a := arguments{mode: d.Mode, json: canonical, timeout: policy.Timeout, module: d.Module, outputs: slices.Clone(d.Outputs)}
	if d.Timeout > 0 {
		a.timeout = min(a.timeout, d.Timeout)
	}
	if a.words, a.stdin, err = lower(d, canonical); err != nil {
		return deny(err.Error(), err)
	}
	// The path of each input stands in the script's sight, so its rules are those
	// of a skill's files.
	a.inputs, err = bundle.New(call.Inputs, nil, bundle.Limits{FileBytes: policy.MaxInputs, TotalBytes: policy.MaxInputs})
	if err != nil {
		return deny("an input file is too large or has a name that cannot be used.", fmt.Errorf("inputs: %w", err))
	}
	return a, nil
}

// commitment ties the arguments to the log without showing them: it is
// SHA-256(salt, JSON). Whoever holds the salt and the text can prove them; when
// the salt is erased nobody can guess them.
func (a arguments) commitment() bundle.Digest {
	return sha256.Sum256(append(a.salt[:], a.json...))
}

// inputsCommitment is the same for the input files, by the digest of their
// bundle; "" where there are none.
func (a arguments) inputsCommitment() string {
	if files, _ := a.inputs.Size(); files == 0 {
		return ""
	}
	return bundle.Sum(fmt.Append(a.salt[:], "inputs ", a.inputs.Digest())).String()
}
