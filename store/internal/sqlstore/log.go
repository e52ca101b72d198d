package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"

	"github.com/tracon-go/tracon/audit"
)

// An end is where the log and its histories end in one transaction. It is read
// inside of it and forgotten with it: another process may write next.
type end struct {
	frontier audit.Frontier
	last     audit.Hash   // of the leaf that was added last
	leaves   []audit.Leaf // to be kept before the commit, where there are arrays
	tenants  map[string]*tenantEnd
}

type tenantEnd struct {
	audit.Link
	moved bool
}

func (w *writer) end(ctx context.Context) (*end, error) {
	f, err := scanFrontier(w.do[headForUpdate].QueryRowContext(ctx))
	return &end{frontier: f, tenants: map[string]*tenantEnd{}}, err
}

// tenant returns where the history of name ends, from the first time on as this
// transaction has it.
func (w *writer) tenant(ctx context.Context, name string, e *end) (*tenantEnd, error) {
	if t, ok := e.tenants[name]; ok {
		return t, nil
	}
	t := &tenantEnd{}
	var hash []byte
	err := w.do[tenantHead].QueryRowContext(ctx, name).Scan(&t.Seq, &hash)
	if err == nil {
		err = t.follow(name, hash)
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	e.tenants[name] = t
	return t, nil
}

// follow has t end with the leaf of that hash.
func (t *tenantEnd) follow(name string, hash []byte) error {
	if len(hash) != len(t.Prev) || t.Seq == 0 {
		return damaged("the end of the history of %q", name)
	}
	t.Prev = audit.Hash(hash)
	return nil
}

// seal makes the leaf of entry, keeps it, and moves e behind it.
func (w *writer) seal(ctx context.Context, entry audit.Pending, e *end) error {
	if strings.ContainsRune(entry.Tenant(), 0) { // not every engine can hold it, and one statement would stop all that wait
		return refused{fmt.Errorf("%w: the tenant's name holds NUL", audit.ErrEntry)}
	}
	t, err := w.tenant(ctx, entry.Tenant(), e)
	if err != nil {
		return err
	}
	leaf, err := entry.Seal(audit.Head{Frontier: e.frontier, Tenant: t.Link})
	if err != nil {
		return refused{err}
	}
	if w.arrays != nil {
		e.leaves = append(e.leaves, leaf)
	} else {
		_, err = w.do[addLeaf].ExecContext(ctx, int64(leaf.Index), leaf.Tenant, int64(leaf.Seq), leaf.Hash[:], leaf.Bytes)
	}
	if err := w.fits(leaf.Index, err); err != nil {
		return err
	}
	e.frontier, e.last = leaf.Frontier, leaf.Hash
	t.Link, t.moved = audit.Link{Seq: leaf.Seq, Prev: leaf.Hash}, true
	return nil
}

// fits tells of a leaf that does not fit behind the head of the log.
func (w *writer) fits(index uint64, err error) error {
	if err != nil && w.dialect.Fault(err) == Statement {
		return damaged("entry %d does not fit behind the head of the log: %w", index, err)
	}
	return err
}

// setEnd keeps e: once for all changes of the transaction.
func (w *writer) setEnd(ctx context.Context, e *end) error {
	if w.arrays != nil {
		return w.fits(e.leaves[0].Index, w.arrays.write(ctx, e))
	}
	if err := w.setTenants(ctx, e.tenants); err != nil {
		return err
	}
	_, err := w.do[setHead].ExecContext(ctx, int64(e.frontier.Size()), edge(e.frontier))
	return err
}

// edge returns the edge of the tree as it is kept.
func edge(f audit.Frontier) []byte {
	b := []byte{}
	for _, h := range f.Edge() {
		b = append(b, h[:]...)
	}
	return b
}

func (w *writer) setTenants(ctx context.Context, tenants map[string]*tenantEnd) error {
	for name, t := range tenants {
		if !t.moved {
			continue
		}
		if _, err := w.do[setTenantHead].ExecContext(ctx, name, int64(t.Seq), t.Prev[:]); err != nil {
			return err
		}
	}
	return nil
}

func scanFrontier(row *sql.Row) (audit.Frontier, error) {
	var size int64
	var edge []byte
	if err := row.Scan(&size, &edge); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return audit.Frontier{}, damaged("the log has no head")
		}
		return audit.Frontier{}, err
	}
	var hashes []audit.Hash
	for ; len(edge) >= len(audit.Hash{}); edge = edge[len(audit.Hash{}):] {
		hashes = append(hashes, audit.Hash(edge[:len(audit.Hash{})]))
	}
	f, err := audit.NewFrontier(uint64(size), hashes)
	if err != nil || size < 0 || len(edge) != 0 {
		return audit.Frontier{}, damaged("the head of the log: %w", errors.Join(audit.ErrBroken, err))
	}
	return f, nil
}

