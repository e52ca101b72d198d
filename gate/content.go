package gate

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracon-go/tracon/bundle"
)

// content proves that the skill's bytes were read once, whole and within
// limits. These very bytes are hashed, staged and run; nothing is read again.
type content struct {
	safeName
	bundle bundle.Bundle
}

// content is the gate "content" (R15).
func (o open) content(ctx context.Context, from Contents, h held) (content, error) {
	b, err := read(ctx, from, o.host.Content, o.tenant, h.skill, h.script)
	if err != nil {
		return content{}, err
	}
	return content{h.safeName, b}, nil
}

func read(ctx context.Context, from Contents, limits bundle.Limits, tenant, skill, script string) (bundle.Bundle, error) {
	deny := func(err error) (bundle.Bundle, error) {
		return bundle.Bundle{}, &Denial{Gate: ContentGate, Err: err, Remedy: "mend the skill's files, or raise the host's limit"}
	}
	b, err := from.Read(ctx, tenant, skill, limits)
	switch {
	case errors.Is(err, bundle.ErrContent), errors.Is(err, ErrUnknown):
		return deny(err)
	case err != nil:
		return bundle.Bundle{}, fmt.Errorf("gate: reading the skill: %w", err)
	}
	if err := b.Within(limits); err != nil {
		return deny(err)
	}
	if _, _, ok := b.Text(script); !ok {
		return deny(fmt.Errorf("the skill's files have no %q", script))
	}
	return b, nil
}
