package retention

import (
	"context"
	"errors"
	"time"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store"
)

// A use is what is known of a content from those who name it.
type use struct {
	named   int64     // grants and versions
	inForce bool      // one of them is
	others  bool      // one of them is of another tenant than the one that is deleted
	ended   time.Time // when the last of the others ended
}

// uses are the contents that grants and versions name.
type uses map[bundle.Digest]*use

func (u uses) of(d bundle.Digest) *use {
	if u[d] == nil {
		u[d] = &use{}
	}
	return u[d]
}

// name says that a grant or a version names d.
func (u uses) name(d bundle.Digest, other bool) {
	c := u.of(d)
	c.named++
	c.others = c.others || other
}

// end says that something that named d ended at t.
func (u uses) end(d bundle.Digest, t time.Time) {
	if c := u.of(d); t.After(c.ended) {
		c.ended = t
	}
}

// look returns the contents whose time is over, and the names of all tenants.
func (e *erasing) look(ctx context.Context) (expired []store.Expired, tenants []string, err error) {
	v, err := e.store.Survey(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if tenants, err = v.Tenants(ctx); err != nil || e.rules.Contents == 0 && !e.all {
		return nil, tenants, err
	}
	used := uses{}
	for _, name := range tenants {
		if err := e.grants(ctx, v, name, used); err != nil {
			return nil, nil, err
		}
		if err := e.versions(ctx, v, name, used); err != nil {
			return nil, nil, err
		}
	}
	for d, err := range v.Digests(ctx) {
		if err != nil {
			return nil, nil, err
		}
		if u := used.of(d); e.over(u) {
			expired = append(expired, store.Expired{Digest: d, Named: u.named})
		}
	}
	return expired, tenants, nil
}

// over reports whether the content that u is of goes now: its time is over, or nobody
// but the tenant that is deleted names it.
func (e *erasing) over(u *use) bool {
	if e.all {
		return u.named > 0 && !u.others
	}
	return !u.inForce && u.ended.Before(e.now.Add(-e.rules.Contents))
}

// grants looks at the tenant's grants. Of each reference the newest counts; one
// before it ended when the next one came.
func (e *erasing) grants(ctx context.Context, v store.Survey, tenant string, used uses) error {
	newest := map[grant.Ref]grant.Grant{}
	for g, err := range v.Grants(ctx, tenant) {
		if err != nil {
			return err
		}
		used.name(g.Pin, tenant != e.tenant)
		used.end(g.Pin, g.Granted)
		if last, ok := newest[g.Ref]; ok {
			used.end(last.Pin, g.Granted)
		}
		newest[g.Ref] = g
	}
	for _, g := range newest {
		if g.InForce(e.now) {
			used.of(g.Pin).inForce = true
			continue
		}
		used.end(g.Pin, g.Revoked)
		if g.Revoked.IsZero() {
			used.end(g.Pin, g.Expires)
		}
	}
	return nil
}

// versions looks at the tenant's imported skills, in the same way.
func (e *erasing) versions(ctx context.Context, v store.Survey, tenant string, used uses) error {
	newest := map[string]admin.Version{}
	for version, err := range v.Versions(ctx, tenant) {
		if err != nil {
			return err
		}
		if last, ok := newest[version.Skill]; ok && !last.Deleted {
			used.end(last.Digest, version.Imported)
		}
		if newest[version.Skill] = version; version.Deleted {
			continue
		}
		used.name(version.Digest, tenant != e.tenant)
		used.end(version.Digest, version.Imported)
	}
	for _, version := range newest {
		if !version.Deleted {
			used.of(version.Digest).inForce = true
		}
	}
	return nil
}

// content takes one content away.
func (e *erasing) content(ctx context.Context, c store.Expired) error {
	facts := audit.Facts("digest", c.Digest.String(), "contentsOlderThan", age(e.rules.Contents), "deletedTenant", e.tenant)
	return e.commit(ctx, gate.HostTenant, facts, func(ctx context.Context, p audit.Pending) error {
		return e.store.EraseContents(ctx, []store.Expired{c}, p)
	})
}
