package tracon

import (
	"context"
	"errors"
	"time"

	"github.com/tracon-go/tracon/audit"
)

// Receipts makes receipts. It must be safe for concurrent use.
type Receipts interface {
	// Prove returns the receipt of the entry at index in the log: with it, its
	// holder can prove the entry to anybody, whatever becomes of the log.
	Prove(ctx context.Context, index uint64) (audit.Proof, error)
}

// receiptTime is how long a call that has ended waits for its receipt.
const receiptTime = time.Minute

// cancelledTime is how long one waits for it who has cancelled the call, and wants to
// be told at once: in general it is there in milliseconds.
const cancelledTime = 2 * time.Second

// prove adds the receipt of the admission to what the caller gets, whatever came of
// the call. The call has been recorded, so where there is none it says so and no more:
// the outcome names the admission, and its receipt can be had by that.
func (r *Runner) prove(ctx context.Context, j *job, out Outcome, err error) Outcome {
	if r.receipts == nil {
		return out
	}
	limit := receiptTime
	if errors.Is(err, ErrCancelled) {
		limit = cancelledTime
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer stop()
	proof, err := r.receipts.Prove(ctx, j.req.Receipt().Index())
	if err != nil {
		r.log.Error("a call has no receipt", "run", j.req, "err", err)
		out.Notes = append(out.Notes, "there is no signed receipt for this call; the operator's log says why")
		return out
	}
	out.Proof = proof // of a call that failed too
	return out
}
