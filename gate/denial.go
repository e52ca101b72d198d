package gate

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Name is that of a gate, and the code of its refusal.
type Name string

// The gates, in their order. The set is closed.
const (
	SwitchGate      Name = "switch"      // the host's switch and the tenant's are on
	NameGate        Name = "name"        // skill and script are known, by exact bytes
	GrantGate       Name = "grant"       // the tenant has a grant in force
	ContentGate     Name = "content"     // the skill's bytes are within limits
	PinGate         Name = "pin"         // they are the very bytes that were granted
	InterpreterGate Name = "interpreter" // the allow-list has what runs the script
	TierGate        Name = "tier"        // the executor stands as high as asked, with the walls that are
	ArgumentsGate   Name = "arguments"   // they are small enough, strict JSON, valid by the schema
)

// Names returns all gates in their order.
func Names() []Name {
	return []Name{SwitchGate, NameGate, GrantGate, ContentGate, PinGate, InterpreterGate, TierGate, ArgumentsGate}
}

// ErrDenied is wrapped by every refusal of a gate.
var ErrDenied = errors.New("gate: denied")

// A Denial says which gate refused and why. Its text is for the operator; a
// model gets [Denial.ModelText].
type Denial struct {
	Gate   Name
	Err    error  // why; never shown to a model
	Remedy string // what the operator can do
	model  string // for a model, where the reason lies in what it sent itself
}

// Error returns the operator's text.
func (d *Denial) Error() string { return fmt.Sprintf("refused by gate %s: %v", d.Gate, d.Err) }

// Unwrap returns ErrDenied and the reason.
func (d *Denial) Unwrap() []error { return []error{ErrDenied, d.Err} }

// ModelText returns one line that helps a model to do better and tells it
// nothing about the host, the grant or the content.
func (d *Denial) ModelText() string {
	switch d.Gate {
	case SwitchGate:
		return "Scripts are switched off. Ask the operator to switch them on."
	case NameGate:
		return "There is no such skill or script. Use the exact name of a listed one."
	case GrantGate:
		return "This script is not granted. Ask the operator for a grant."
	case ContentGate:
		return "The skill's files cannot be used as they are. Ask the operator to look at the skill."
	case PinGate:
		return "The skill has changed since it was approved. Ask the operator to review it."
	case InterpreterGate:
		return "Scripts of this kind are not allowed here. Use another script, or ask the operator."
	case TierGate:
		return "This host cannot isolate the script as strongly as its grant asks. Ask the operator."
	case ArgumentsGate:
		return "The arguments do not fit: " + oneLine(d.model)
	}
	return "Refused."
}

// MaxModelText is the most bytes of a reason that a model is told.
const MaxModelText = 1024

// oneLine returns s without control and direction characters, cut to what a
// model is told. The reason quotes what the model sent, of whatever length.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= MaxModelText {
		return s
	}
	cut := MaxModelText
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
