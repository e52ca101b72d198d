package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/instance"
)

// InstancesFolder is where in the data folder the processes that run scripts
// have their files.
const InstancesFolder = "instances"

// enter makes this process an instance, after it has closed what dead ones left.
func (h *House) enter(ctx context.Context) (err error) {
	if h.instance != nil {
		return nil
	}
	if err := h.join(ctx); err != nil {
		return err
	}
	tip, err := h.Store.Tip(ctx)
	if err != nil {
		return err
	}
	h.instance, err = instance.Start(ctx, filepath.Join(h.Config.Data, InstancesFolder), h.id, tip.Size(), h.buryLocal, h.settle)
	if err == nil {
		h.Log.KeepCounts(h.instance)
	}
	return err
}

// bury closes what one dead process left.
func (h *House) bury(ctx context.Context, d instance.Dead) error {
	n, err := tracon.Recover(ctx, h.Log, h.Store, tracon.Dead{Instance: d.ID, From: d.About.Size, Counted: d.Counted})
	if err != nil {
		return err
	}
	if n > 0 {
		h.logger.Warn("calls of a process that died were closed as unknown", "instance", d.ID, "pid", d.About.PID, "calls", n)
	}
	if err := h.freeKeys(ctx, d.ID, d.About.Size); err != nil || d.Damaged == 0 {
		return err
	}
	_, err = h.Log.Append(ctx, audit.Entry{Tenant: gate.HostTenant, Kind: audit.Keeping, Subject: "counts lost", Count: uint64(d.Damaged), Facts: audit.Facts(
		"instance", d.ID, "reason", fmt.Sprintf("%d counts of refusals alike to earlier ones were damaged when the host went down", d.Damaged))})
	return err
}

// leave takes this process out of the instances. Where the ending of a call could
// not be written it stays among them, as one that has died.
func (h *House) leave(ctx context.Context, failed bool) error {
	// A store that takes no more changes may have kept an admission that nobody was told of.
	left := failed || h.runner != nil && (h.runner.Stats().Unwritten > 0 || h.Store.Ready(ctx) != nil)
	var err error
	if h.instance != nil {
		err = h.instance.Close(ctx, left)
	}
	if h.host != nil {
		err = errors.Join(err, h.host.Close(ctx, left))
	}
	return err
}
