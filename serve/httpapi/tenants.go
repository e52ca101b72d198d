package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/internal/params"
)

func (s *server) tenantRoutes() {
	read, write := may(access.ReadTenants), may(access.WriteTenants)
	route(s, operation{id: "list-tenants", method: http.MethodGet, path: "/v1/tenants", tag: "tenants", summary: "The tenants, by name", need: read}, s.listTenants)
	route(s, operation{id: "get-tenant", method: http.MethodGet, path: "/v1/tenants/{tenant}", tag: "tenants", summary: "One tenant", need: read}, s.getTenant)
	route(s, operation{id: "create-tenant", method: http.MethodPost, path: "/v1/tenants", tag: "tenants", summary: "Make a tenant", status: http.StatusCreated, need: write}, s.createTenant)
	route(s, operation{id: "change-tenant", method: http.MethodPatch, path: "/v1/tenants/{tenant}", tag: "tenants", summary: "Switch a tenant off or on, and set its quota and rates", change: true, need: write}, s.changeTenant)
	route(s, operation{id: "preview-tenant-deletion", method: http.MethodGet, path: "/v1/tenants/{tenant}/deletion", tag: "tenants", summary: "What deleting a tenant would take away; it changes nothing",
		need: read}, s.previewDeletion)
	route(s, operation{id: "delete-tenant", method: http.MethodDelete, path: "/v1/tenants/{tenant}", tag: "tenants", summary: "Delete a tenant for ever", change: true,
		about: "Its keys let nobody in any more, its grants and skills are taken back, and its records and the contents that nobody else names are erased. The log keeps its entries. The name is not given again. While runs of it are under way the answer is runs_under_way. Said again, it takes away what is there still.",
		need:  write}, s.deleteTenant)
}

func (s *server) listTenants(ctx context.Context, _ access.Principal, in *struct{ params.Paging }) (*answer[client.Page[client.Tenant]], error) {
	list := params.ListOf("", "list-tenants")
	after, err := params.ReadCursor(list, in.Cursor)
	if err != nil {
		return nil, err
	}
	found, err := s.Admin.Tenants(ctx, access.TenantFilter{After: after, Limit: in.Limit + 1})
	if err != nil {
		return nil, err
	}
	page := client.Page[client.Tenant]{Items: []client.Tenant{}}
	if len(found) > in.Limit {
		found = found[:in.Limit]
		page.Next = params.NewCursor(list, found[in.Limit-1].Name)
	}
	for _, t := range found {
		page.Items = append(page.Items, toTenant(t))
	}
	return &answer[client.Page[client.Tenant]]{page}, nil
}

// TenantName is the tenant that the platform asks about: the one place where a path names one.
type TenantName struct {
	Tenant string `path:"tenant" maxLength:"512"`
}

func (s *server) getTenant(ctx context.Context, _ access.Principal, in *struct{ TenantName }) (*tagged[client.Tenant], error) {
	t, revision, err := s.Store.TenantAt(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	if revision == 0 {
		return nil, notFound()
	}
	return &tagged[client.Tenant]{tenantTag(in.Tenant, revision), toTenant(t)}, nil
}

func tenantTag(name string, revision int64) string {
	return params.ETag("tenant", name, strconv.FormatInt(revision, 10))
}

func (s *server) createTenant(ctx context.Context, p access.Principal, in *struct{ Body client.NewTenant }) (*tagged[client.Tenant], error) {
	t, err := s.Admin.CreateTenant(ctx, p, access.Tenant{Name: in.Body.Name, Quota: access.Quota(in.Body.Quota), Rates: access.Rates(in.Body.Rates)})
	if err != nil {
		return nil, err
	}
	return &tagged[client.Tenant]{tenantTag(t.Name, 1), toTenant(t)}, nil
}

func (s *server) changeTenant(ctx context.Context, p access.Principal, in *struct {
	params.IfMatch
	TenantName
	Body client.TenantChange
}) (*tagged[client.Tenant], error) {
	m, err := in.Match()
	if err != nil {
		return nil, err
	}
	_, err = s.Admin.SetTenant(ctx, p, in.Tenant, func(t *access.Tenant) error {
		_, revision, err := s.Store.TenantAt(ctx, in.Tenant) // behind t: see changePolicy
		if err != nil {
			return err
		}
		if err := m.Check(tenantTag(in.Tenant, revision)); err != nil {
			return err
		}
		assign(&t.Off, in.Body.Off)
		if in.Body.Quota != nil {
			t.Quota = access.Quota(*in.Body.Quota)
		}
		if in.Body.Rates != nil {
			t.Rates = access.Rates(*in.Body.Rates)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.getTenant(ctx, p, &struct{ TenantName }{in.TenantName})
}

func (s *server) previewDeletion(ctx context.Context, p access.Principal, in *struct{ TenantName }) (*answer[client.Deletion], error) {
	if s.Host == nil {
		return nil, errNotOffered()
	}
	done, err := s.Host.DeleteTenant(ctx, p, in.Tenant, "", true, nil)
	if err != nil {
		return nil, err
	}
	return &answer[client.Deletion]{done}, nil
}

func (s *server) deleteTenant(ctx context.Context, p access.Principal, in *struct {
	params.IfMatch
	TenantName
	Reason string `query:"reason" maxLength:"4096"`
}) (*answer[client.Deletion], error) {
	if s.Host == nil {
		return nil, errNotOffered()
	}
	m, err := in.Match()
	if err != nil {
		return nil, err
	}
	done, err := s.Host.DeleteTenant(ctx, p, in.Tenant, in.Reason, false, func(access.Tenant) error {
		_, revision, err := s.Store.TenantAt(ctx, in.Tenant) // behind what is handed over: see changePolicy
		if err != nil {
			return err
		}
		return m.Check(tenantTag(in.Tenant, revision))
	})
	if err != nil {
		return nil, err
	}
	return &answer[client.Deletion]{done}, nil
}

func toTenant(t access.Tenant) client.Tenant {
	return client.Tenant{Name: t.Name, Created: t.Created, By: t.By, Off: t.Off, Deleted: t.Deleted, Quota: client.Quota(t.Quota), Rates: client.Rates(t.Rates)}
}
