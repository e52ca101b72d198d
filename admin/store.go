package admin

import (
	"context"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// Store is what an operator's changes go to. It must be safe for concurrent use.
type Store interface {
	grant.Book
	Settings
	Imports
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
