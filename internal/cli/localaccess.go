package cli

import (
	"context"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/retention"
)

// operator is who has the data folder: it is his installation.
func (l *local) operator() access.Principal {
	return access.Principal{Actor: l.actor, Roles: []access.Role{access.Platform}}
}

// owner returns whose keys are meant; empty: the platform's.
func (l *local) owner(platform bool) string {
	if platform {
		return ""
	}
	return l.tenant
}

func (l *local) CreateKey(ctx context.Context, platform bool, k admin.Keying) (access.Key, string, error) {
	k.By, k.Tenant = l.operator(), l.owner(platform)
	key, secret, err := l.h.Admin.CreateKey(ctx, k)
	return key, secret.Reveal(), err
}

func (l *local) RotateKey(ctx context.Context, platform bool, r admin.Rotation) (access.Key, string, error) {
	r.By, r.Tenant = l.operator(), l.owner(platform)
	key, secret, err := l.h.Admin.RotateKey(ctx, r)
	return key, secret.Reveal(), err
}

func (l *local) RevokeKey(ctx context.Context, platform bool, id, reason string) (access.Key, error) {
	return l.h.Admin.RevokeKey(ctx, l.operator(), l.owner(platform), id, reason)
}

func (l *local) Key(ctx context.Context, platform bool, id string) (access.Key, error) {
	return l.h.Admin.Key(ctx, l.owner(platform), id)
}

func (l *local) Keys(ctx context.Context, platform bool, f access.KeyFilter) ([]access.Key, error) {
	return l.h.Admin.Keys(ctx, l.owner(platform), f)
}

func (l *local) CreateTenant(ctx context.Context, t access.Tenant) (access.Tenant, error) {
	return l.h.Admin.CreateTenant(ctx, l.operator(), t)
}

func (l *local) SetTenant(ctx context.Context, name string, change func(*access.Tenant) error) (access.Tenant, error) {
	return l.h.Admin.SetTenant(ctx, l.operator(), name, change)
}

func (l *local) ShowTenant(ctx context.Context, name string) (tenantJSON, error) {
	t, err := l.h.Admin.Tenant(ctx, name)
	if err != nil {
		return tenantJSON{}, err
	}
	used, bounds, err := l.h.Admin.Usage(ctx, name)
	return tenantJSON{Tenant: t, Usage: &used, Bounds: &bounds}, err
}

func (l *local) Tenants(ctx context.Context, f access.TenantFilter) ([]access.Tenant, error) {
	return l.h.Admin.Tenants(ctx, f)
}

func (l *local) DeleteTenant(ctx context.Context, name, reason string, preview bool) (retention.Deletion, error) {
	return l.h.DeleteTenant(ctx, retention.Deleting{By: l.operator(), Tenant: name, Reason: reason}, preview)
}
