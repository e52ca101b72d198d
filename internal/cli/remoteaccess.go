package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/retention"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// keysOf returns who asks for the keys that are meant, and the tenant that it names:
// the platform's credential names a tenant, a tenant's sees its own alone.
func (r *remote) keysOf(platform bool) (*client.Client, string, error) {
	switch {
	case platform && r.who.Tenant != "" && r.platform == r.c:
		return nil, "", hint(fmt.Errorf("the key is of tenant %s, and --platform means the platform's keys", r.who.Tenant), "take a key of the platform")
	case platform:
		return r.platform, "", nil
	case r.who.Tenant == "":
		return r.platform, r.tenant, nil
	}
	return r.c, "", nil
}

func (r *remote) CreateKey(ctx context.Context, platform bool, k admin.Keying) (access.Key, string, error) {
	c, tenant, err := r.keysOf(platform)
	if err != nil {
		return access.Key{}, "", err
	}
	made, err := c.CreateKey(ctx, tenant, client.NewKey{Name: k.Name, Roles: strs(k.Roles), Scopes: strs(k.Scopes), Expires: k.Expires})
	return ofKey(made.Key), made.Secret, r.told(ctx, err, fmt.Errorf("%w: nobody made the tenant %q", grant.ErrNotFound, r.tenant))
}

func (r *remote) RotateKey(ctx context.Context, platform bool, k admin.Rotation) (access.Key, string, error) {
	c, tenant, err := r.keysOf(platform)
	if err != nil {
		return access.Key{}, "", err
	}
	made, err := c.RotateKey(ctx, tenant, k.ID, "", client.Rotation{OverlapSeconds: new(k.Overlap.Seconds()), Expires: k.Expires})
	return ofKey(made.Key), made.Secret, r.told(ctx, err, noKey(k.ID))
}

func (r *remote) RevokeKey(ctx context.Context, platform bool, id, reason string) (access.Key, error) {
	c, tenant, err := r.keysOf(platform)
	if err != nil {
		return access.Key{}, err
	}
	k, err := c.RevokeKey(ctx, tenant, id, "", reason)
	return ofKey(k), r.told(ctx, err, noKey(id))
}

func (r *remote) Key(ctx context.Context, platform bool, id string) (access.Key, error) {
	c, tenant, err := r.keysOf(platform)
	if err != nil {
		return access.Key{}, err
	}
	k, _, err := c.Key(ctx, tenant, id)
	return ofKey(k), r.told(ctx, err, noKey(id))
}

func (r *remote) Keys(ctx context.Context, platform bool, f access.KeyFilter) ([]access.Key, error) {
	c, tenant, err := r.keysOf(platform)
	if err != nil {
		return nil, err
	}
	list, err := c.Keys(ctx, tenant)
	if err != nil {
		return nil, r.told(ctx, err, noTenant(r.tenant))
	}
	var keys []access.Key
	for _, k := range list {
		if k.ID == f.Before {
			keys = nil // those that came after it
		} else {
			keys = append(keys, ofKey(k))
		}
	}
	return atMost(keys, f.Limit)
}

func noKey(id string) error { return fmt.Errorf("%w: key %s", grant.ErrNotFound, id) }

func noTenant(name string) error {
	return fmt.Errorf("%w: nobody made the tenant %q", grant.ErrNotFound, name)
}

// atMost cuts a list as a store does.
func atMost[T any](list []T, limit int) ([]T, error) {
	if limit < 0 {
		return nil, errors.New("--limit is below zero; 0 means the default")
	}
	if limit == 0 {
		limit = access.DefaultLimit
	}
	return list[:min(limit, len(list))], nil
}

func strs[T ~string](words []T) []string {
	list := []string{}
	for _, w := range words {
		list = append(list, string(w))
	}
	return list
}

func typed[T ~string](words []string) (list []T) {
	for _, w := range words {
		list = append(list, T(w))
	}
	return list
}

// ofKey is a key as the server told of it. It has no hash, and so lets nobody in here.
func ofKey(k client.Key) access.Key {
	return access.Key{ID: k.ID, Tenant: k.Tenant, Name: k.Name, Roles: typed[access.Role](k.Roles), Scopes: typed[access.Permission](k.Scopes), Created: k.Created,
		CreatedBy: k.CreatedBy, Expires: k.Expires, Revoked: k.Revoked, RevokedBy: k.RevokedBy, ReplacedBy: k.ReplacedBy, Used: k.Used}
}

func (r *remote) CreateTenant(ctx context.Context, t access.Tenant) (access.Tenant, error) {
	made, err := r.platform.CreateTenant(ctx, client.NewTenant{Name: t.Name, Quota: client.Quota(t.Quota), Rates: client.Rates(t.Rates)})
	return ofTenant(made), r.told(ctx, err, nil)
}

func (r *remote) SetTenant(ctx context.Context, name string, change func(*access.Tenant) error) (access.Tenant, error) {
	old, etag, err := r.platform.Tenant(ctx, name)
	if err != nil {
		return access.Tenant{}, r.told(ctx, err, noTenant(name))
	}
	t := ofTenant(old)
	if err := change(&t); err != nil {
		return access.Tenant{}, err
	}
	c := client.TenantChange{Off: &t.Off, Quota: new(client.Quota(t.Quota)), Rates: new(client.Rates(t.Rates))}
	now, err := r.platform.ChangeTenant(ctx, name, etag, c)
	return ofTenant(now), r.told(ctx, err, noTenant(name))
}

func (r *remote) ShowTenant(ctx context.Context, name string) (tenantJSON, error) {
	t, _, err := r.platform.Tenant(ctx, name)
	return tenantJSON{Tenant: ofTenant(t)}, r.told(ctx, err, noTenant(name))
}

func (r *remote) Tenants(ctx context.Context, f access.TenantFilter) ([]access.Tenant, error) {
	list, err := r.platform.Tenants(ctx)
	if err != nil {
		return nil, r.told(ctx, err, nil)
	}
	var tenants []access.Tenant
	for _, t := range list {
		if t.Name > f.After {
			tenants = append(tenants, ofTenant(t))
		}
	}
	return atMost(tenants, f.Limit)
}

func (r *remote) DeleteTenant(ctx context.Context, name, reason string, preview bool) (retention.Deletion, error) {
	var out client.Deletion
	var err error
	if preview {
		out, err = r.platform.PreviewDeletion(ctx, name)
	} else {
		out, err = r.platform.DeleteTenant(ctx, name, "", reason)
	}
	d := retention.Deletion{Calls: out.Calls, Contents: out.Contents, UnderWay: out.UnderWay}
	d.Keys, d.Grants, d.Skills = out.Keys, out.Grants, out.Skills
	return d, r.told(ctx, err, noTenant(name))
}

func ofTenant(t client.Tenant) access.Tenant {
	return access.Tenant{Name: t.Name, Created: t.Created, By: t.By, Off: t.Off, Deleted: t.Deleted, Quota: access.Quota(t.Quota), Rates: access.Rates(t.Rates)}
}
