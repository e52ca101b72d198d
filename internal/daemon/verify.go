package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
)

// Against says what a log is compared with, besides itself.
type Against struct {
	Key   audit.PublicKey // that signed first, and somebody must keep a checkpoint by it; empty: the one in the data folder
	Files []string        // of checkpoints that were kept elsewhere
	Alone bool            // with what lies in the data folder and Files only, and no witness is asked: it is a copy, or an old backup
}

// VerifyLog computes the log again and compares it with what was signed, and asks the
// witnesses: see [House.Witnesses]. Progress is called with the number of entries
// done, now and then.
//
// # Errors
//
// Those of [audit.Log.VerifyClaims]; audit.ErrRolledBack for a log without a key that
// had one; audit.ErrMissing for a checkpoint that is
// gone from the data folder; notary.ErrPlace for the second folder, where it cannot be
// read; notary.ErrQuorum where too few witnesses vouch for the log.
func (h *House) VerifyLog(ctx context.Context, a Against, progress func(uint64)) (audit.Verified, error) {
	v, err := h.verifyLog(ctx, a, progress)
	if err == nil && !a.Alone {
		var answers []notary.Answer
		answers, err = h.Notary.Ask(ctx)
		h.answers.Store(&answers)
		for _, w := range answers {
			if !w.OK && err == nil {
				h.logger.Error("a witness has not vouched for the log", "witness", w.Witness, "err", w.Detail)
			}
		}
	}
	if err == nil && h.gone {
		err = fmt.Errorf("%w: the database %s is gone, and there are checkpoints beside it", audit.ErrRolledBack, h.Where)
	}
	return v, err
}

// Witnesses returns what each witness said to the last VerifyLog.
func (h *House) Witnesses() []notary.Answer {
	if last := h.answers.Load(); last != nil {
		return *last
	}
	return nil
}

func (h *House) verifyLog(ctx context.Context, a Against, progress func(uint64)) (audit.Verified, error) {
	keys, err := h.Notary.Keys()
	if err != nil {
		return audit.Verified{}, err
	}
	if a.Key != "" {
		keys = append([]audit.PublicKey{a.Key}, keys...)
	}
	if len(keys) == 0 {
		tree, err := h.Log.Verify(ctx, progress)
		if err == nil && !a.Alone { // the log may name keys whatever is here
			err = h.Notary.Others(ctx)
		}
		if err == nil && tree.Size > 0 {
			err = fmt.Errorf("%w: it has %d entries, and the data folder has no key of it", audit.ErrUnsigned, tree.Size)
		}
		if err == nil && !a.Alone {
			var signed bool
			if signed, err = h.neverSigned(ctx); signed {
				return h.verifyLog(ctx, a, progress)
			}
		}
		return audit.Verified{Tree: tree}, err
	}
	keepers := []audit.Claims{h.Notary.Here()}
	if !a.Alone {
		all, err := h.Notary.Claims()
		if err != nil {
			return audit.Verified{}, err
		}
		keepers = all
	}
	for _, file := range a.Files {
		keepers = append(keepers, notary.Claims(file, file))
	}
	v, err := h.Log.VerifyClaims(ctx, keys, progress, keepers...)
	if err == nil && a.Key != "" && v.Claims == 0 { // a log without entries too: another one may have had some
		err = fmt.Errorf("%w: nobody keeps a checkpoint by the key %s", audit.ErrUnsigned, a.Key)
	}
	if err == nil && !a.Alone {
		err = h.Notary.Missing(ctx)
	}
	if err == nil && !a.Alone {
		err = h.Notary.Others(ctx)
	}
	return v, err
}

// neverSigned says what tells that a log without a key was signed before: then it is not
// one in which nothing ran yet, but what is left after the rest was taken away. Signed is
// true where another process made its first key meanwhile.
func (h *House) neverSigned(ctx context.Context) (signed bool, err error) {
	err = h.Notary.Before(ctx)
	if !errors.Is(err, notary.ErrKey) {
		return false, err
	}
	if keys, again := h.Notary.Keys(); again == nil && len(keys) > 0 {
		return true, nil
	}
	return false, fmt.Errorf("%w: %w", audit.ErrRolledBack, err)
}
