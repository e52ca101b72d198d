package memstore

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/store/internal/keep"
)

// A claim is what a key stands for.
type claim struct {
	idempotency.Claim
	done   bool
	answer []byte // nil: none was kept
	large  bool
}

// Begin implements [idempotency.Store].
func (s *Store) Begin(ctx context.Context, c idempotency.Claim) (f idempotency.Found, err error) {
	if err := c.Validate(); err != nil {
		return f, err
	}
	c.At = keep.Time(c.At)
	err = s.claim(ctx, c.Tenant, c.Key, func(was claim, ok bool) error {
		if !ok || c.At.Sub(was.At) >= idempotency.Window {
			was = claim{Claim: c}
			s.claims[[2]string{c.Tenant, c.Key}] = was
			s.sweep(c.At.Add(-idempotency.Window), idempotency.SweptByBegin)
		}
		f = idempotency.Judge(c, was.Claim, was.done, was.answer)
		f.Answer = bytes.Clone(f.Answer)
		return nil
	})
	return f, err
}

// claim calls f under the lock of changes, with what the tenant's key stands for.
func (s *Store) claim(ctx context.Context, tenant, key string, f func(claim, bool) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	was, ok := s.claims[[2]string{tenant, key}]
	return f(was, ok)
}

// Finish implements [idempotency.Store].
func (s *Store) Finish(ctx context.Context, tenant, key, run string, answer []byte) error {
	kept, large := keep.Answer(answer)
	return s.claim(ctx, tenant, key, func(was claim, ok bool) error {
		if !ok || was.done || was.Run != run {
			return idempotency.ErrGone
		}
		if large && s.large(tenant) >= idempotency.MaxLarge {
			kept, large = nil, false
		}
		was.done, was.answer, was.large = true, kept, large
		s.claims[[2]string{tenant, key}] = was
		return nil
	})
}

func (s *Store) large(tenant string) (n int) {
	for _, c := range s.claims {
		n += int(one(c.Tenant == tenant && c.large))
	}
	return n
}

// Drop implements [idempotency.Store].
func (s *Store) Drop(ctx context.Context, tenant, key, run string) error {
	return s.claim(ctx, tenant, key, func(was claim, ok bool) error {
		if !ok || was.done || was.Run != run {
			return idempotency.ErrGone
		}
		delete(s.claims, [2]string{tenant, key})
		return nil
	})
}

// Forget implements [idempotency.Store].
func (s *Store) Forget(ctx context.Context, tenant string) error {
	return s.claim(ctx, "", "", func(claim, bool) error {
		maps.DeleteFunc(s.claims, func(_ [2]string, c claim) bool { return c.Tenant == tenant })
		return nil
	})
}

// Sweep implements [idempotency.Store].
func (s *Store) Sweep(ctx context.Context, before time.Time, limit int) (n int, err error) {
	if limit, err = keep.Limit(limit, idempotency.DefaultSweep); err != nil {
		return 0, err
	}
	before = keep.Time(before)
	err = s.claim(ctx, "", "", func(claim, bool) error { n = s.sweep(before, limit); return nil })
	return n, err
}

// Left implements [idempotency.Store].
func (s *Store) Left(ctx context.Context, instance idempotency.Instance, limit int) (left []idempotency.Claim, err error) {
	if limit, err = keep.Limit(limit, idempotency.DefaultSweep); err != nil {
		return nil, err
	}
	err = s.claim(ctx, "", "", func(claim, bool) error {
		for _, c := range s.claims {
			if instance != "" && c.Instance == instance && !c.done {
				c.Body = bundle.Digest{}
				left = append(left, c.Claim)
			}
		}
		return nil
	})
	slices.SortFunc(left, func(a, b idempotency.Claim) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Key, b.Key))
	})
	return left[:min(limit, len(left))], err
}

// Beginner implements [idempotency.Store].
func (s *Store) Beginner(ctx context.Context, after idempotency.Instance) (first idempotency.Instance, err error) {
	err = s.claim(ctx, "", "", func(claim, bool) error {
		for _, c := range s.claims {
			if !c.done && c.Instance > after && (first == "" || c.Instance < first) {
				first = c.Instance
			}
		}
		return nil
	})
	return first, err
}

// sweep forgets what began before a time, at most limit keys. The lock is held.
func (s *Store) sweep(before time.Time, limit int) (n int) {
	for at, c := range s.claims {
		if n < limit && c.At.Before(before) {
			delete(s.claims, at)
			n++
		}
	}
	return n
}
