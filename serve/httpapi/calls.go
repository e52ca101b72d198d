package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

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
	route(s, operation{id: "list-usage", method: http.MethodGet, path: "/v1/usage", tag: "calls", summary: "What the tenant's calls came to, by day and skill, the newest day first",
		about: "Counted with each record, by the day on which the call ended, UTC; it stays when records are erased.",
		need:  may(access.ReadRuns)}, s.listUsage)
}

func (s *server) listCalls(ctx context.Context, p access.Principal, in *struct {
	params.Paging
	Skill  string `query:"skill" maxLength:"512" doc:"only calls of this skill"`
	Before string `query:"before" maxLength:"64" doc:"only calls older than the one of this id"`
}) (*answer[client.Page[client.Call]], error) {
	list := params.ListOf(p.Tenant, "list-calls", in.Skill, in.Before)
	before, err := params.ReadCursor(list, in.Cursor)
	if err != nil {
		return nil, err
	}
	if before == "" {
		before = in.Before
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

func (s *server) listUsage(ctx context.Context, p access.Principal, in *struct {
	params.Paging
	Skill string `query:"skill" maxLength:"512" doc:"only calls of this skill"`
	From  string `query:"from" format:"date" maxLength:"10" doc:"the first day, such as 2026-11-01"`
	To    string `query:"to" format:"date" maxLength:"10" doc:"the last day"`
}) (*answer[client.Page[client.Usage]], error) {
	list := params.ListOf(p.Tenant, "list-usage", in.Skill, in.From, in.To)
	position, err := params.ReadCursor(list, in.Cursor)
	if err != nil {
		return nil, err
	}
	f := toolcall.DailyFilter{Skill: in.Skill, Limit: in.Limit + 1}
	before, after, _ := strings.Cut(position, " ")
	for _, d := range []struct {
		text string
		day  *time.Time
	}{{in.From, &f.From}, {in.To, &f.To}, {before, &f.BeforeDay}} {
		if d.text == "" {
			continue
		}
		if *d.day, err = time.Parse(time.DateOnly, d.text); err != nil {
			return nil, problem(client.Invalid, "a day is written as 2026-11-30")
		}
	}
	f.AfterSkill = after
	found, err := s.Store.DailyCalls(ctx, p.Tenant, f)
	if err != nil {
		return nil, err
	}
	page := client.Page[client.Usage]{Items: []client.Usage{}}
	if len(found) > in.Limit {
		found = found[:in.Limit]
		last := found[in.Limit-1]
		page.Next = params.NewCursor(list, last.Day.Format(time.DateOnly)+" "+last.Skill)
	}
	for _, d := range found {
		page.Items = append(page.Items, client.Usage{Day: d.Day.Format(time.DateOnly), Skill: d.Skill, Calls: d.Calls, Succeeded: d.Succeeded,
			DurationSeconds: d.Duration.Seconds(), WaitedSeconds: d.Waited.Seconds(), OutputBytes: d.OutputBytes})
	}
	return &answer[client.Page[client.Usage]]{page}, nil
}
