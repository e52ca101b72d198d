package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/store"
)

// A Deleting says which tenant is to be deleted.
type Deleting struct {
	Admin  *admin.Admin // required, as Store and Log are
	Store  store.Store
	Log    *audit.Log
	By     access.Principal // with access.WriteTenants
	Tenant string
	Reason string

	// Seen is asked for the tenant as it is before anything is done, and may refuse.
	// Nil: nobody is.
	Seen func(access.Tenant) error
}

// A Deletion counts what was taken away with a tenant, or would be.
type Deletion struct {
	admin.Standing
	Calls    uint64 `json:"calls"`    // records, with the salts of the log's commitments
	Contents uint64 `json:"contents"` // that no other tenant names or ever named
	UnderWay int    `json:"underWay"` // runs without an ending: with one nothing is deleted
}

// PreviewTenant counts what [DeleteTenant] would take away now. It changes nothing.
//
// # Errors
//
// access.ErrDenied; grant.ErrNotFound; and those of the log and the store.
func PreviewTenant(ctx context.Context, d Deleting) (Deletion, error) {
	out := Deletion{}
	var err error
	if out.Standing, err = d.Admin.Withdraw(ctx, d.By, d.Tenant, "", true); err != nil {
		return out, err
	}
	if out.UnderWay, err = d.underWay(ctx); err != nil {
		return out, err
	}
	return out, d.erase(ctx, &out, nil)
}

// DeleteTenant deletes a tenant: from now on its keys let nobody in and nothing of it
// runs; its keys, grants and skills are taken back; its records go, what idempotency keys
// stand for, and the contents that nobody else names. The log keeps its entries, among them that of the deletion,
// and stays verifiable: their commitments to arguments and output tell nothing without
// the salts, which go with the records. The name is not given again.
//
// Where it fails in the middle the tenant stays deleted: said again, it goes on with
// what is there still. So does it when a change or a run of the tenant was under way in
// that very moment.
//
// # Errors
//
// admin.ErrUnderWay; those of [admin.Admin.MarkDeleted] and [admin.Admin.Withdraw]; and those
// of the log and the store.
func DeleteTenant(ctx context.Context, d Deleting) (out Deletion, err error) {
	if err := d.still(ctx, &out); err != nil {
		return out, err
	}
	if _, err := d.Admin.MarkDeleted(ctx, d.By, d.Tenant, d.Reason, d.Seen); err != nil {
		return out, err
	}
	if out.Standing, err = d.Admin.Withdraw(ctx, d.By, d.Tenant, d.Reason, false); err != nil {
		return out, err
	}
	if err := d.still(ctx, &out); err != nil { // one that was admitted meanwhile
		return out, err
	}
	if err := d.erase(ctx, &out, d.Log); err != nil {
		return out, err
	}
	return out, d.Store.Forget(ctx, d.Tenant)
}

// erase takes away what is kept beside the log; nil: it counts.
func (d Deleting) erase(ctx context.Context, out *Deletion, log *audit.Log) error {
	done, err := run(ctx, &erasing{store: d.Store, log: log, actor: audit.Clip(d.By.Actor), now: time.Now(), all: true, tenant: d.Tenant})
	out.Calls, out.Contents = done.Calls, done.Contents
	return err
}

func (d Deleting) still(ctx context.Context, out *Deletion) (err error) {
	if out.UnderWay, err = d.underWay(ctx); err == nil && out.UnderWay > 0 {
		err = fmt.Errorf("%w: %d", admin.ErrUnderWay, out.UnderWay)
	}
	return err
}

// underWay counts the tenant's admissions without an ending. Those of a host that died
// get one from who recovers it.
func (d Deleting) underWay(ctx context.Context) (n int, err error) {
	if err := d.By.Check(access.ReadTenants); err != nil {
		return 0, err
	}
	for leaf, err := range d.Log.Entries(ctx, d.Tenant, 0) {
		if err != nil {
			return 0, err
		}
		switch leaf.Entry.Kind {
		case audit.Admission:
			n++
		case audit.Ending:
			n--
		}
	}
	return n, nil
}
