package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// quota returns what may be kept for the tenant.
func (a *Admin) quota(ctx context.Context, tenant string) (access.Quota, error) {
	t, _, err := a.c.Store.TenantAt(ctx, tenant)
	return t.Quota.Or(a.c.Quota), err
}

// room is quota for what is to be kept for the tenant: ErrDeleted for one that was deleted.
func (a *Admin) room(ctx context.Context, tenant string) (access.Quota, error) {
	if err := a.alive(ctx, tenant); err != nil {
		return access.Quota{}, err
	}
	return a.quota(ctx, tenant)
}

// made says that nobody made the tenant, or nil. The platform needs no making.
func (a *Admin) made(ctx context.Context, tenant string) error {
	if tenant == "" {
		return nil
	}
	_, err := a.Tenant(ctx, tenant)
	return err
}

// CreateTenant makes a tenant, of which it takes the name, the quota and the rates.
//
// # Errors
//
// access.ErrDenied; access.ErrInvalid and grant.ErrRef for what cannot be a tenant;
// grant.ErrConflict where it is there, and ErrDeleted where it was; audit.ErrUnavailable or the store's own when it
// could not be written.
func (a *Admin) CreateTenant(ctx context.Context, by access.Principal, t access.Tenant) (access.Tenant, error) {
	if err := by.Check(access.WriteTenants); err != nil {
		return access.Tenant{}, err
	}
	t.Created, t.By = now(), audit.Clip(by.Actor)
	if err := t.Validate(); err != nil {
		return access.Tenant{}, err
	}
	if err := a.alive(ctx, t.Name); err != nil {
		return access.Tenant{}, err
	}
	err := a.write(ctx, tenantEntry(by, t, ""), false, func(ctx context.Context, entry audit.Pending) error {
		return a.c.Store.SetTenant(ctx, t, 0, entry)
	})
	if err != nil {
		return access.Tenant{}, err
	}
	return t, nil
}

// SetTenant changes a tenant, as SetPolicy does a policy. Its name, and who made it and
// when, stay as they are.
//
// # Errors
//
// As CreateTenant; that of change; grant.ErrNotFound for one that nobody made; ErrDeleted.
func (a *Admin) SetTenant(ctx context.Context, by access.Principal, name string, change func(*access.Tenant) error) (access.Tenant, error) {
	if err := by.Check(access.WriteTenants); err != nil {
		return access.Tenant{}, err
	}
	return set(func() (access.Tenant, error) {
		old, revision, err := a.tenantAt(ctx, name)
		if err != nil {
			return access.Tenant{}, err
		}
		if !old.Deleted.IsZero() {
			return old, fmt.Errorf("%w: %q", ErrDeleted, name)
		}
		t := old
		if err := change(&t); err != nil {
			return old, err
		}
		t.Name, t.Created, t.By, t.Deleted = old.Name, old.Created, old.By, old.Deleted
		if err := t.Validate(); err != nil {
			return old, err
		}
		return t, a.write(ctx, tenantEntry(by, t, tell(old)), t == old, func(ctx context.Context, entry audit.Pending) error {
			return a.c.Store.SetTenant(ctx, t, revision, entry)
		})
	})
}

func (a *Admin) tenantAt(ctx context.Context, name string) (access.Tenant, int64, error) {
	if err := gate.CheckTenant(name); err != nil {
		return access.Tenant{}, 0, err
	}
	t, revision, err := a.c.Store.TenantAt(ctx, name)
	if err == nil && revision == 0 {
		err = fmt.Errorf("%w: nobody made the tenant %q", grant.ErrNotFound, name)
	}
	return t, revision, err
}

// Tenant returns the tenant, or grant.ErrNotFound.
func (a *Admin) Tenant(ctx context.Context, name string) (access.Tenant, error) {
	t, _, err := a.tenantAt(ctx, name)
	return t, err
}

// Tenants returns those that somebody made, by name.
func (a *Admin) Tenants(ctx context.Context, f access.TenantFilter) ([]access.Tenant, error) {
	return a.c.Store.Tenants(ctx, f)
}

// Usage returns what is kept for the tenant now, and the quota that bounds it.
func (a *Admin) Usage(ctx context.Context, tenant string) (access.Usage, access.Quota, error) {
	q, err := a.quota(ctx, tenant)
	if err != nil {
		return access.Usage{}, access.Quota{}, err
	}
	u, err := a.c.Store.Kept(ctx, tenant, time.Now())
	return u, q, err
}

func tenantEntry(by access.Principal, t access.Tenant, before string, facts ...string) audit.Entry {
	facts = append(facts, "before", before, "after", tell(t))
	return audit.Entry{Tenant: t.Name, Actor: by.Actor, Kind: audit.Tenant, Subject: audit.Clip("tenant " + t.Name), Facts: audit.Facts(facts...)}
}
