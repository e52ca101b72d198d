package daemon

import (
	"context"
	"time"

	"github.com/tracon-go/tracon/retention"
)

// Rules returns how long what is kept beside the log stays, as the configuration says.
func (h *House) Rules() retention.Rules {
	return retention.Rules{Contents: h.Config.KeepContents, Calls: h.Config.KeepCalls, Details: h.Config.KeepDetails}
}

// Expired counts what the rules would take away now.
func (h *House) Expired(ctx context.Context, r retention.Rules) (retention.Erasure, error) {
	return retention.Preview(ctx, h.Store, r, time.Now())
}

// Erase takes away what the rules say now; see [retention.Apply].
func (h *House) Erase(ctx context.Context, actor string, r retention.Rules) (retention.Erasure, error) {
	return retention.Apply(ctx, h.Store, h.Log, actor, r, time.Now())
}

// DeleteTenant deletes the tenant of d, over this house; with preview it only
// counts. See [retention.DeleteTenant].
func (h *House) DeleteTenant(ctx context.Context, d retention.Deleting, preview bool) (retention.Deletion, error) {
	d.Admin, d.Store, d.Log = h.Admin, h.Store, h.Log
	if preview {
		return retention.PreviewTenant(ctx, d)
	}
	return retention.DeleteTenant(ctx, d)
}
