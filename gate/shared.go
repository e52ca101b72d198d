package gate

import (
	"context"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/turns"
)

// readers is how many contents are read at once, half of them for one tenant. Each
// may be as large as the host's limit allows (32 MiB by default).
const readers = 8

// shared bounds what contents cost in memory: few are read at once, and equal ones
// are kept once, however many calls wait with them. What it gives was read from
// the source for this very call, hashed, and found equal to what it is replaced by.
type shared struct {
	Contents
	turns *turns.Turns
	pool  bundle.Pool
}

func share(c Contents) *shared { return &shared{Contents: c, turns: turns.New(readers)} }

// Read implements [Contents].
func (s *shared) Read(ctx context.Context, tenant, skill string, l bundle.Limits) (bundle.Bundle, error) {
	leave, err := s.turns.Take(ctx, tenant)
	if err != nil {
		return bundle.Bundle{}, err
	}
	defer leave()
	b, err := s.Contents.Read(ctx, tenant, skill, l)
	return s.pool.Share(b), err
}
