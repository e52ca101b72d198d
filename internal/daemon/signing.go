package daemon

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/witness"
	"github.com/tracon-go/tracon/store/postgres"
)

// DefaultCheckpointInterval is how often a process that runs scripts signs the log.
const DefaultCheckpointInterval = time.Minute

// signTime is how long signing may take, witnesses included.
const signTime = 2 * time.Minute

func (h *House) notary(use Use) (*notary.Notary, error) {
	c := h.Config
	var witnesses []notary.Witness
	for _, text := range c.Witnesses {
		w, err := witness.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("configuration: witnesses: %w", err)
		}
		witnesses = append(witnesses, w)
	}
	if c.WitnessQuorum > len(witnesses) {
		return nil, fmt.Errorf("configuration: witness_quorum is %d, and there are %d witnesses", c.WitnessQuorum, len(witnesses))
	}
	_, shared := h.Store.(*postgres.Store)
	return notary.New(notary.Config{
		Log: h.Log, Data: c.Data, Second: c.Checkpoints, State: c.State, Tenant: gate.HostTenant, Logger: h.logger,
		Witnesses: witnesses, Quorum: c.WitnessQuorum, Shared: shared, StateRequired: c.Given("state"), ReadOnly: use < Change,
	})
}

// signByTheClock signs the log now and then, where it grew, until what it returns
// is called. Each run's receipt signs too, so this is for what else is written.
func (h *House) signByTheClock() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(cmp.Or(h.Config.CheckpointInterval, DefaultCheckpointInterval))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if _, err := h.Notary.Checkpoint(ctx); err != nil && ctx.Err() == nil {
					h.logger.Error("the log could not be signed", "err", err)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// signLast signs what this process has written. What was written stands, so that
// it could not be signed is told and fails nothing.
func (h *House) signLast(ctx context.Context) {
	if h.signing != nil {
		h.signing()
	}
	if !h.Log.Written() {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), signTime)
	defer stop()
	if _, err := h.Notary.Checkpoint(ctx); err != nil {
		h.logger.Error("the log could not be signed", "err", err)
	}
}
