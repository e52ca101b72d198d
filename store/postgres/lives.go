package postgres

import (
	"context"
	"fmt"
)

// Lives reports whether the host of that id has joined, and its lease has not
// expired. For one that left, was closed, or never joined it is false.
func (s *Store) Lives(ctx context.Context, id string) (lives bool, err error) {
	db := s.d.connect(1, nil)
	defer func() { _ = db.Close() }()
	err = db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM host_instance WHERE id = $1 AND fenced = 0 AND expires > `+now+`)`, id).Scan(&lives)
	if err != nil {
		return false, fmt.Errorf("store: looking for a host: %w", s.d.explain(err))
	}
	return lives, nil
}
