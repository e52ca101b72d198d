package daemon

import (
	"context"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/internal/instance"
	"github.com/tracon-go/tracon/slot"
	"github.com/tracon-go/tracon/store/postgres"
)

// join makes this process one of the hosts, where the store is one that several
// share. There a process is dead when its lease has expired; see [House.buryHost].
func (h *House) join(ctx context.Context) (err error) {
	st, ok := h.Store.(*postgres.Store)
	if !ok || h.host != nil {
		return nil
	}
	c := h.Config
	h.host, err = st.Join(ctx, postgres.HostOptions{
		ID: h.id, Lease: c.Lease, Bury: h.buryHost, Logger: h.logger,
		Limits: slot.Limits{Slots: c.Slots, SlotsPerTenant: c.SlotsPerTenant, Queue: c.Queue, QueuePerTenant: c.QueuePerTenant},
	})
	return err
}

// pool returns what bounds the runs of all hosts, and nil where this is the only one.
func (h *House) pool() slot.Pool {
	if h.host == nil {
		return nil
	}
	return h.host
}

// buryHost closes what a host left that gave no sign of life.
func (h *House) buryHost(ctx context.Context, d postgres.Dead) error {
	n, err := tracon.Recover(ctx, h.Log, h.Store, tracon.Dead{Instance: d.ID, From: d.Size})
	if err == nil {
		err = h.freeKeys(ctx, d.ID, d.Size)
	}
	if err == nil {
		h.logger.Warn("a host gave no sign of life; its calls were closed as unknown", "instance", d.ID, "calls", n)
	}
	return err
}

// buryLocal closes what a process of this machine left. Its lock is free, so its lease
// is not waited for.
func (h *House) buryLocal(ctx context.Context, d instance.Dead) error {
	if h.host == nil {
		return h.bury(ctx, d)
	}
	return h.host.Bury(ctx, d.ID, func(ctx context.Context) error { return h.bury(ctx, d) })
}
