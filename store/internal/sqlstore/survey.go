package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/toolcall"
)

// A survey is a [store.Survey]: the reads of a Store, in one transaction.
type survey struct {
	view *Store // it has the statements of the transaction, and nothing that writes
	tx   *sql.Tx
	once sync.Once
	done func()
	err  error
}

// Survey implements [store.Store]. The store's Close waits for that of the survey.
func (s *Store) Survey(ctx context.Context) (store.Survey, error) {
	s.life.RLock()
	v, err := s.survey(ctx)
	if err != nil {
		s.life.RUnlock()
		return nil, err
	}
	v.done = s.life.RUnlock
	return v, nil
}

func (s *Store) survey(ctx context.Context) (*survey, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if s.closed {
		return nil, store.ErrClosed
	}
	tx, err := s.readers.BeginTx(ctx, s.dialect.Snapshot)
	if err != nil {
		return nil, fmt.Errorf("store: a survey: %w", s.explain(ctx, err))
	}
	v := &survey{view: &Store{dialect: s.dialect}, tx: tx}
	if v.view.read, err = prepare(ctx, tx, s.dialect, reading); err != nil {
		err = fmt.Errorf("store: a survey: %w", s.explain(ctx, err))
	} else {
		_, err = v.Tip(ctx) // the moment is that of the first read
	}
	if err != nil {
		_ = tx.Rollback()
		return nil, err
	}
	return v, nil
}

// Close implements [store.Survey].
func (v *survey) Close() error {
	v.once.Do(func() {
		v.view.read.close()
		if err := v.tx.Rollback(); !errors.Is(err, sql.ErrTxDone) { // the end of its context ends it too
			v.err = err
		}
		v.done()
	})
	return v.err
}

// Tip implements [store.Survey].
func (v *survey) Tip(ctx context.Context) (audit.Frontier, error) { return v.view.Tip(ctx) }

// Leaves implements [store.Survey].
func (v *survey) Leaves(ctx context.Context, tenant string, from uint64) iter.Seq2[audit.Leaf, error] {
	return v.view.Leaves(ctx, tenant, from)
}

// HostAt implements [store.Survey].
func (v *survey) HostAt(ctx context.Context) (gate.Host, int64, error) { return v.view.HostAt(ctx) }

// PolicyAt implements [store.Survey].
func (v *survey) PolicyAt(ctx context.Context, tenant string) (gate.Policy, int64, error) {
	return v.view.PolicyAt(ctx, tenant)
}

// HistoryEnd implements [store.Survey].
func (v *survey) HistoryEnd(ctx context.Context, tenant string) (at audit.Link, err error) {
	err = v.view.reads(ctx, "the end of a history", func() error {
		var hash []byte
		err := v.view.read[tenantHead].QueryRowContext(ctx, tenant).Scan(&at.Seq, &hash)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil
		case err == nil && len(hash) != len(at.Prev):
			return damaged("the end of the history of %q", tenant)
		case err == nil:
			at.Prev = audit.Hash(hash)
		}
		return err
	})
	return at, err
}

// Tenants implements [store.Survey].
func (v *survey) Tenants(ctx context.Context) (names []string, err error) {
	err = v.view.reads(ctx, "the names of the tenants", func() error {
		names = nil
		for last := ""; ; {
			var next sql.NullString
			if err := v.view.read[tenantBehind].QueryRowContext(ctx, last).Scan(&next); err != nil || !next.Valid {
				return err
			}
			if next.String <= last { // an index that is damaged may lead back to where one was
				return damaged("the names of the tenants are not in their order")
			}
			names, last = append(names, next.String), next.String
		}
	})
	return names, err
}

// Grants implements [store.Survey].
func (v *survey) Grants(ctx context.Context, tenant string) iter.Seq2[grant.Grant, error] {
	return pages(ctx, v, "the grants", grantsFrom, tenant, int64(0), func(rows scanner) (grant.Grant, int64, error) {
		k := &keyed[int64]{rows: rows}
		g, err := scanGrant(k)
		return g, k.key, err
	})
}

// Versions implements [store.Survey].
func (v *survey) Versions(ctx context.Context, tenant string) iter.Seq2[admin.Version, error] {
	return pages(ctx, v, "the versions of skills", versionsFrom, tenant, int64(0), func(rows scanner) (admin.Version, int64, error) {
		k := &keyed[int64]{rows: rows}
		version, err := scanVersion(k)
		return version, k.key, err
	})
}

// Keys implements [store.Survey].
func (v *survey) Keys(ctx context.Context, tenant string) iter.Seq2[access.Key, error] {
	return pages(ctx, v, "the keys", keysFrom, tenant, int64(0), func(rows scanner) (access.Key, int64, error) {
		k := &keyed[int64]{rows: rows}
		key, err := scanKey(k)
		return key, k.key, err
	})
}

