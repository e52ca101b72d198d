// Package memstore keeps everything in memory: for tests, and for embedders who
// keep nothing. What it holds is gone with the process, the audit log too.
package memstore

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/internal/keep"
	"github.com/tracon-go/tracon/toolcall"
)

// A Store is a [store.Store] in memory. Make one with [New]; it is safe for
// concurrent use. What goes in and what comes out are copies.
type Store struct {
	mu       sync.RWMutex
	closed   bool
	log      []audit.Leaf // only grows, and no leaf in it changes
	frontier audit.Frontier
	host     gate.Host
	hostRev  int64
	tenants  map[string]*tenant
	contents map[bundle.Digest]bundle.Bundle
	keys     map[string]place // by id
	claims   map[[2]string]claim
}

// A tenant is all that one tenant sees: no look-up of a method that takes a
// tenant leaves it.
type tenant struct {
	last      audit.Link
	policy    gate.Policy
	policyRev int64
	grants    []grant.Grant // in the order of their coming
	byID      map[string]int
	newest    map[grant.Ref]int
	skills    map[string][]admin.Version // by name, each in the order of their coming
	versions  map[string]bool            // by id
	imports   []admin.Version            // of all skills, in the order of their coming
	calls     map[string]toolcall.Record
	daily     map[day]toolcall.Daily
	callIDs   []string     // rising
	keys      []access.Key // in the order of their coming; of the host's history: the platform's
	made      access.Tenant
	madeRev   int64
}

var _ store.Store = (*Store)(nil)

// New returns an empty Store.
func New() *Store {
	return &Store{tenants: map[string]*tenant{}, contents: map[bundle.Digest]bundle.Bundle{}, keys: map[string]place{}, claims: map[[2]string]claim{}}
}

// Close ends the store: every later call fails with store.ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// read calls f under the lock that readers share. The tenant is an empty one
// where name is not known; it is not kept, so that asking costs no memory.
func (s *Store) read(ctx context.Context, name string, f func(*tenant) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	t := s.tenants[name]
	if t == nil {
		t = &tenant{}
	}
	return f(t)
}

// change calls check, then seals entry, then makes the change, all under the
// lock that orders the log. Only check and the seal can fail, so the change and
// its leaf stand together or neither does.
func (s *Store) change(ctx context.Context, entry audit.Pending, check func(*tenant) error, do func(*tenant)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	name := entry.Tenant()
	t := s.tenants[name]
	if t == nil {
		t = &tenant{byID: map[string]int{}, newest: map[grant.Ref]int{}, calls: map[string]toolcall.Record{}, daily: map[day]toolcall.Daily{},
			skills: map[string][]admin.Version{}, versions: map[string]bool{}}
	}
	if check != nil {
		if err := check(t); err != nil {
			return err
		}
	}
	leaf, err := entry.Seal(audit.Head{Frontier: s.frontier, Tenant: t.last})
	if err != nil {
		return err
	}
	s.frontier = leaf.Frontier
	s.log = append(s.log, audit.Leaf{Index: leaf.Index, Tenant: leaf.Tenant, Seq: leaf.Seq, Hash: leaf.Hash, Bytes: slices.Clone(leaf.Bytes)})
	t.last = audit.Link{Seq: leaf.Seq, Prev: leaf.Hash}
	s.tenants[name] = t
	if do != nil {
		do(t)
	}
	return nil
}

func (s *Store) usable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.closed {
		return store.ErrClosed
	}
	return nil
}

// Append implements [audit.Sink].
func (s *Store) Append(ctx context.Context, p audit.Pending) error {
	return s.change(ctx, p, nil, nil)
}

// Tip implements [audit.Sink].
func (s *Store) Tip(ctx context.Context) (f audit.Frontier, err error) {
	err = s.read(ctx, "", func(*tenant) error { f = s.frontier; return nil })
	return f, err
}

// Ready implements [audit.Sink]: a store in memory is ready until it is closed.
func (s *Store) Ready(ctx context.Context) error {
	return s.read(ctx, "", func(*tenant) error { return nil })
}

// Leaves implements [audit.Sink]. It yields what stood in the log when the
// iteration began.
func (s *Store) Leaves(ctx context.Context, name string, from uint64) iter.Seq2[audit.Leaf, error] {
	return func(yield func(audit.Leaf, error) bool) {
		var log []audit.Leaf
		err := s.read(ctx, name, func(*tenant) error { log = s.log; return nil })
		if err != nil {
			yield(audit.Leaf{}, err)
			return
		}
		for _, leaf := range log[min(from, uint64(len(log))):] {
			if name != "" && leaf.Tenant != name {
				continue
			}
			if ctx.Err() != nil {
				yield(audit.Leaf{}, context.Cause(ctx))
				return
			}
			leaf.Bytes = slices.Clone(leaf.Bytes)
			if !yield(leaf, nil) {
				return
			}
		}
	}
}

// HostAt implements [store.Store].
func (s *Store) HostAt(ctx context.Context) (h gate.Host, revision int64, err error) {
	err = s.read(ctx, "", func(*tenant) error { h, revision = keep.CopyHost(s.host), s.hostRev; return nil })
	return h, revision, err
}

// Host implements [gate.Hosts].
func (s *Store) Host(ctx context.Context) (gate.Host, error) {
	h, _, err := s.HostAt(ctx)
	return h, err
}

// SetHost implements [store.Store].
func (s *Store) SetHost(ctx context.Context, h gate.Host, after int64, entry audit.Pending) error {
	if err := keep.History(gate.HostTenant, entry); err != nil {
		return err
	}
	h = keep.CopyHost(h)
	return s.change(ctx, entry, func(*tenant) error {
		if s.hostRev != after {
			return grant.ErrConflict
		}
		return nil
	}, func(*tenant) { s.host, s.hostRev = h, after+1 })
}

// PolicyAt implements [store.Store].
func (s *Store) PolicyAt(ctx context.Context, name string) (p gate.Policy, revision int64, err error) {
	err = s.read(ctx, name, func(t *tenant) error { p, revision = keep.CopyPolicy(t.policy), t.policyRev; return nil })
	return p, revision, err
}

// Policy implements [gate.Policies].
func (s *Store) Policy(ctx context.Context, name string) (p gate.Policy, err error) {
	err = s.read(ctx, name, func(t *tenant) error {
		p = keep.CopyPolicy(t.policy)
		p.Suspended = t.made.Off
		return nil
	})
	return p, err
}

// SetPolicy implements [store.Store].
func (s *Store) SetPolicy(ctx context.Context, name string, p gate.Policy, after int64, entry audit.Pending) error {
	if err := keep.History(name, entry); err != nil {
		return err
	}
	p = keep.CopyPolicy(p)
	p.Suspended = false // no part of the setting
	return s.change(ctx, entry, func(t *tenant) error {
		if t.policyRev != after {
			return grant.ErrConflict
		}
		if !keep.NoPolicy(p) {
			return keep.Alive(t.made)
		}
		return nil
	}, func(t *tenant) { t.policy, t.policyRev = p, after+1 })
}
