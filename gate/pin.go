package gate

import (
	"errors"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
)

// pinned proves that the content is the very one that the grant pins.
type pinned struct {
	content
	grant grant.Grant
}

// pin is the gate "pin" (R10, B1).
func (h held) pin(c content) (pinned, error) {
	if h.safeName != c.safeName {
		return pinned{}, errors.New("gate: the content is that of another script")
	}
	if err := samePin(h.grant, c.bundle.Digest()); err != nil {
		return pinned{}, err
	}
	return pinned{c, h.grant}, nil
}

// samePin compares. Its error names the granted digest only: who learns the new
// one from a refusal could grant it unseen.
func samePin(g grant.Grant, found bundle.Digest) error {
	if found.IsZero() || g.Pin != found {
		return &Denial{Gate: PinGate, Err: &PinError{Grant: g},
			Remedy: "look at the difference, then grant the new content"}
	}
	return nil
}

// A PinError says that the content is not the one that Grant pins.
type PinError struct{ Grant grant.Grant }

func (e *PinError) Error() string {
	return "the skill's bytes are not those that grant " + e.Grant.ID + " pins (" + e.Grant.Pin.String() + ")"
}
