package daemon

import (
	"context"
	"errors"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/store"
)

// freeKeys settles what clients' keys stand for that a dead process began, behind
// its last entry: size is one of the log from before it started.
func (h *House) freeKeys(ctx context.Context, id string, size uint64) error {
	var runs map[[2]string]bool // admitted by it, by tenant and run
	return h.settleKeys(ctx, idempotency.Instance(id), func(ctx context.Context, tenant, run string) (bool, error) {
		if runs == nil {
			found := map[[2]string]bool{}
			for leaf, err := range h.Log.Entries(ctx, "", size) {
				if err != nil {
					return false, err
				}
				if e := leaf.Entry; e.Kind == audit.Admission {
					found[[2]string{e.Tenant, e.Run}] = true
				}
			}
			runs = found
		}
		return runs[[2]string{tenant, run}], nil
	})
}

// closeKeys settles what processes began of which nobody is known. Their calls may
// stand in a part of the log that is lost, so none of the keys is free.
func (h *House) closeKeys(ctx context.Context) error {
	may := func(context.Context, string, string) (bool, error) { return true, nil }
	for id := idempotency.Instance(""); ; {
		var err error
		if id, err = h.Store.Beginner(ctx, id); err != nil || id == "" {
			return err
		}
		is, err := h.known(ctx, string(id))
		if err == nil && !is {
			err = h.settleKeys(ctx, id, may)
		}
		if err != nil {
			return err
		}
	}
}

// settleKeys leaves alone what is damaged: nothing runs under such a key.
func (h *House) settleKeys(ctx context.Context, id idempotency.Instance, admitted func(context.Context, string, string) (bool, error)) error {
	freed, closed, err := idempotency.Recover(ctx, h.Store, id, admitted)
	if freed+closed > 0 {
		h.logger.Warn("keys of calls that a process began and did not finish were settled", "instance", id, "free", freed, "unknown", closed)
	}
	if errors.Is(err, store.ErrCorrupt) {
		h.logger.Error("a key of a call that a process began is damaged; nothing runs under it until its time is over", "instance", id, "err", err)
		return nil
	}
	return err
}
