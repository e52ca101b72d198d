package access_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tracon-go/tracon/access"
)

func principal(tenant string, roles []access.Role, scopes ...access.Permission) access.Principal {
	return access.Principal{Tenant: tenant, Actor: "ann", Roles: roles, Scopes: scopes}
}

func roles(r ...access.Role) []access.Role { return r }

// Zero is closed: who is nobody, or belongs to two worlds, may do nothing.
func TestNobody(t *testing.T) {
	for name, p := range map[string]access.Principal{
		"zero":                        {},
		"no name":                     {Tenant: "t", Roles: roles(access.Admin)},
		"no role":                     principal("t", nil),
		"a role that is none":         principal("t", roles("root")),
		"the platform with a tenant":  principal("t", roles(access.Platform)),
		"a tenant's without a tenant": principal("", roles(access.Admin)),
		"both":                        principal("", roles(access.Platform, access.Admin)),
		"both, with a tenant":         principal("t", roles(access.Admin, access.Platform)),
		"a scope alone":               principal("t", nil, access.ReadRuns),
	} {
		for _, what := range access.Permissions() {
			if p.May(what) || !errors.Is(p.Check(what), access.ErrDenied) {
				t.Errorf("%s may do %s", name, what)
			}
		}
		if p.IsPlatform() {
			t.Errorf("%s is the platform", name)
		}
		if p.Covers("t", roles(access.Reader), nil) || p.Covers("", roles(access.Platform), nil) {
			t.Errorf("%s may make keys", name)
		}
	}
}

// Who imports need not be who grants, and the platform reaches into no tenant.
func TestRoles(t *testing.T) {
	has := func(r access.Role, what access.Permission) bool { return slices.Contains(r.Permissions(), what) }
	for _, r := range access.Roles() {
		if r != access.Admin && has(r, access.WriteSkills) && has(r, access.WriteGrants) {
			t.Errorf("%s imports and grants", r)
		}
		if r != access.Admin && has(r, access.WriteKeys) {
			t.Errorf("%s makes keys", r)
		}
	}
	for _, what := range access.Platform.Permissions() {
		if has(access.Admin, what) {
			t.Errorf("%s is of the platform and of a tenant", what)
		}
	}
	if has("root", access.ReadRuns) || len(access.Role("").Permissions()) != 0 {
		t.Error("a role that is none gives something")
	}
	access.Admin.Permissions()[0] = "evil"
	if slices.Contains(access.Admin.Permissions(), "evil") {
		t.Error("a caller changed a role")
	}
}

// Scopes only narrow.
func TestScopesNarrow(t *testing.T) {
	p := principal("t", roles(access.Reader), access.ReadRuns, access.WriteGrants)
	for _, what := range access.Permissions() {
		if got := p.May(what); got != (what == access.ReadRuns) {
			t.Errorf("with the scopes %v a reader may do %s: %t", p.Scopes, what, got)
		}
	}
}

// Nobody hands on what he does not hold; the platform makes keys for tenants.
func TestCovers(t *testing.T) {
	admin := principal("t", roles(access.Admin))
	platform := principal("", roles(access.Platform))
	for _, tt := range []struct {
		name   string
		p      access.Principal
		tenant string
		roles  []access.Role
		scopes []access.Permission
		want   bool
	}{
		{"an admin, each role of his tenant", admin, "t", roles(access.Reader, access.Operator, access.Approver, access.Admin), nil, true},
		{"an admin, a narrowed key", admin, "t", roles(access.Admin), []access.Permission{access.ReadRuns}, true},
		{"an admin, another tenant", admin, "u", roles(access.Reader), nil, false},
		{"an admin, the platform", admin, "", roles(access.Platform), nil, false},
		{"an admin, the platform's role in his tenant", admin, "t", roles(access.Platform), nil, false},
		{"an admin, no role", admin, "t", nil, nil, false},
		{"an admin, a role that is none", admin, "t", roles("root"), nil, false},
		{"an admin, one that is none beside one", admin, "t", roles(access.Reader, "root"), nil, false},
		{"an admin, a scope that the roles do not give", admin, "t", roles(access.Reader), []access.Permission{access.WriteGrants}, false},
		{"an operator, his own role", principal("t", roles(access.Operator)), "t", roles(access.Operator), nil, true},
		{"an operator, more", principal("t", roles(access.Operator)), "t", roles(access.Approver), nil, false},
		{"a narrowed admin, as narrow", principal("t", roles(access.Admin), access.WriteKeys), "t", roles(access.Admin), []access.Permission{access.WriteKeys}, true},
		{"a narrowed admin, wider", principal("t", roles(access.Admin), access.WriteKeys), "t", roles(access.Admin), nil, false},
		{"a narrowed admin, beside it", principal("t", roles(access.Admin), access.WriteKeys), "t", roles(access.Admin), []access.Permission{access.ReadRuns}, false},
		{"the platform, a tenant's", platform, "t", roles(access.Admin), nil, true},
		{"the platform, its own", platform, "", roles(access.Platform), nil, true},
		{"the platform, its role for a tenant", platform, "t", roles(access.Platform), nil, false},
		{"the platform, a tenant's role for itself", platform, "", roles(access.Reader), nil, false},
		{"a narrowed platform, a tenant's", principal("", roles(access.Platform), access.ReadTenants), "t", roles(access.Reader), nil, false},
		{"a platform narrowed to tenants, a tenant's", principal("", roles(access.Platform), access.WriteTenants), "t", roles(access.Admin), nil, true},
		{"a platform narrowed to tenants, its own", principal("", roles(access.Platform), access.WriteTenants), "", roles(access.Platform), nil, false},
	} {
		if got := tt.p.Covers(tt.tenant, tt.roles, tt.scopes); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

type says struct{ err error }

func (s says) Authorize(context.Context, access.Principal, access.Permission) error { return s.err }

// An embedder's word can only narrow.
func TestCheck(t *testing.T) {
	no := errors.New("not on Sundays")
	reader := principal("t", roles(access.Reader))
	for _, tt := range []struct {
		name string
		a    access.Authorizer
		what access.Permission
		want []error
	}{
		{"roles alone", nil, access.ReadRuns, nil},
		{"both say yes", says{}, access.ReadRuns, nil},
		{"roles say no", nil, access.WriteRuns, []error{access.ErrDenied}},
		{"a yes does not widen", says{}, access.WriteRuns, []error{access.ErrDenied}},
		{"a no narrows", says{no}, access.ReadRuns, []error{access.ErrDenied, no}},
	} {
		err := access.Check(t.Context(), tt.a, reader, tt.what)
		if (err == nil) != (tt.want == nil) {
			t.Errorf("%s: got %v", tt.name, err)
		}
		for _, want := range tt.want {
			if !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", tt.name, err, want)
			}
		}
	}
}
