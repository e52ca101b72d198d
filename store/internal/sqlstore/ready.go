package sqlstore

import (
	"context"
	"fmt"

	"github.com/tracon-go/tracon/store"
)

// Ready implements [audit.Sink]. After a failure to write it returns that
// failure, for as long as the store is open; see store.ErrPoisoned. Before one
// it finds what the next change would: that the check before each commit fails,
// or that the head of the log cannot be read.
func (s *Store) Ready(ctx context.Context) error {
	select {
	case <-s.closing:
		if ctx.Err() == nil {
			return store.ErrClosed
		}
	default:
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p := s.poison.Load(); p != nil {
		return p.err
	}
	if s.check != nil {
		if err := s.check(); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	_, err := s.Tip(ctx)
	return err
}