// TenantAt implements [store.Survey].
func (v *survey) TenantAt(ctx context.Context, name string) (access.Tenant, int64, error) {
	return v.view.TenantAt(ctx, name)
}

// Records implements [store.Survey].
func (v *survey) Records(ctx context.Context, tenant string) iter.Seq2[toolcall.Record, error] {
	return pages(ctx, v, "the records of calls", callsFrom, tenant, "", func(rows scanner) (toolcall.Record, string, error) {
		k := &keyed[string]{rows: rows}
		r, err := scanCall(k, tenant)
		return r, k.key, err
	})
}

// Record implements [store.Survey].
func (v *survey) Record(ctx context.Context, tenant, id string) (toolcall.Record, error) {
	return v.view.Call(ctx, tenant, id)
}

// Digests implements [store.Survey].
func (v *survey) Digests(ctx context.Context) iter.Seq2[bundle.Digest, error] {
	return pages(ctx, v, "the contents", contentsFrom, nil, "", func(rows scanner) (d bundle.Digest, key string, err error) {
		var b []byte
		if err := rows.Scan(&b); err != nil {
			return d, "", err
		}
		if len(b) != len(d) {
			return d, string(b), damaged("a content with a digest of %d bytes", len(b))
		}
		return bundle.Digest(b), string(b), nil
	})
}

// Contents implements [store.Survey].
func (v *survey) Contents(ctx context.Context) iter.Seq2[bundle.Digest, error] {
	return func(yield func(bundle.Digest, error) bool) {
		for d, err := range v.Digests(ctx) {
			if err == nil {
				err = v.view.reads(ctx, "a content", func() error {
					if _, err := v.view.content(ctx, d); err != nil {
						return err
					}
					_, err := v.view.listing(ctx, d) // what stands beside the bytes
					return err
				})
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Flaws implements [store.Survey].
func (v *survey) Flaws(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, query := range v.view.dialect.Flaws {
			var found []string // the engine bounds them
			err := v.view.reads(ctx, "how the rows lie", func() error {
				found = nil
				rows, err := v.tx.QueryContext(ctx, query)
				if err != nil {
					return err
				}
				defer rows.Close()
				for rows.Next() {
					var text string
					if err := rows.Scan(&text); err != nil {
						return err
					}
					if text != "ok" {
						found = append(found, text)
					}
				}
				return rows.Err()
			})
			for _, text := range found {
				if !yield(text, nil) {
					return
				}
			}
			if err != nil {
				yield("", err)
				return
			}
		}
	}
}

// A keyed row has its key before the columns that somebody else scans, or, where
// it is a text, as the first of them. It is known also of a row that is damaged.
type keyed[K any] struct {
	rows scanner
	key  K
}

func (k *keyed[K]) Scan(dest ...any) error {
	if first, ok := any(&k.key).(*string); ok {
		err := k.rows.Scan(dest...)
		*first = *dest[0].(*string)
		return err
	}
	return k.rows.Scan(append([]any{&k.key}, dest...)...)
}

// pages yields what scan makes of the rows of query, page by page, so that no
// statement is open while the caller works. The query takes a tenant, unless that
// is nil, the key behind which it begins, and how many rows it may give.
func pages[T any, K int64 | string](ctx context.Context, v *survey, what string, query statement, tenant any, from K, scan func(scanner) (T, K, error)) iter.Seq2[T, error] {
	type row struct {
		value T
		err   error
	}
	return func(yield func(T, error) bool) {
		for at := from; ; {
			var page []row
			began := at
			err := v.view.reads(ctx, what, func() error {
				page, at = nil, began // it may be called again
				args := []any{tenant, at, pageLeaves}
				if tenant == nil { // of the contents, whose key is the text of bytes
					args = []any{[]byte(fmt.Sprint(at)), pageLeaves}
				}
				rows, err := v.view.read[query].QueryContext(ctx, args...)
				if err != nil {
					return err
				}
				defer rows.Close()
				for rows.Next() {
					value, key, err := scan(rows)
					if err != nil && !errors.Is(err, store.ErrCorrupt) {
						return damaged("%s: %w", what, err) // a column of another type, and no key to go on behind
					}
					if key <= at { // an index that is damaged may lead back to where one was
						return damaged("%s are not in their order", what)
					}
					at, page = key, append(page, row{value, err})
				}
				return rows.Err()
			})
			for _, r := range page {
				if !yield(r.value, r.err) {
					return
				}
			}
			if err != nil {
				yield(*new(T), err)
				return
			}
			if len(page) < pageLeaves {
				return
			}
		}
	}
}
