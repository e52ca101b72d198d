package notary

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tracon-go/tracon/audit"
)

// cosign adds the signatures of the witnesses to c. The error ErrQuorum comes
// with the checkpoint: it stands, signed by fewer. ErrLoss means that a witness
// has seen another log than this one.
func (n *Notary) cosign(ctx context.Context, c audit.Checkpoint) (audit.Checkpoint, error) {
	for _, w := range n.c.Witnesses {
		line, err := w.Cosign(ctx, c, func(before uint64) ([]audit.Hash, error) {
			return n.tree.consistency(ctx, before, c.Tree)
		})
		if errors.Is(err, audit.ErrBroken) {
			return c, fmt.Errorf("%w: %w", ErrLoss, err)
		}
		if err != nil {
			n.c.Logger.Warn("a witness has not cosigned", "witness", w.Name(), "size", c.Tree.Size, "err", err)
			continue
		}
		if !w.Cosigned(c.Note) {
			c.Note = append(bytes.Clone(c.Note), line...)
		}
	}
	if has := n.cosigned(c); has < n.c.Quorum {
		return c, fmt.Errorf("%w: %d of %d, and %d are wanted", ErrQuorum, has, len(n.c.Witnesses), n.c.Quorum)
	}
	return c, nil
}

// cosigned counts the witnesses whose signature stands on c.
func (n *Notary) cosigned(c audit.Checkpoint) int {
	has := 0
	for _, w := range n.c.Witnesses {
		if w.Cosigned(c.Note) {
			has++
		}
	}
	return has
}
