package admin

import (
	"context"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// Store is what an operator's changes go to. It must be safe for concurrent use.
type Store interface {
	grant.Book
	Settings
	Imports
	access.Book
	Quotas
}

// Quotas holds what may be kept for a tenant.
type Quotas interface {
	// Kept returns what is kept for the tenant at the time now, by which its keys are
	// counted.
	Kept(ctx context.Context, tenant string, now time.Time) (access.Usage, error)

	// Within returns the methods of the store by which a tenant's rows grow, with one
	// condition more, which is looked at in the transaction of the change: what would be
	// kept then fits into q (access.Quota.Fits). Where it does not, nothing is kept, and
	// the error wraps access.ErrQuota.
	Within(q access.Quota) Additions
}

// Additions are changes by which what is kept for a tenant grows: see [grant.Book] and
// [Imports].
type Additions interface {
	AddGrant(ctx context.Context, g grant.Grant, content bundle.Bundle, after string, entry audit.Pending) error
	AddVersion(ctx context.Context, v Version, content bundle.Content, after string, entry audit.Pending) error
}

// Settings keeps the host's settings and the tenants' policies. Each has a
// revision, which counts its changes from zero for what was never set.
type Settings interface {
	// HostAt returns the host's settings and their revision: the zero Host and
	// zero where they were never set.
	HostAt(ctx context.Context) (gate.Host, int64, error)

	// SetHost keeps h and seals entry, all or nothing. After is the revision that
	// the caller saw; where there is another, it fails with grant.ErrConflict.
	SetHost(ctx context.Context, h gate.Host, after int64, entry audit.Pending) error

	// PolicyAt returns the tenant's policy and its revision: the zero Policy and
	// zero where it was never set.
	PolicyAt(ctx context.Context, tenant string) (gate.Policy, int64, error)

	// SetPolicy keeps p and seals entry, all or nothing. After is as for SetHost.
	SetPolicy(ctx context.Context, tenant string, p gate.Policy, after int64, entry audit.Pending) error
}
