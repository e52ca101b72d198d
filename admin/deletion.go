package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// ErrDeleted: the tenant was deleted. Nothing is kept for it any more, and its name is
// not given again.
var ErrDeleted = fmt.Errorf("%w: the tenant was deleted, and its name is not given again", grant.ErrConflict)

// ErrUnderWay: runs of the tenant are under way, and what they use is not taken away
// below them. Switch the tenant off, wait for them or cancel them, and say it again.
var ErrUnderWay = fmt.Errorf("%w: runs of the tenant are under way", grant.ErrConflict)

// alive says that the tenant was deleted, or nil. One that nobody made was not.
func (a *Admin) alive(ctx context.Context, tenant string) error {
	if tenant == "" {
		return nil // the platform
	}
	t, _, err := a.c.Store.TenantAt(ctx, tenant)
	if err == nil && !t.Deleted.IsZero() {
		err = fmt.Errorf("%w: %q", ErrDeleted, tenant)
	}
	return err
}

// Standing counts what of a tenant is in force, or was taken back.
type Standing struct {
	Keys   int `json:"keys"`   // that are not revoked
	Grants int `json:"grants"` // the newest of their references, and not revoked
	Skills int `json:"skills"` // imported, and not deleted
}

// MarkDeleted has the tenant be deleted from now on: no credential of it is let in,
// nothing of it runs, and nothing is kept for it any more. It is the first step of
// retention.DeleteTenant. Seen is asked before, unless it is nil, and may refuse. A tenant
// that was deleted before is returned as it is.
//
// # Errors
//
// access.ErrDenied; grant.ErrNotFound for one that nobody made; that of seen;
// audit.ErrUnavailable or the store's own when it could not be written.
func (a *Admin) MarkDeleted(ctx context.Context, by access.Principal, name, reason string, seen func(access.Tenant) error) (access.Tenant, error) {
	if err := by.Check(access.WriteTenants); err != nil {
		return access.Tenant{}, err
	}
	return set(func() (access.Tenant, error) {
		old, revision, err := a.tenantAt(ctx, name)
		if err != nil {
			return old, err
		}
		if seen != nil {
			if err := seen(old); err != nil {
				return old, err
			}
		}
		if !old.Deleted.IsZero() {
			return old, nil
		}
		t := old
		t.Off, t.Deleted = true, now()
		e := tenantEntry(by, t, tell(old), "act", "deleted", "reason", audit.Clip(reason))
		return t, a.write(ctx, e, false, func(ctx context.Context, entry audit.Pending) error {
			return a.c.Store.SetTenant(ctx, t, revision, entry)
		})
	})
}

// Withdraw takes back everything of a tenant that was deleted: its keys, its grants and
// its imported skills, each with its entry, and its policy, whose environment may be
// secret. It may be said again, and takes what is there still. With dry it only counts,
// and the tenant need not be deleted.
//
// # Errors
//
// access.ErrDenied; grant.ErrConflict for a tenant that was not deleted; and those of
// the changes.
func (a *Admin) Withdraw(ctx context.Context, by access.Principal, name, reason string, dry bool) (done Standing, err error) {
	need := access.WriteTenants
	if dry {
		need = access.ReadTenants
	}
	if err := by.Check(need); err != nil {
		return done, err
	}
	t, err := a.Tenant(ctx, name)
	if err != nil {
		return done, err
	}
	if !dry && t.Deleted.IsZero() {
		return done, fmt.Errorf("%w: the tenant %q was not deleted", grant.ErrConflict, name)
	}
	if done.Keys, err = a.withdrawKeys(ctx, by, name, reason, dry); err != nil {
		return done, err
	}
	if done.Grants, err = a.withdrawGrants(ctx, by, name, reason, dry); err != nil {
		return done, err
	}
	skills, err := a.c.Store.Skills(ctx, name)
	if err != nil {
		return done, err
	}
	for _, v := range skills {
		if !dry {
			_, err = a.DeleteSkill(ctx, by.Actor, name, v.Skill, reason)
		}
		if err = already(err); err != nil {
			return done, err
		}
		done.Skills++
	}
	if dry {
		return done, nil
	}
	p, _, err := a.c.Store.PolicyAt(ctx, name)
	if err != nil || tell(p) == tell(gate.Policy{}) {
		return done, err // it was emptied before: said again, there is nothing to write
	}
	_, err = a.setPolicy(ctx, by.Actor, name, func(p *gate.Policy) error { *p = gate.Policy{}; return nil })
	return done, err
}

func (a *Admin) withdrawKeys(ctx context.Context, by access.Principal, name, reason string, dry bool) (n int, err error) {
	for before := ""; ; {
		keys, err := a.c.Store.Keys(ctx, name, access.KeyFilter{Before: before})
		if err != nil || len(keys) == 0 {
			return n, err
		}
		for _, k := range keys {
			before = k.ID
			if !k.Revoked.IsZero() {
				continue
			}
			if !dry {
				_, err = a.RevokeKey(ctx, by, name, k.ID, reason)
			}
			if err = already(err); err != nil {
				return n, err
			}
			n++
		}
	}
}

func (a *Admin) withdrawGrants(ctx context.Context, by access.Principal, name, reason string, dry bool) (n int, err error) {
	seen := map[grant.Ref]bool{}
	for before := ""; ; {
		grants, err := a.c.Store.Grants(ctx, name, grant.Filter{Before: before})
		if err != nil || len(grants) == 0 {
			return n, err
		}
		for _, g := range grants {
			before = g.ID
			newest := !seen[g.Ref] // they come the newest first
			if seen[g.Ref] = true; !newest || !g.Revoked.IsZero() {
				continue
			}
			if !dry {
				_, err = a.Revoke(ctx, by.Actor, name, g.ID, reason)
			}
			if err = already(err); err != nil {
				return n, err
			}
			n++
		}
	}
}

// already is nil where somebody else was faster to take the same away.
func already(err error) error {
	if errors.Is(err, grant.ErrConflict) || errors.Is(err, grant.ErrNotFound) {
		return nil
	}
	return err
}
