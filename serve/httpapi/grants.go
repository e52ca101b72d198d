package httpapi

import (
	"context"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/internal/params"
)

func (s *server) grantRoutes() {
	route(s, operation{id: "list-grants", method: http.MethodGet, path: "/v1/grants", tag: "grants", summary: "The tenant's grants, the newest first",
		need: may(access.ReadGrants)}, s.listGrants)
	route(s, operation{id: "get-grant", method: http.MethodGet, path: "/v1/grants/{grant}", tag: "grants", summary: "One grant",
		need: may(access.ReadGrants)}, s.getGrant)
	route(s, operation{id: "create-grant", method: http.MethodPost, path: "/v1/grants", tag: "grants", summary: "Let the tenant run what was reviewed", status: http.StatusCreated,
		about: "Grants the content that has the digest. When it has changed since the review the answer is content_changed, and the new digest is not told: review it again.",
		need:  may(access.WriteGrants)}, s.createGrant)
	route(s, operation{id: "revoke-grant", method: http.MethodPost, path: "/v1/grants/{grant}/revoke", tag: "grants", summary: "Take a grant back", change: true,
		need: may(access.WriteGrants)}, s.revokeGrant)
}

func (s *server) listGrants(ctx context.Context, p access.Principal, in *struct {
	params.Paging
	Skill string `query:"skill" maxLength:"512" doc:"only grants of this skill"`
}) (*answer[client.Page[client.Grant]], error) {
	list := params.ListOf(p.Tenant, "list-grants", in.Skill)
	before, err := params.ReadCursor(list, in.Cursor)
	if err != nil {
		return nil, err
	}
	found, err := s.Admin.Grants(ctx, p.Tenant, grant.Filter{Skill: in.Skill, Before: before, Limit: in.Limit + 1})
	if err != nil {
		return nil, err
	}
	page := client.Page[client.Grant]{Items: []client.Grant{}}
	if len(found) > in.Limit {
		found = found[:in.Limit]
		page.Next = params.NewCursor(list, found[in.Limit-1].ID)
	}
	states, err := s.Admin.States(ctx, found, time.Now())
	if err != nil {
		return nil, err
	}
	for i, g := range found {
		one := toGrant(g)
		one.State = states[i]
		page.Items = append(page.Items, one)
	}
	return &answer[client.Page[client.Grant]]{page}, nil
}

func (s *server) getGrant(ctx context.Context, p access.Principal, in *struct {
	ID string `path:"grant" maxLength:"64"`
}) (*tagged[client.Grant], error) {
	g, err := s.Store.GrantByID(ctx, p.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	states, err := s.Admin.States(ctx, []grant.Grant{g}, time.Now())
	if err != nil {
		return nil, err
	}
	out := tagGrant(g)
	out.Body.State = states[0]
	return out, nil
}

func (s *server) createGrant(ctx context.Context, p access.Principal, in *struct{ Body client.NewGrant }) (*tagged[client.Grant], error) {
	n := in.Body
	g := admin.Granting{
		Actor: p.Actor, Digest: n.Digest, MinTier: grant.Tier(n.MinTier), Reason: n.Reason, Source: n.Source, Expires: n.Expires, Replace: n.Replace,
		Ref: grant.Ref{Tenant: p.Tenant, Skill: n.Skill, Script: n.Script, AllScripts: n.AllScripts},
	}
	if !n.Expires.IsZero() && !n.Expires.After(time.Now()) {
		return nil, problem(client.Invalid, "it would have expired already")
	}
	if g.MinTier == "" {
		standing, err := s.Runner.Standing(ctx)
		if err != nil {
			return nil, err
		}
		g.MinTier = standing.Tier
	}
	made, err := s.Admin.Grant(ctx, g)
	if err != nil {
		return nil, err
	}
	return tagGrant(made), nil
}

func (s *server) revokeGrant(ctx context.Context, p access.Principal, in *struct {
	ID string `path:"grant" maxLength:"64"`
	params.IfMatch
	Body *client.Revocation
}) (*tagged[client.Grant], error) {
	m, err := in.Match()
	if err != nil {
		return nil, err
	}
	g, err := s.Store.GrantByID(ctx, p.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	// A grant changes once alone, when it is revoked: who is second finds a conflict.
	if err := m.Check(tagGrant(g).ETag); err != nil {
		return nil, err
	}
	var reason string
	if in.Body != nil {
		reason = in.Body.Reason
	}
	if g, err = s.Admin.Revoke(ctx, p.Actor, p.Tenant, in.ID, reason); err != nil {
		return nil, err
	}
	return tagGrant(g), nil
}

func tagGrant(g grant.Grant) *tagged[client.Grant] {
	return &tagged[client.Grant]{params.ETag("grant", g.Ref.Tenant, g.ID, strconv.FormatInt(g.Revoked.UnixMicro(), 10)), toGrant(g)}
}

func toGrant(g grant.Grant) client.Grant {
	return client.Grant{
		ID: g.ID, Ref: toRef(g.Ref), Pin: g.Pin, Reason: g.Reason, Source: shown(g.Source), GrantedBy: g.GrantedBy, Granted: g.Granted,
		Expires: g.Expires, Revoked: g.Revoked, RevokedBy: g.RevokedBy, MinTier: string(g.MinTier), State: g.State(time.Now()),
	}
}

func toRef(r grant.Ref) client.Ref {
	return client.Ref{Tenant: r.Tenant, Skill: r.Skill, Script: r.Script, AllScripts: r.AllScripts}
}

// shown is the source of a content as strangers see it: a path of the host is none of
// their business.
func shown(source string) string {
	if filepath.IsAbs(source) || strings.HasPrefix(source, "/") {
		return ""
	}
	return source
}
