package memstore

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"

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

// A survey is a [store.Survey]: a store of its own, of which nobody else knows.
type survey struct{ was *Store }

// Survey implements [store.Store].
func (s *Store) Survey(ctx context.Context) (store.Survey, error) {
	was := New()
	err := s.read(ctx, "", func(*tenant) error {
		was.log, was.frontier = s.log, s.frontier
		was.host, was.hostRev = keep.CopyHost(s.host), s.hostRev
		was.contents = maps.Clone(s.contents)
		for name, t := range s.tenants {
			was.tenants[name] = &tenant{last: t.last, policy: keep.CopyPolicy(t.policy), policyRev: t.policyRev,
				grants: slices.Clone(t.grants), imports: slices.Clone(t.imports), calls: maps.Clone(t.calls), callIDs: slices.Clone(t.callIDs),
				keys: slices.Clone(t.keys), made: t.made, madeRev: t.madeRev}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return survey{was}, nil
}

// Close implements [store.Survey].
func (v survey) Close() error { return nil }

// Tip implements [store.Survey].
func (v survey) Tip(ctx context.Context) (audit.Frontier, error) { return v.was.Tip(ctx) }

// Leaves implements [store.Survey].
func (v survey) Leaves(ctx context.Context, tenant string, from uint64) iter.Seq2[audit.Leaf, error] {
	return v.was.Leaves(ctx, tenant, from)
}

// HostAt implements [store.Survey].
func (v survey) HostAt(ctx context.Context) (gate.Host, int64, error) { return v.was.HostAt(ctx) }

// PolicyAt implements [store.Survey].
func (v survey) PolicyAt(ctx context.Context, name string) (gate.Policy, int64, error) {
	return v.was.PolicyAt(ctx, name)
}

// HistoryEnd implements [store.Survey].
func (v survey) HistoryEnd(ctx context.Context, name string) (at audit.Link, err error) {
	err = v.was.read(ctx, name, func(t *tenant) error { at = t.last; return nil })
	return at, err
}

// Tenants implements [store.Survey].
func (v survey) Tenants(ctx context.Context) (names []string, err error) {
	err = v.was.read(ctx, "", func(*tenant) error { names = slices.Sorted(maps.Keys(v.was.tenants)); return nil })
	return names, err
}

// Grants implements [store.Survey].
func (v survey) Grants(ctx context.Context, name string) iter.Seq2[grant.Grant, error] {
	return each(ctx, v, name, func(t *tenant) []grant.Grant { return t.grants })
}

// Versions implements [store.Survey].
func (v survey) Versions(ctx context.Context, name string) iter.Seq2[admin.Version, error] {
	return each(ctx, v, name, func(t *tenant) []admin.Version { return t.imports })
}

// Keys implements [store.Survey].
func (v survey) Keys(ctx context.Context, name string) iter.Seq2[access.Key, error] {
	return each(ctx, v, owner(name), func(t *tenant) (list []access.Key) {
		for _, k := range t.keys {
			list = append(list, keep.CopyKey(k))
		}
		return list
	})
}

// TenantAt implements [store.Survey].
func (v survey) TenantAt(ctx context.Context, name string) (access.Tenant, int64, error) {
	return v.was.TenantAt(ctx, name)
}

// Records implements [store.Survey].
func (v survey) Records(ctx context.Context, name string) iter.Seq2[toolcall.Record, error] {
	return each(ctx, v, name, func(t *tenant) (list []toolcall.Record) {
		for _, id := range t.callIDs {
			list = append(list, keep.CopyCall(t.calls[id]))
		}
		return list
	})
}

// Record implements [store.Survey].
func (v survey) Record(ctx context.Context, name, id string) (toolcall.Record, error) {
	return v.was.Call(ctx, name, id)
}

// Contents implements [store.Survey]. Nobody changes what is in memory.
func (v survey) Contents(ctx context.Context) iter.Seq2[bundle.Digest, error] { return v.Digests(ctx) }

// Digests implements [store.Survey].
func (v survey) Digests(ctx context.Context) iter.Seq2[bundle.Digest, error] {
	return each(ctx, v, "", func(*tenant) []bundle.Digest {
		return slices.SortedFunc(maps.Keys(v.was.contents), func(a, b bundle.Digest) int { return bytes.Compare(a[:], b[:]) })
	})
}

// Flaws implements [store.Survey]: there is no engine.
func (v survey) Flaws(ctx context.Context) iter.Seq2[string, error] {
	return each(ctx, v, "", func(*tenant) []string { return nil })
}

// each yields what list returns of the tenant name.
func each[T any](ctx context.Context, v survey, name string, list func(*tenant) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var values []T
		if err := v.was.read(ctx, name, func(t *tenant) error { values = list(t); return nil }); err != nil {
			yield(*new(T), err)
			return
		}
		for _, value := range values {
			if !yield(value, nil) {
				return
			}
		}
	}
}
