package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/store/internal/keep"
)

// A claim is what a key stands for.
type claim struct {
	idempotency.Claim
	done, large bool
	answer      []byte // nil: none was kept
}

func (c claim) values() []any {
	all := []any{c.Tenant, c.Key, c.Body[:], c.Run, c.At.UnixMicro(), c.done, c.large, blob(c.answer)}
	if c.Instance != "" { // the rows from before there was one have a sum without it
		all = append(all, string(c.Instance))
	}
	return all
}

// claim returns what the tenant's key stands for, or sql.ErrNoRows.
func (w *writer) claim(ctx context.Context, tenant, key string) (claim, error) {
	c := claim{Claim: idempotency.Claim{Tenant: tenant, Key: key}}
	var body, kept []byte
	var begun int64
	err := w.do[claimAt].QueryRowContext(ctx, tenant, key).Scan(&body, &c.Run, &begun, &c.done, &c.large, &c.answer, &c.Instance, &kept)
	if err != nil {
		return claim{}, err
	}
	if len(body) != len(c.Body) {
		return claim{}, alone(damaged("the digest of an idempotency key of call %s", c.Run))
	}
	c.Body, c.At = bundle.Digest(body), time.UnixMicro(begun).UTC()
	if kept == nil || unlike(kept, c.values()...) {
		return claim{}, alone(damaged("an idempotency key of call %s was changed where it is kept", c.Run))
	}
	return c, nil
}

func (w *writer) setClaim(ctx context.Context, c claim) error {
	_, err := w.do[setClaim].ExecContext(ctx, c.Tenant, c.Key, c.Body[:], c.Run, c.At.UnixMicro(), number(c.done), number(c.large), c.answer, c.Instance, sum(c.values()...))
	return err
}

// Begin implements [idempotency.Store].
func (s *Store) Begin(ctx context.Context, c idempotency.Claim) (f idempotency.Found, err error) {
	if err := c.Validate(); err != nil {
		return f, err
	}
	c.At = keep.Time(c.At)
	begin := func(ctx context.Context, w *writer) error {
		was, err := w.claim(ctx, c.Tenant, c.Key)
		if errors.Is(err, sql.ErrNoRows) || err == nil && c.At.Sub(was.At) >= idempotency.Window {
			was = claim{Claim: c}
			if err = w.setClaim(ctx, was); err == nil {
				_, err = w.do[sweepClaims].ExecContext(ctx, c.At.Add(-idempotency.Window).UnixMicro(), idempotency.SweptByBegin)
			}
		}
		if err == nil {
			f = idempotency.Judge(c, was.Claim, was.done, was.answer)
		}
		return err
	}
	if err = s.beside(ctx, begin); err != nil && s.dialect.Fault(err) == Lost && ctx.Err() == nil {
		err = s.beside(ctx, begin) // it may have been made: then the key stands for this very run
	}
	if err != nil {
		return idempotency.Found{}, err
	}
	return f, nil
}

// mine calls f with what key stands for, if it is the tenant's run and has no answer.
func (s *Store) mine(ctx context.Context, tenant, key, run string, f func(context.Context, *writer, claim) error) error {
	return s.beside(ctx, func(ctx context.Context, w *writer) error {
		c, err := w.claim(ctx, tenant, key)
		switch {
		case errors.Is(err, sql.ErrNoRows), err == nil && (c.done || c.Run != run):
			return refused{idempotency.ErrGone}
		case err != nil:
			return err
		}
		return f(ctx, w, c)
	})
}

// Finish implements [idempotency.Store].
func (s *Store) Finish(ctx context.Context, tenant, key, run string, answer []byte) error {
	kept, large := keep.Answer(answer)
	return s.mine(ctx, tenant, key, run, func(ctx context.Context, w *writer, c claim) error {
		c.done, c.large, c.answer = true, large, kept
		if large {
			var n int
			if err := w.do[largeAnswers].QueryRowContext(ctx, tenant, idempotency.MaxLarge).Scan(&n); err != nil {
				return err
			}
			if n >= idempotency.MaxLarge {
				c.large, c.answer = false, nil
			}
		}
		return w.setClaim(ctx, c)
	})
}

// Drop implements [idempotency.Store].
func (s *Store) Drop(ctx context.Context, tenant, key, run string) error {
	return s.mine(ctx, tenant, key, run, func(ctx context.Context, w *writer, _ claim) error {
		_, err := w.do[dropClaim].ExecContext(ctx, tenant, key)
		return err
	})
}

// Forget implements [idempotency.Store].
func (s *Store) Forget(ctx context.Context, tenant string) error {
	return s.beside(ctx, func(ctx context.Context, w *writer) error {
		_, err := w.do[forgetClaims].ExecContext(ctx, tenant)
		return err
	})
}

// Sweep implements [idempotency.Store].
func (s *Store) Sweep(ctx context.Context, before time.Time, limit int) (n int, err error) {
	if limit, err = keep.Limit(limit, idempotency.DefaultSweep); err != nil {
		return 0, err
	}
	err = s.beside(ctx, func(ctx context.Context, w *writer) error {
		gone, err := affected(w.do[sweepClaims].ExecContext(ctx, before.UnixMicro(), limit))
		n = int(gone)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// Left implements [idempotency.Store].
func (s *Store) Left(ctx context.Context, instance idempotency.Instance, limit int) ([]idempotency.Claim, error) {
	limit, err := keep.Limit(limit, idempotency.DefaultSweep)
	if err != nil || instance == "" {
		return nil, err
	}
	scan := func(row scanner) (idempotency.Claim, error) {
		c := idempotency.Claim{Instance: instance}
		var begun int64
		if err := row.Scan(&c.Tenant, &c.Key, &c.Run, &begun); err != nil {
			return idempotency.Claim{}, err
		}
		c.At = time.UnixMicro(begun).UTC()
		return c, nil
	}
	return list(ctx, s, "what keys were begun", scan, leftClaims, instance, limit)
}

// Beginner implements [idempotency.Store].
func (s *Store) Beginner(ctx context.Context, after idempotency.Instance) (idempotency.Instance, error) {
	var first sql.Null[idempotency.Instance]
	err := s.reads(ctx, "who began keys", func() error {
		return s.read[nextBeginner].QueryRowContext(ctx, after).Scan(&first)
	})
	if err != nil {
		return "", err
	}
	return first.V, nil
}
