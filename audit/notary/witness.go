package notary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tracon-go/tracon/audit"
)

// A Witness cosigns checkpoints that go on from the last one that it saw.
type Witness interface {
	// Name returns the witness's name.
	Name() string

	// Cosigned reports whether the witness has signed that note.
	Cosigned(note []byte) bool

	// Cosign returns the lines of the witness's signature of c, made now. Prove shows
	// that c goes on from the tree of a smaller size. An error that is an [Objection]
	// means that the witness has seen more entries, or others.
	Cosign(ctx context.Context, c audit.Checkpoint, prove func(before uint64) ([]audit.Hash, error)) ([]byte, error)
}

// An Objection is the error of a witness that has seen another log. What it says is
// not signed: by itself it is a hint, as whoever is on the way could give it.
type Objection interface {
	error

	// Shows returns the last checkpoint of the log that the witness cosigned, which
	// proves what it says; nil where it does not show it.
	Shows() []byte
}

// An Answer is what one witness says of the log.
type Answer struct {
	Witness string `json:"witness"`
	OK      bool   `json:"ok"`      // it has cosigned the log as it is, now
	Objects bool   `json:"objects"` // it says that it has seen another log; a hint, where it proves nothing
	Detail  string `json:"detail"`  // why it has not; for the operator
}

// asked is what came of asking the witnesses.
type asked struct {
	c       audit.Checkpoint // with the signatures that they gave
	answers []Answer
	shown   []audit.Checkpoint // that they cosigned before
}

// ask has every witness look at c now.
//
// # Errors
//
// ErrLoss where a witness proves that it has seen another log; ErrQuorum where fewer
// than the quorum have cosigned. Both come with what was answered.
func (n *Notary) ask(ctx context.Context, c audit.Checkpoint) (a asked, err error) {
	a.c = c
	var lost, why error
	has := 0
	for _, w := range n.c.Witnesses {
		line, err := w.Cosign(ctx, c, func(before uint64) ([]audit.Hash, error) {
			return n.tree.consistency(ctx, before, c.Tree)
		})
		o, objects := errors.AsType[Objection](err)
		if objects {
			shown, fits := n.proves(ctx, w, c.Origin, o.Shows())
			if !shown.IsZero() {
				a.shown = append(a.shown, shown)
			}
			if errors.Is(fits, audit.ErrBroken) {
				err = fmt.Errorf("the witness %s has seen another log: %w", w.Name(), fits)
				lost = errors.Join(lost, fmt.Errorf("%w: %w", ErrLoss, err))
			}
		}
		answer := Answer{Witness: w.Name(), OK: err == nil, Objects: objects}
		if err != nil {
			answer.Detail = err.Error()
			why = errors.Join(why, err)
		} else if has++; !w.Cosigned(a.c.Note) {
			a.c.Note = append(bytes.Clone(a.c.Note), line...)
		}
		a.answers = append(a.answers, answer)
	}
	switch {
	case lost != nil:
		return a, lost
	case has < n.c.Quorum:
		return a, fmt.Errorf("%w: %d of %d, and %d are wanted: %w", ErrQuorum, has, len(n.c.Witnesses), n.c.Quorum, why)
	}
	return a, nil
}

// proves returns the checkpoint of the log that w cosigned, the zero one where note
// is none, and whether the log goes on from it.
func (n *Notary) proves(ctx context.Context, w Witness, origin string, note []byte) (audit.Checkpoint, error) {
	c, err := audit.ParseCheckpoint(note)
	if err != nil || c.Origin != origin || !w.Cosigned(note) {
		return audit.Checkpoint{}, nil
	}
	return c, n.Fits(ctx, c)
}

// cosign has the witnesses look at c, which it returns with their signatures. Those
// count that were made now: what stands on a checkpoint that was kept tells nothing
// of who has written to the log since. The error ErrQuorum comes with the
// checkpoint: it stands, signed by fewer.
func (n *Notary) cosign(ctx context.Context, c audit.Checkpoint) (audit.Checkpoint, error) {
	a, err := n.ask(ctx, c)
	for _, w := range a.answers {
		if !w.OK {
			level := slog.LevelWarn
			if w.Objects {
				level = slog.LevelError
			}
			n.c.Logger.Log(ctx, level, "a witness has not cosigned", "witness", w.Witness, "size", c.Tree.Size, "err", w.Detail)
		}
	}
	if err == nil {
		n.counted = c.Tree
	}
	return a.c, err
}

// Ask has every witness look at the newest checkpoint in the data folder, and keeps
// nothing. There is nothing to ask where nobody has signed yet.
//
// # Errors
//
// ErrLoss where a witness proves that it has seen another log; ErrQuorum where fewer
// than the quorum have cosigned. Both come with the answers.
func (n *Notary) Ask(ctx context.Context) ([]Answer, error) {
	if len(n.c.Witnesses) == 0 {
		return nil, nil
	}
	c, err := n.newestSigned()
	if err != nil || c.IsZero() {
		return nil, err
	}
	a, err := n.ask(ctx, c)
	return a.answers, err
}
