package oidc

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/internal/strictjson"
)

// maxSubject is the most bytes of somebody's name at the provider; OpenID Connect
// allows no more.
const maxSubject = 255

// principal makes somebody of the claims, which the provider signed.
func (c Config) principal(subject string, raw []byte) (access.Principal, error) {
	bad := func(format string, args ...any) (access.Principal, error) {
		return access.Principal{}, fmt.Errorf("%w: "+format, append([]any{ErrToken}, args...)...)
	}
	if subject == "" || len(subject) > maxSubject || strings.ContainsFunc(subject, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return bad("its subject is no name")
	}
	var claims map[string]any
	if err := strictjson.Unmarshal(raw, &claims); err != nil {
		return bad("%w", err)
	}
	p := access.Principal{Actor: "oidc " + subject, Tenant: c.Tenant}
	for _, name := range texts(find(claims, c.RolesClaim)) {
		if role, ok := c.Roles[name]; ok && !slices.Contains(p.Roles, role) {
			p.Roles = append(p.Roles, role)
		}
	}
	slices.Sort(p.Roles)
	if c.TenantClaim != "" {
		switch named := find(claims, c.TenantClaim).(type) {
		case nil:
		case string:
			p.Tenant = named
		default:
			return bad("its claim %s is no text", c.TenantClaim)
		}
	}
	switch platform := slices.Contains(p.Roles, access.Platform); {
	case len(p.Roles) == 0:
		return bad("it has none of the roles")
	case platform && c.Tenant != "" && len(p.Roles) == 1:
		p.Tenant = "" // the provider's people are of one tenant; these are the platform's
	case platform && (p.Tenant != "" || len(p.Roles) > 1):
		return bad("it has the platform's role, and a tenant's too")
	case !platform && p.Tenant == "":
		return bad("it names no tenant")
	}
	return p, nil
}

// find returns the claim of that name, or the one that lies in others where its name
// has points.
func find(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	first, rest, ok := strings.Cut(name, ".")
	if in, is := claims[first].(map[string]any); ok && is {
		return find(in, rest)
	}
	return nil
}

// texts returns a text or a list of texts as a list; what else it holds gives nothing.
func texts(v any) (list []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, item := range v {
			if s, ok := item.(string); ok {
				list = append(list, s)
			}
		}
	}
	return list
}
