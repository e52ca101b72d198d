package idempotency

import (
	"context"
	"errors"
)

// Recover settles what the keys stand for that a process began and did not finish,
// and which has died: it changes nothing any more. Admitted reports whether a call
// stands in the log as admitted. Where it does not, the call was never run, and its
// key is free; where it does, the call may have run, and its key is done without an
// answer. It may be repeated, and by several at once.
//
// It returns how many keys it freed, and how many it closed. A key that cannot be
// settled stays as it is, so nothing runs under it, and the error tells of it.
func Recover(ctx context.Context, s Store, instance Instance, admitted func(ctx context.Context, tenant, run string) (bool, error)) (freed, closed int, err error) {
	for {
		left, err := s.Left(ctx, instance, 0)
		if err != nil {
			return freed, closed, err
		}
		var amiss error
		before := freed + closed
		for _, c := range left {
			was, err := admitted(ctx, c.Tenant, c.Run)
			if err != nil {
				return freed, closed, err
			}
			settle, n := s.Drop, &freed
			if was {
				settle, n = func(ctx context.Context, tenant, key, run string) error { return s.Finish(ctx, tenant, key, run, nil) }, &closed
			}
			switch err := settle(ctx, c.Tenant, c.Key, c.Run); {
			case err == nil:
				*n++
			case !errors.Is(err, ErrGone): // else somebody settled it meanwhile
				amiss = errors.Join(amiss, err)
			}
		}
		if len(left) < DefaultSweep || freed+closed == before {
			return freed, closed, amiss
		}
	}
}
