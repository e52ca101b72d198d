package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/grant"
)

// within adds a version within q.
func (k *kit) within(q access.Quota, tenant, skill, version, after string, deleted bool) error {
	c := bare(skill + version)
	v := versionOf(tenant, version, skill, c)
	if deleted {
		v = deletionOf(tenant, version, skill)
	}
	return k.commit(tenant, audit.Imported, func(ctx context.Context, p audit.Pending) error {
		if deleted {
			return k.store.Within(q).AddVersion(ctx, v, nil, after, p)
		}
		return k.store.Within(q).AddVersion(ctx, v, c, after, p)
	})
}

func (k *kit) grantWithin(q access.Quota, id string, ref grant.Ref, after string) error {
	c := bare("granted")
	return k.commit(ref.Tenant, audit.Granted, func(ctx context.Context, p audit.Pending) error {
		return k.store.Within(q).AddGrant(ctx, grantOf(id, ref, c), c, after, p)
	})
}

func quotaBounds(k *kit) {
	skills := access.Quota{Skills: 2}
	k.must(k.within(skills, alpha, "a", id(1), "", false))
	k.must(k.within(skills, alpha, "b", id(2), "", false))
	k.must(k.within(skills, beta, "a", id(1), "", false)) // another tenant's room
	n := k.size()
	k.wants(k.within(skills, alpha, "c", id(3), "", false), access.ErrQuota, "a third skill of two")
	if got := k.size(); got != n {
		k.broken("what the quota refused grew the log from %d to %d entries", n, got)
	}
	_, err := k.store.Content(k.Context(), alpha, bare("c"+id(3)).Digest())
	k.wants(err, grant.ErrNotFound, "the content of what the quota refused")
	k.must(k.within(skills, alpha, "a", id(4), id(1), false)) // a new version is no new skill
	k.must(k.within(skills, alpha, "b", id(5), id(2), true))
	k.must(k.within(skills, alpha, "c", id(6), "", false)) // the deletion made room
	k.wants(k.within(skills, alpha, "b", id(7), id(5), false), access.ErrQuota, "a deleted skill that comes again over the quota")

	u, err := k.store.Kept(k.Context(), alpha, at)
	k.must(err)
	bytes := access.Quota{Bytes: u.Bytes + int64(len("d"+id(8)))}
	k.must(k.within(bytes, alpha, "d", id(8), "", false))
	k.wants(k.within(bytes, alpha, "e", id(9), "", false), access.ErrQuota, "bytes over the quota")
	c := bare("d" + id(8))
	k.must(k.commit(alpha, audit.Imported, func(ctx context.Context, p audit.Pending) error { // bytes that it has already
		return k.store.Within(bytes).AddVersion(ctx, versionOf(alpha, id(10), "same bytes", c), c, "", p)
	}))
	k.must(k.within(access.Quota{Bytes: 1}, alpha, "d", id(11), id(8), true)) // what makes less is never refused

	grants := access.Quota{Grants: 1}
	k.must(k.grantWithin(grants, id(1), script(alpha, "a.py"), ""))
	k.wants(k.grantWithin(grants, id(2), script(alpha, "b.py"), ""), access.ErrQuota, "a second grant of one")
	k.must(k.grantWithin(grants, id(3), script(alpha, "a.py"), id(1))) // in place of the first
	k.must(k.revoke(alpha, id(3)))
	k.must(k.grantWithin(grants, id(4), script(alpha, "b.py"), ""))
	k.wants(k.grantWithin(grants, id(5), script(alpha, "a.py"), id(3)), access.ErrQuota, "a revoked grant that comes again over the quota")
	u, err = k.store.Kept(k.Context(), alpha, at)
	k.must(err)
	if u.Grants != 1 || u.Skills != 3 { // a, c and "same bytes"
		k.broken("the usage is %+v", u)
	}
}

func quotaRace(k *kit) {
	k.must(k.within(access.Quota{}, alpha, "first", id(0), "", false))
	const callers, room = 12, 3
	errs := make(chan error, 2*callers)
	for i := range callers {
		go func() {
			errs <- k.within(access.Quota{Skills: 1 + room}, alpha, fmt.Sprint("skill", i), id(10+i), "", false)
		}()
		go func() {
			errs <- k.grantWithin(access.Quota{Grants: room}, id(30+i), script(alpha, fmt.Sprint(i)), "")
		}()
	}
	made := 0
	for range 2 * callers {
		if err := <-errs; err == nil {
			made++
		} else if !errors.Is(err, access.ErrQuota) {
			k.broken("error: %v", err)
		}
	}
	u, err := k.store.Kept(k.Context(), alpha, at)
	k.must(err)
	if made != 2*room || u.Skills != 1+room || u.Grants != room {
		k.broken("%d changes were made, want %d, and what is kept is %+v", made, 2*room, u)
	}
}