// Append implements [audit.Sink].
func (s *Store) Append(ctx context.Context, p audit.Pending) error {
	return s.commit(ctx, p, nil)
}

// Tip implements [audit.Sink].
func (s *Store) Tip(ctx context.Context) (f audit.Frontier, err error) {
	err = s.reads(ctx, "the head of the log", func() (err error) {
		f, err = scanFrontier(s.read[head].QueryRowContext(ctx))
		return err
	})
	return f, err
}

// Pages of leaves. No statement stays open between two of them: a slow reader
// must not keep the database from reusing its space.
const (
	pageLeaves = 256
	pageBytes  = 1 << 20
)

// Leaves implements [audit.Sink].
func (s *Store) Leaves(ctx context.Context, tenant string, from uint64) iter.Seq2[audit.Leaf, error] {
	return func(yield func(audit.Leaf, error) bool) {
		if from > math.MaxInt64 {
			return
		}
		next := int64(from)
		if tenant != "" {
			err := s.reads(ctx, "the log", func() error {
				return s.read[seqBefore].QueryRowContext(ctx, tenant, next).Scan(&next)
			})
			if err != nil {
				yield(audit.Leaf{}, err)
				return
			}
		}
		for {
			page, err := s.page(ctx, tenant, next)
			if err != nil {
				yield(audit.Leaf{}, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for _, leaf := range page {
				if !yield(leaf, nil) {
					return
				}
			}
			last := page[len(page)-1]
			if next = int64(last.Index) + 1; tenant != "" {
				next = int64(last.Seq)
			}
		}
	}
}

// page returns some leaves of tenant behind the sequence number next, or of all
// tenants from the index next on.
func (s *Store) page(ctx context.Context, tenant string, next int64) (page []audit.Leaf, err error) {
	err = s.reads(ctx, "the log", func() error {
		page = nil
		var rows *sql.Rows
		var err error
		if tenant == "" {
			rows, err = s.read[leaves].QueryContext(ctx, next, pageLeaves)
		} else {
			rows, err = s.read[leavesOfTenant].QueryContext(ctx, tenant, next, pageLeaves)
		}
		if err != nil {
			return err
		}
		defer rows.Close()
		for size := 0; size < pageBytes && rows.Next(); {
			var leaf audit.Leaf
			var hash []byte
			if err := rows.Scan(&leaf.Index, &leaf.Tenant, &leaf.Seq, &hash, &leaf.Bytes); err != nil {
				return err
			}
			if uint64(next) > leaf.Index && tenant == "" || tenant != "" && uint64(next) >= leaf.Seq {
				return damaged("the entries of the log are not in their order") // an index may lead back to where one was
			}
			if len(hash) == len(leaf.Hash) { // another length is a broken hash, which Verify finds and names
				leaf.Hash = audit.Hash(hash)
			}
			size += len(leaf.Bytes)
			page = append(page, leaf)
		}
		return rows.Err()
	})
	return page, err
}
