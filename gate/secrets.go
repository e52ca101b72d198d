package gate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/tracon-go/tracon/internal/mask"
)

// LeastSecret is how many bytes a secret has at least: masking a shorter one would eat
// ordinary text.
const LeastSecret = mask.Least

// hidden is what a value that is not told looks like.
var hidden = regexp.MustCompile(`^\[secret [A-Z0-9_]*\]$`)

// HideSecrets returns p with the values of its secrets hidden, for whoever looks at it.
// Written back it is refused.
func HideSecrets(p Policy) Policy {
	if len(p.Secrets) == 0 {
		return p
	}
	shown := map[string]string{}
	for name, value := range p.Environment {
		if slices.Contains(p.Secrets, name) {
			value = mask.Label(name)
		}
		shown[name] = value
	}
	p.Environment = shown
	return p
}

// Unset takes the variable of that name away, and its mark as a secret.
func (p *Policy) Unset(name string) {
	delete(p.Environment, name)
	p.Secrets = slices.DeleteFunc(slices.Clone(p.Secrets), func(s string) bool { return s == name })
}

// checkSecrets says what in the list of secrets cannot hold, or nil.
func (p Policy) checkSecrets() error {
	var errs []error
	seen := map[string]bool{}
	for _, name := range p.Secrets {
		value, ok := p.Environment[name]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("%w: the secret %.64q is no variable of the environment; set it first", ErrPolicy, name))
		case seen[name]:
			errs = append(errs, fmt.Errorf("%w: the secret %s is named twice", ErrPolicy, name))
		case len(value) < LeastSecret:
			errs = append(errs, fmt.Errorf("%w: the value of the secret %s has %d bytes; it needs %d, as masking a shorter one would eat ordinary text",
				ErrPolicy, name, len(value), LeastSecret))
		case hidden.MatchString(value):
			errs = append(errs, fmt.Errorf("%w: the value of the secret %s is what stands for a hidden one; write the value itself", ErrPolicy, name))
		}
		seen[name] = true
	}
	return errors.Join(errs...)
}

// masker returns what masks p's secrets, and keys.
func (p Policy) masker() *mask.Masker {
	values := map[string]string{}
	for _, name := range p.Secrets {
		values[name] = p.Environment[name]
	}
	return mask.New(values)
}

// masked is err, a refusal perhaps, without p's secrets in its words: a reason may quote
// what was sent.
func masked(p Policy, err error) error {
	d, ok := errors.AsType[*Denial](err)
	if !ok {
		return err
	}
	m := p.masker()
	plain := d.Err.Error()
	text := m.Text(plain)
	if model := m.Text(d.model); text != plain || model != d.model {
		return &Denial{d.Gate, &maskedError{text, d.Err}, d.Remedy, model}
	}
	return err
}

// A maskedError is an error in other words.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }
