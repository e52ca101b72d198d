package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/id"
)

// Errors of a change of grants.
var (
	// ErrChanged: the content is no longer the one that was reviewed. Review it
	// again. The error does not tell the new digest: whoever learned it here could
	// grant it unseen.
	ErrChanged = fmt.Errorf("%w: the content is not the one that was reviewed", grant.ErrConflict)
	// ErrPinned: a grant in force pins other content. Look at the difference, then replace it.
	ErrPinned = fmt.Errorf("%w: a grant in force pins other content", grant.ErrConflict)
)

// A Granting says what is to be granted.
type Granting struct {
	Actor   string
	Ref     grant.Ref
	Digest  bundle.Digest // of the content that was reviewed; required
	MinTier grant.Tier    // required
	Reason  string
	Source  string    // where the content came from, for information
	Expires time.Time // zero: does not expire
	Replace bool      // replace a grant in force that pins other content
}

// Grant lets the tenant run what g.Ref names while its content has g.Digest.
// The content is read once, compared with g.Digest, and kept with the grant, so
// that a later difference can be shown.
//
// # Errors
//
// ErrChanged, ErrPinned, grant.ErrRef, bundle.ErrContent and gate.ErrUnknown as
// they say; grant.ErrConflict when another grant came first; access.ErrQuota; ErrDeleted.
func (a *Admin) Grant(ctx context.Context, g Granting) (grant.Grant, error) {
	if err := errors.Join(g.Ref.Validate(), gate.CheckTenant(g.Ref.Tenant)); err != nil {
		return grant.Grant{}, err
	}
	content, err := a.read(ctx, g.Ref)
	if err != nil {
		return grant.Grant{}, err
	}
	if g.Digest.IsZero() || content.Digest() != g.Digest {
		return grant.Grant{}, ErrChanged
	}
	newest, err := a.c.Store.Grant(ctx, g.Ref)
	switch {
	case errors.Is(err, grant.ErrNotFound):
		newest = grant.Grant{}
	case err != nil:
		return grant.Grant{}, err
	case newest.InForce(time.Now()) && newest.Pin != g.Digest && !g.Replace:
		return grant.Grant{}, fmt.Errorf("%w: grant %s for %s", ErrPinned, newest.ID, newest.Ref)
	}
	gr := grant.Grant{ID: id.New(), Ref: g.Ref, Pin: g.Digest, Reason: g.Reason, Source: g.Source, GrantedBy: g.Actor,
		Granted: time.Now().UTC().Truncate(time.Microsecond), Expires: g.Expires.UTC(), MinTier: g.MinTier}
	if err := gr.Validate(); err != nil {
		return grant.Grant{}, err
	}
	facts := []string{"grant", gr.ID, "digest", gr.Pin.String(), "tier", string(gr.MinTier),
		"reason", audit.Clip(gr.Reason), "replaces", newest.ID}
	if !gr.Expires.IsZero() {
		facts = append(facts, "expires", gr.Expires.Format(time.RFC3339Nano))
	}
	quota, err := a.room(ctx, gr.Ref.Tenant)
	if err != nil {
		return grant.Grant{}, err
	}
	e := audit.Entry{Tenant: gr.Ref.Tenant, Actor: g.Actor, Kind: audit.Granted, Subject: audit.Clip(gr.Ref.String()), Facts: audit.Facts(facts...)}
	return gr, a.write(ctx, e, false, func(ctx context.Context, entry audit.Pending) error {
		return a.c.Store.Within(quota).AddGrant(ctx, gr, content, newest.ID, entry)
	})
}

// read reads the skill's content within the host's limits, as the gate will.
func (a *Admin) read(ctx context.Context, ref grant.Ref) (bundle.Bundle, error) {
	h, err := a.Host(ctx)
	if err != nil {
		return bundle.Bundle{}, err
	}
	if !ref.AllScripts {
		if _, err := a.c.Contents.Find(ctx, ref.Tenant, ref.Skill, ref.Script); err != nil {
			return bundle.Bundle{}, err
		}
	}
	b, err := a.c.Contents.Read(ctx, ref.Tenant, ref.Skill, h.Content)
	if err != nil {
		return bundle.Bundle{}, err
	}
	return b, b.Within(h.Content)
}

// Revoke takes the tenant's grant back. A call that waits for a slot is refused
// too; one that runs goes on.
//
// # Errors
//
// grant.ErrNotFound, and grant.ErrConflict when it was revoked before.
func (a *Admin) Revoke(ctx context.Context, actor, tenant, grantID, reason string) (grant.Grant, error) {
	g, err := a.c.Store.GrantByID(ctx, tenant, grantID)
	if err != nil {
		return grant.Grant{}, err
	}
	g.Revoked, g.RevokedBy = time.Now().UTC().Truncate(time.Microsecond), actor
	e := audit.Entry{Tenant: tenant, Actor: actor, Kind: audit.Revoked, Subject: audit.Clip(g.Ref.String()),
		Facts: audit.Facts("grant", g.ID, "digest", g.Pin.String(), "reason", audit.Clip(reason))}
	return g, a.write(ctx, e, false, func(ctx context.Context, entry audit.Pending) error {
		return a.c.Store.RevokeGrant(ctx, tenant, g.ID, g.Revoked, actor, entry)
	})
}

// Grants returns the tenant's grants, the newest first.
func (a *Admin) Grants(ctx context.Context, tenant string, f grant.Filter) ([]grant.Grant, error) {
	return a.c.Store.Grants(ctx, tenant, f)
}

// Replaced is the state of a grant that would be in force, and of whose reference a
// newer one decides.
const Replaced = "replaced"

// States returns the state of each of the grants at the time now: that of
// [grant.Grant.State], or Replaced.
func (a *Admin) States(ctx context.Context, grants []grant.Grant, now time.Time) ([]string, error) {
	newest := map[grant.Ref]string{} // their ids
	states := make([]string, len(grants))
	for i, g := range grants {
		if states[i] = g.State(now); !g.InForce(now) {
			continue
		}
		if newest[g.Ref] == "" {
			last, err := a.c.Store.Grant(ctx, g.Ref)
			if err != nil {
				return nil, err
			}
			newest[g.Ref] = last.ID
		}
		if newest[g.Ref] != g.ID {
			states[i] = Replaced
		}
	}
	return states, nil
}

// A Review is what a reviewer reads before a grant: the content as it is now,
// and what was granted before.
type Review struct {
	Ref     grant.Ref
	Content bundle.Bundle // as it is now; its digest is what a grant of it names
	Granted grant.Grant   // the newest grant that decides for Ref; zero for none
	Old     bundle.Bundle // what Granted pins; zero for none, and where Granted is no longer in force and its content was erased
	Changes []bundle.Change
}

// Review returns what a reviewer of ref reads. For a script without a grant of
// its own it compares with that of the whole skill, as the gates do.
func (a *Admin) Review(ctx context.Context, ref grant.Ref) (Review, error) {
	if err := ref.Validate(); err != nil {
		return Review{}, err
	}
	content, err := a.read(ctx, ref)
	if err != nil {
		return Review{}, err
	}
	r := Review{Ref: ref, Content: content}
	r.Granted, err = a.c.Store.Grant(ctx, ref)
	if errors.Is(err, grant.ErrNotFound) && !ref.AllScripts {
		r.Granted, err = a.c.Store.Grant(ctx, grant.Ref{Tenant: ref.Tenant, Skill: ref.Skill, AllScripts: true})
	}
	switch {
	case errors.Is(err, grant.ErrNotFound):
		r.Granted = grant.Grant{}
		return r, nil
	case err != nil:
		return Review{}, err
	}
	r.Old, err = a.c.Store.Content(ctx, ref.Tenant, r.Granted.Pin)
	if errors.Is(err, grant.ErrNotFound) && !r.Granted.InForce(time.Now()) { // its time was over
		return r, nil
	}
	if err != nil {
		return Review{}, fmt.Errorf("the granted content: %w", err)
	}
	r.Changes = bundle.Diff(r.Old, content)
	return r, nil
}
