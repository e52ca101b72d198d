package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/internal/params"
)

// KeyID is the key that an operation is about.
type KeyID struct {
	Key string `path:"key" maxLength:"64"`
}

// keyRoutes registers the operations on keys twice: on one's own, and, for the platform,
// on those of a tenant, which the path names.
func (s *server) keyRoutes() {
	op := func(id, method, path, summary string, need need) operation {
		o := operation{id: id, method: method, path: path, tag: "access", summary: summary, need: need}
		if method == http.MethodPost {
			o.status, o.about = http.StatusCreated, "The secret is shown this once. Nobody hands on what he does not hold."
		}
		return o
	}
	change := func(o operation, status int) operation {
		if o.change, o.status = true, status; status == http.StatusOK {
			o.about = ""
		}
		return o
	}
	read, write := may(access.ReadKeys, access.ReadPlatform), may(access.WriteKeys, access.WriteKeysOf)
	route(s, op("list-keys", "GET", "/v1/keys", "The keys of the credential's tenant, or the platform's, the newest first", read),
		func(ctx context.Context, p access.Principal, in *struct{ params.Paging }) (*answer[client.Page[client.Key]], error) {
			return s.listKeys(ctx, p.Tenant, in.Paging)
		})
	route(s, op("get-key", "GET", "/v1/keys/{key}", "One key", read),
		func(ctx context.Context, p access.Principal, in *KeyID) (*tagged[client.Key], error) {
			return s.getKey(ctx, p.Tenant, in.Key)
		})
	route(s, op("create-key", "POST", "/v1/keys", "Make a key", write),
		func(ctx context.Context, p access.Principal, in *struct{ Body client.NewKey }) (*tagged[client.MadeKey], error) {
			return s.createKey(ctx, p, p.Tenant, in.Body)
		})
	route(s, change(op("rotate-key", "POST", "/v1/keys/{key}/rotate", "Replace a key by another with the same rights", write), http.StatusCreated),
		func(ctx context.Context, p access.Principal, in *struct {
			KeyID
			params.IfMatch
			Body *client.Rotation
		}) (*tagged[client.MadeKey], error) {
			return s.rotateKey(ctx, p, p.Tenant, in.Key, in.IfMatch, in.Body)
		})
	route(s, change(op("revoke-key", "POST", "/v1/keys/{key}/revoke", "Take a key back", write), http.StatusOK),
		func(ctx context.Context, p access.Principal, in *struct {
			KeyID
			params.IfMatch
			Body *client.Revocation
		}) (*tagged[client.Key], error) {
			return s.revokeKey(ctx, p, p.Tenant, in.Key, in.IfMatch, in.Body)
		})

	read, write = may(access.ReadTenants), may(access.WriteTenants)
	route(s, op("list-tenant-keys", "GET", "/v1/tenants/{tenant}/keys", "The keys of a tenant, the newest first", read),
		func(ctx context.Context, _ access.Principal, in *struct {
			TenantName
			params.Paging
		}) (*answer[client.Page[client.Key]], error) {
			if _, err := s.Admin.Tenant(ctx, in.Tenant); err != nil {
				return nil, err
			}
			return s.listKeys(ctx, in.Tenant, in.Paging)
		})
	route(s, op("get-tenant-key", "GET", "/v1/tenants/{tenant}/keys/{key}", "One key of a tenant", read),
		func(ctx context.Context, _ access.Principal, in *struct {
			TenantName
			KeyID
		}) (*tagged[client.Key], error) {
			return s.getKey(ctx, in.Tenant, in.Key)
		})
	route(s, op("create-tenant-key", "POST", "/v1/tenants/{tenant}/keys", "Make a key for a tenant", write),
		func(ctx context.Context, p access.Principal, in *struct {
			TenantName
			Body client.NewKey
		}) (*tagged[client.MadeKey], error) {
			return s.createKey(ctx, p, in.Tenant, in.Body)
		})
	route(s, change(op("rotate-tenant-key", "POST", "/v1/tenants/{tenant}/keys/{key}/rotate", "Replace a key of a tenant by another with the same rights", write), http.StatusCreated),
		func(ctx context.Context, p access.Principal, in *struct {
			TenantName
			KeyID
			params.IfMatch
			Body *client.Rotation
		}) (*tagged[client.MadeKey], error) {
			return s.rotateKey(ctx, p, in.Tenant, in.Key, in.IfMatch, in.Body)
		})
	route(s, change(op("revoke-tenant-key", "POST", "/v1/tenants/{tenant}/keys/{key}/revoke", "Take a key of a tenant back", write), http.StatusOK),
		func(ctx context.Context, p access.Principal, in *struct {
			TenantName
			KeyID
			params.IfMatch
			Body *client.Revocation
		}) (*tagged[client.Key], error) {
			return s.revokeKey(ctx, p, in.Tenant, in.Key, in.IfMatch, in.Body)
		})
}

