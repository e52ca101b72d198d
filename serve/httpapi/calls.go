package httpapi

import (
	"context"
	"net/http"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/internal/params"
	"github.com/tracon-go/tracon/toolcall"
)

func (s *server) callRoutes() {
	route(s, operation{id: "list-calls", method: http.MethodGet, path: "/v1/calls", tag: "calls", summary: "The records of the tenant's calls, the newest first",
		need: may(access.ReadRuns)}, s.listCalls)
	route(s, operation{id: "get-call", method: http.MethodGet, path: "/v1/calls/{call}", tag: "calls", summary: "The record of one call",
		need: may(access.ReadRuns)}, s.getCall)
}

func (s *server) listCalls(ctx context.Context, p access.Principal, in *struct {
	params.Paging
	Skill string `query:"skill" maxLength:"512" doc:"only calls of this skill"`
}) (*answer[client.Page[client.Call]], error) {
	list := params.ListOf(p.Tenant, "list-calls", in.Skill)
	before, err := params.ReadCursor(list, in.Cursor)
	if err != nil {
		return nil, err
	}
	found, err := s.Store.Calls(ctx, p.Tenant, toolcall.Filter{Skill: in.Skill, Before: before, Limit: in.Limit + 1})
	if err != nil {
		return nil, err
	}
	page := client.Page[client.Call]{Items: []client.Call{}}
	if len(found) > in.Limit {
		found = found[:in.Limit]
		page.Next = params.NewCursor(list, found[in.Limit-1].ID)
	}
	for _, r := range found {
		page.Items = append(page.Items, toCall(r))
	}
	return &answer[client.Page[client.Call]]{page}, nil
}

func (s *server) getCall(ctx context.Context, p access.Principal, in *struct {
	ID string `path:"call" maxLength:"64"`
}) (*answer[client.Call], error) {
	r, err := s.Store.Call(ctx, p.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	return &answer[client.Call]{toCall(r)}, nil
}
