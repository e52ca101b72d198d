package access

import (
	"context"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
)

// A Finder is what [Authenticate] asks. It must be safe for concurrent use.
type Finder interface {
	// KeyByID returns the key id, whosever it is, or an error that wraps
	// grant.ErrNotFound. It is for who has a credential: everybody else asks [Book.Key].
	KeyByID(ctx context.Context, id string) (Key, error)

	// TenantAt returns the tenant and its revision, which counts its changes from 1:
	// the zero Tenant and zero for one that nobody made.
	TenantAt(ctx context.Context, name string) (Tenant, int64, error)

	// UseKey keeps that the key id was used at a time, unless it is kept that it was
	// less than [UsedEvery] before, or later. It is the one change without an entry: it
	// lets nobody in. It does nothing for an id that is not there.
	UseKey(ctx context.Context, id string, at time.Time) error
}

// A Book keeps keys and tenants. Every method that takes a tenant sees that tenant's
// keys alone; an empty one is the platform. It must be safe for concurrent use.
type Book interface {
	Finder

	// AddKey keeps k as the newest of its tenant's and seals entry, all or nothing. After
	// is the id of the newest key of the tenant that the caller saw, empty for none:
	// where another one is the newest, or somebody has k's id, it fails with
	// grant.ErrConflict. The entry must be of the key's history, as for the changes
	// below: see [History].
	AddKey(ctx context.Context, k Key, after string, entry audit.Pending) error

	// ReplaceKey keeps with as the newest key of the tenant, has its key id expire at
	// ends, unless it does so earlier, and name the new one, and seals entry, all or
	// nothing. It fails with grant.ErrNotFound, or with grant.ErrConflict where the key
	// was revoked or replaced before, or somebody has the new id.
	ReplaceKey(ctx context.Context, tenant, id string, with Key, ends time.Time, entry audit.Pending) error

	// RevokeKey marks the tenant's key id as revoked and seals entry, all or nothing. It
	// fails with grant.ErrNotFound, or with grant.ErrConflict where it was revoked before.
	RevokeKey(ctx context.Context, tenant, id string, at time.Time, by string, entry audit.Pending) error

	// Key returns the tenant's key id, or grant.ErrNotFound.
	Key(ctx context.Context, tenant, id string) (Key, error)

	// Keys returns the tenant's keys, the newest first.
	Keys(ctx context.Context, tenant string, f KeyFilter) ([]Key, error)

	// SetTenant keeps t and seals entry, all or nothing. After is the revision that the
	// caller saw, zero for one that nobody made; where there is another, it fails with
	// grant.ErrConflict. A tenant is never taken away: its history stays.
	SetTenant(ctx context.Context, t Tenant, after int64, entry audit.Pending) error

	// Tenants returns those that somebody made, in the bytewise order of their names.
	Tenants(ctx context.Context, f TenantFilter) ([]Tenant, error)
}

// DefaultLimit is how many keys or tenants a filter without a limit chooses at most.
const DefaultLimit = 1000

// A KeyFilter chooses keys to list. The zero KeyFilter chooses all.
type KeyFilter struct {
	Before string // only keys that came before this one; empty, or one that the tenant has not: from the newest on
	Limit  int    // at most so many; zero means 1,000, a negative one is an error
}

// A TenantFilter chooses tenants to list. The zero TenantFilter chooses all.
type TenantFilter struct {
	After string // only names behind this one; empty: from the first on
	Limit int    // at most so many; zero means 1,000, a negative one is an error
}

// History returns whose history a change of a key of tenant belongs to: the tenant's,
// or the host's for the platform's.
func History(tenant string) string {
	if tenant == "" {
		return gate.HostTenant
	}
	return tenant
}