func (s *server) listKeys(ctx context.Context, tenant string, in params.Paging) (*answer[client.Page[client.Key]], error) {
	list := params.ListOf(tenant, "list-keys")
	before, err := params.ReadCursor(list, in.Cursor)
	if err != nil {
		return nil, err
	}
	found, err := s.Admin.Keys(ctx, tenant, access.KeyFilter{Before: before, Limit: in.Limit + 1})
	if err != nil {
		return nil, err
	}
	page := client.Page[client.Key]{Items: []client.Key{}}
	if len(found) > in.Limit {
		found = found[:in.Limit]
		page.Next = params.NewCursor(list, found[in.Limit-1].ID)
	}
	for _, k := range found {
		page.Items = append(page.Items, toKey(k))
	}
	return &answer[client.Page[client.Key]]{page}, nil
}

// keyTag changes when the key is revoked, replaced or made to end.
func keyTag(k access.Key) string {
	return params.ETag("key", k.Tenant, k.ID, strconv.FormatInt(k.Revoked.UnixMicro(), 10), strconv.FormatInt(k.Expires.UnixMicro(), 10), k.ReplacedBy)
}

func (s *server) getKey(ctx context.Context, tenant, id string) (*tagged[client.Key], error) {
	k, err := s.Admin.Key(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return &tagged[client.Key]{keyTag(k), toKey(k)}, nil
}

func (s *server) createKey(ctx context.Context, p access.Principal, tenant string, n client.NewKey) (*tagged[client.MadeKey], error) {
	k, secret, err := s.Admin.CreateKey(ctx, admin.Keying{By: p, Tenant: tenant, Name: n.Name, Expires: n.Expires,
		Roles: words[access.Role](n.Roles), Scopes: words[access.Permission](n.Scopes)})
	if err != nil {
		return nil, err
	}
	return &tagged[client.MadeKey]{keyTag(k), client.MadeKey{Key: toKey(k), Secret: secret.Reveal()}}, nil
}

// matches says whether the key is as If-Match says. A key changes by being replaced or
// revoked, each once: who is second finds a conflict.
func (s *server) matches(ctx context.Context, tenant, id string, in params.IfMatch) error {
	m, err := in.Match()
	if err != nil {
		return err
	}
	k, err := s.Admin.Key(ctx, tenant, id)
	if err != nil {
		return err
	}
	return m.Check(keyTag(k))
}

func (s *server) rotateKey(ctx context.Context, p access.Principal, tenant, id string, match params.IfMatch, r *client.Rotation) (*tagged[client.MadeKey], error) {
	if err := s.matches(ctx, tenant, id, match); err != nil {
		return nil, err
	}
	rotation := admin.Rotation{By: p, Tenant: tenant, ID: id, Overlap: admin.DefaultOverlap}
	if r != nil {
		rotation.Expires = r.Expires
		if r.OverlapSeconds != nil {
			overlap, err := seconds(*r.OverlapSeconds)
			if err != nil {
				return nil, err
			}
			rotation.Overlap = overlap
		}
	}
	k, secret, err := s.Admin.RotateKey(ctx, rotation)
	if err != nil {
		return nil, err
	}
	return &tagged[client.MadeKey]{keyTag(k), client.MadeKey{Key: toKey(k), Secret: secret.Reveal()}}, nil
}

func (s *server) revokeKey(ctx context.Context, p access.Principal, tenant, id string, match params.IfMatch, r *client.Revocation) (*tagged[client.Key], error) {
	if err := s.matches(ctx, tenant, id, match); err != nil {
		return nil, err
	}
	reason := ""
	if r != nil {
		reason = r.Reason
	}
	k, err := s.Admin.RevokeKey(ctx, p, tenant, id, reason)
	if err != nil {
		return nil, err
	}
	return &tagged[client.Key]{keyTag(k), toKey(k)}, nil
}

func toKey(k access.Key) client.Key {
	return client.Key{ID: k.ID, Tenant: k.Tenant, Name: k.Name, Roles: append([]string{}, words[string](k.Roles)...), Scopes: words[string](k.Scopes),
		Created: k.Created, CreatedBy: k.CreatedBy, Expires: k.Expires, Revoked: k.Revoked, RevokedBy: k.RevokedBy, ReplacedBy: k.ReplacedBy,
		Used: k.Used, State: k.State(time.Now())}
}

func words[To, From ~string](list []From) []To {
	var out []To
	for _, w := range list {
		out = append(out, To(w))
	}
	return out
}
