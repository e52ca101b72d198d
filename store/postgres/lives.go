package postgres

import (
	"context"
	"fmt"
)

// Lives reports whether the host of that id has joined, and its lease has not
// expired. For one that left, was closed, or never joined it is false.
func (s *Store) Lives(ctx context.Context, id string) (lives bool, err error) {
	return s.ask(ctx, `SELECT EXISTS (SELECT 1 FROM host_instance WHERE id = $1 AND fenced = 0 AND expires > `+now+`)`, id)
}

// Joined reports whether the host of that id has joined, and neither left nor was
// closed, whatever its lease: what it admitted is its own, or that of whoever closes it.
func (s *Store) Joined(ctx context.Context, id string) (bool, error) {
	return s.ask(ctx, `SELECT EXISTS (SELECT 1 FROM host_instance WHERE id = $1)`, id)
}

func (s *Store) ask(ctx context.Context, query, id string) (is bool, err error) {
	db := s.d.connect(1, nil)
	defer func() { _ = db.Close() }()
	err = db.QueryRowContext(ctx, query, id).Scan(&is)
	if err != nil {
		return false, fmt.Errorf("store: looking for a host: %w", s.d.explain(err))
	}
	return is, nil
}
