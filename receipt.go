package tracon

import (
	"context"
	"errors"
	"sync"
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

// proofPause is how long what was delivered waits before the log is signed on past it:
// the answer leaves first, and what ends meanwhile is covered by the same signature.
const proofPause = 50 * time.Millisecond

// later is the making of receipts that nobody waits for, one at a time.
type later struct {
	mu    sync.Mutex
	busy  bool
	due   bool   // one is to be made
	index uint64 // of the newest admission
}

// proveLater has the log signed on past the call's entries: a receipt is made, and
// nobody gets it. What ends while one is made is covered by the next, together.
func (r *Runner) proveLater(_ context.Context, j *job, out Outcome, _ error) Outcome {
	if r.receipts == nil {
		return out
	}
	l := &r.later
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due, l.index = true, max(l.index, j.req.Receipt().Index())
	if !l.busy {
		l.busy = true
		r.out.Go(r.provesLater)
	}
	return out
}

func (r *Runner) provesLater() {
	for {
		select {
		case <-time.After(proofPause):
		case <-r.base.Done(): // told to hurry
		}
		index, due := r.later.next()
		if !due {
			return
		}
		ctx, stop := context.WithTimeout(context.Background(), receiptTime)
		if _, err := r.receipts.Prove(ctx, index); err != nil {
			r.log.Error("the log was not signed on behind a delivered call", "err", err)
		}
		stop()
	}
}

// next returns the admission to cover, and false where all are.
func (l *later) next() (index uint64, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	due, l.due = l.due, false
	l.busy = due
	return l.index, due
}
