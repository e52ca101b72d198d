package store

import (
	"context"
	"iter"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/toolcall"
)

// A Survey is everything that a store keeps, of all tenants, as it was at one
// moment: for who checks that it agrees with itself. It changes nothing, and holds
// a page of rows at a time. It is not safe for concurrent use, and must be closed
// before its store. While it is open a SQLite file does not reuse its space.
//
// An iteration yields a row that cannot be what was written as an error that wraps
// [ErrCorrupt], and goes on behind it for as long as its caller does; any other
// error is its last.
type Survey interface {
	// Tip returns the frontier that is kept with the last leaf, as [audit.Sink] does.
	Tip(ctx context.Context) (audit.Frontier, error)

	// Leaves yields the leaves from an index on, as [audit.Sink] does.
	Leaves(ctx context.Context, tenant string, from uint64) iter.Seq2[audit.Leaf, error]

	// Tenants returns the names of all that have a history or a row, in bytewise order.
	Tenants(ctx context.Context) ([]string, error)

	// HistoryEnd returns where the history of tenant ends, as it is kept beside the
	// leaves; the zero Link for none.
	HistoryEnd(ctx context.Context, tenant string) (audit.Link, error)

	// HostAt returns the host's settings and their revision, zero for none.
	HostAt(ctx context.Context) (gate.Host, int64, error)

	// PolicyAt returns the tenant's policy and its revision, zero for none.
	PolicyAt(ctx context.Context, tenant string) (gate.Policy, int64, error)

	// Grants yields the tenant's grants in the order of their coming.
	Grants(ctx context.Context, tenant string) iter.Seq2[grant.Grant, error]

	// Versions yields the tenant's imports and deletions in the order of their coming.
	Versions(ctx context.Context, tenant string) iter.Seq2[admin.Version, error]

	// Keys yields the tenant's keys in the order of their coming; those of the platform
	// where tenant is empty.
	Keys(ctx context.Context, tenant string) iter.Seq2[access.Key, error]

	// TenantAt returns the tenant and its revision, zero for one that nobody made.
	TenantAt(ctx context.Context, name string) (access.Tenant, int64, error)

	// Records yields the tenant's records of calls in the order of their ids.
	Records(ctx context.Context, tenant string) iter.Seq2[toolcall.Record, error]

	// Record returns the tenant's record id, or toolcall.ErrNotFound.
	Record(ctx context.Context, tenant, id string) (toolcall.Record, error)

	// Digests yields the digest of each content that is there, rising.
	Digests(ctx context.Context) iter.Seq2[bundle.Digest, error]

	// Contents is Digests, with the error of reading each content whole.
	Contents(ctx context.Context) iter.Seq2[bundle.Digest, error]

	// Flaws yields what the engine itself finds amiss in how the rows lie. It may
	// read everything.
	Flaws(ctx context.Context) iter.Seq2[string, error]

	// Close ends the survey. A second Close does nothing.
	Close() error
}
