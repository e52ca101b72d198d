package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Permission is one kind of thing that may be done within a tenant, or, from
// the platform's on, to the whole installation. The set is closed; see [Permissions].
type Permission string

// What a tenant's principal may do.
const (
	ReadSkills  Permission = "skills.read"  // list, show, export, history, difference, lint
	WriteSkills Permission = "skills.write" // import, delete
	ReadGrants  Permission = "grants.read"  // list, review, difference, explain
	WriteGrants Permission = "grants.write" // grant, replace, revoke
	ReadRuns    Permission = "runs.read"    // runs, records of calls, usage
	WriteRuns   Permission = "runs.write"   // start, cancel
	ReadPolicy  Permission = "policy.read"
	WritePolicy Permission = "policy.write"
	ReadAudit   Permission = "audit.read" // the tenant's own entries, and proofs of them
	ReadKeys    Permission = "keys.read"
	WriteKeys   Permission = "keys.write" // the tenant's own keys: create, rotate, revoke
)

// What a platform's principal may do. None of it reaches into a tenant's skills,
// runs or records; [ReadEntries] alone reads what the log tells of them.
const (
	ReadHost      Permission = "host.read"        // posture, runtimes, the host's settings, the host's part of the log
	WriteHost     Permission = "host.write"       // the host's settings, runtimes
	ReadTenants   Permission = "tenants.read"     // tenants, and the ids of their keys
	WriteTenants  Permission = "tenants.write"    // create tenants, their quotas, and keys for them
	ReadPlatform  Permission = "platform.read"    // verify and checkpoints of the whole log, not its entries; checks of what is kept; the platform's keys
	WritePlatform Permission = "platform.write"   // erase what is over its time, replace the log's key
	ReadEntries   Permission = "platform.entries" // the entries of the whole log, and proofs of them
	WriteKeysOf   Permission = "platform.keys"    // the platform's own keys
)

// A Role is a set of permissions with a name.
type Role string

// The roles of a tenant. Granting and approving can be held by other people than
// importing: no role but Admin has both [WriteSkills] and [WriteGrants].
const (
	Reader   Role = "reader"   // reads everything of the tenant but its keys
	Operator Role = "operator" // and imports skills and runs scripts
	Approver Role = "approver" // reads, and grants and revokes
	Admin    Role = "admin"    // everything within the tenant
)

// Platform is the role of those who run the installation. It is never held
// together with a tenant, nor with another role.
const Platform Role = "platform"

var reads = []Permission{ReadSkills, ReadGrants, ReadRuns, ReadPolicy, ReadAudit}

var grants = map[Role][]Permission{
	Reader:   reads,
	Operator: append(slices.Clone(reads), WriteSkills, WriteRuns),
	Approver: append(slices.Clone(reads), WriteGrants),
	Admin:    append(slices.Clone(reads), WriteSkills, WriteRuns, WriteGrants, WritePolicy, ReadKeys, WriteKeys),
	Platform: {ReadHost, WriteHost, ReadTenants, WriteTenants, ReadPlatform, WritePlatform, ReadEntries, WriteKeysOf},
}

// Roles returns the roles, the weakest first, the platform's last.
func Roles() []Role { return []Role{Reader, Operator, Approver, Admin, Platform} }

// Permissions returns every permission, those of tenants first.
func Permissions() []Permission { return append(slices.Clone(grants[Admin]), grants[Platform]...) }

// Permissions returns what the role gives: nothing for one that is none.
func (r Role) Permissions() []Permission { return slices.Clone(grants[r]) }

// ErrDenied is wrapped by what says that a principal may not do what it asked for.
var ErrDenied = errors.New("access: not allowed")

// A Principal is somebody whom a door knows. The zero Principal may do nothing.
type Principal struct {
	Tenant string       // whose everything is that it sees; empty for the platform's
	Actor  string       // who, for the log
	Roles  []Role       // of the tenant, or Platform alone
	Scopes []Permission // narrow what the roles give; empty: all of it
	Key    string       // id of the API key; empty where there was none
}

// May reports whether p may do that.
func (p Principal) May(what Permission) bool {
	if len(p.Scopes) > 0 && !slices.Contains(p.Scopes, what) {
		return false
	}
	return p.validate() == nil && slices.ContainsFunc(p.Roles, func(r Role) bool { return slices.Contains(grants[r], what) })
}

// Check returns nil if p may do that, else an error that wraps ErrDenied and names
// what is missing. A door asks the function [Check], which asks the embedder too.
func (p Principal) Check(what Permission) error {
	if p.May(what) {
		return nil
	}
	return fmt.Errorf("%w: it takes %s", ErrDenied, what)
}

// Same reports whether p is whom other is: of the same tenant, and the same actor. Roles
// and keys may be others: whose key was replaced is who they were.
func (p Principal) Same(other Principal) bool {
	return p.Tenant == other.Tenant && p.Actor == other.Actor
}

// Covers reports whether p may hand roles and scopes on to a key of tenant, empty for
// the platform's: nobody hands on what he does not hold. The platform makes keys for
// tenants, which it does not hold itself, by [WriteTenants]; a tenant's principal makes
// none but of its own tenant. What nobody could hold is never covered.
func (p Principal) Covers(tenant string, roles []Role, scopes []Permission) bool {
	other := Principal{Tenant: tenant, Actor: p.Actor, Roles: roles, Scopes: scopes}
	switch {
	case p.validate() != nil, other.validate() != nil, checkRoles(roles, scopes) != nil:
		return false
	case p.IsPlatform() && tenant != "":
		return p.May(WriteTenants)
	case p.Tenant != tenant:
		return false
	}
	for _, what := range Permissions() {
		if other.May(what) && !p.May(what) {
			return false
		}
	}
	return true
}

// List is the roles for people: their names with commas.
func List(roles []Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}

// checkRoles says why nobody can have these roles and scopes, or nil: there is a
// role, each is one, and each scope is something that they give.
func checkRoles(roles []Role, scopes []Permission) error {
	if len(roles) == 0 {
		return fmt.Errorf("%w: no role is named; the roles are %s", ErrInvalid, List(Roles()))
	}
	for i, r := range roles {
		if !slices.Contains(Roles(), r) {
			return fmt.Errorf("%w: %q is no role; the roles are %s", ErrInvalid, r, List(Roles()))
		}
		if slices.Contains(roles[:i], r) {
			return fmt.Errorf("%w: the role %s stands twice", ErrInvalid, r)
		}
	}
	for i, what := range scopes {
		if !slices.ContainsFunc(roles, func(r Role) bool { return slices.Contains(grants[r], what) }) {
			return fmt.Errorf("%w: the roles %s do not give the scope %q", ErrInvalid, List(roles), what)
		}
		if slices.Contains(scopes[:i], what) {
			return fmt.Errorf("%w: the scope %s stands twice", ErrInvalid, what)
		}
	}
	return nil
}

// IsPlatform reports whether p belongs to the platform, not to a tenant.
func (p Principal) IsPlatform() bool {
	return p.validate() == nil && slices.Contains(p.Roles, Platform)
}

// validate says why p is nobody: a platform's role and a tenant never go together.
func (p Principal) validate() error {
	if p.Actor == "" {
		return fmt.Errorf("%w: nobody is named", ErrDenied)
	}
	platform := slices.Contains(p.Roles, Platform)
	if platform != (p.Tenant == "") || platform && len(p.Roles) != 1 {
		return fmt.Errorf("%w: the platform's role and a tenant exclude each other", ErrDenied)
	}
	return nil
}
