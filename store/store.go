// Package store is the union of what stores keep. A store is one room below it:
// memstore for tests and embedders who keep nothing, sqlite for one host,
// postgres for several. Every store passes store/storetest.
package store

import (
	"context"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/toolcall"
)

// A Store keeps everything of one installation. It is safe for concurrent use.
//
// Every method that takes an [audit.Pending] makes its change and keeps the
// sealed leaf in one transaction, durable before it returns, or does neither; a
// Pending that cannot be sealed makes no change. The entry belongs to the history
// of the tenant whose row changes (gate.HostTenant for the host's settings): with
// any other the change fails with audit.ErrEntry. Times come back in UTC, cut to
// the microsecond. Every method that takes a
// tenant sees that tenant's rows alone.
type Store interface {
	audit.Sink
	admin.Settings
	admin.Imports
	admin.Quotas
	access.Book
	grant.Book
	gate.Hosts    // Host of HostAt
	gate.Policies // Policy of PolicyAt, suspended where the tenant of TenantAt is off
	toolcall.Store
	toolcall.Meter
	Eraser
	idempotency.Store

	// Survey returns everything that is kept, as it is now.
	Survey(ctx context.Context) (Survey, error)

	// Close ends the store. Calls that are under way finish or fail.
	Close() error
}
