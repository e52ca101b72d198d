package memstore

import (
	"context"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
)

// Kept implements [admin.Quotas].
func (s *Store) Kept(ctx context.Context, name string, now time.Time) (u access.Usage, err error) {
	err = s.read(ctx, owner(name), func(t *tenant) error {
		u = s.usage(t)
		for _, k := range t.keys {
			u.Keys += int(one(k.Counts(now)))
		}
		return nil
	})
	return u, err
}

// usage returns what is kept for t, but its keys.
func (s *Store) usage(t *tenant) (u access.Usage) {
	for skill := range t.skills {
		_, err := t.now(skill)
		u.Skills += int(one(err == nil))
	}
	for _, i := range t.newest {
		u.Grants += int(one(t.grants[i].Revoked.IsZero()))
	}
	for digest, b := range s.contents {
		if t.names(digest) {
			_, bytes := b.Listing().Size()
			u.Bytes += bytes
		}
	}
	return u
}

// fits says why more, and a content that t may have already, cannot be kept within q,
// or nil; nil q bounds nothing.
func (s *Store) fits(t *tenant, q *access.Quota, digest bundle.Digest, content bundle.Listing, more access.Usage) error {
	if q == nil {
		return nil
	}
	if _, ok := s.contents[digest]; !ok || !t.names(digest) {
		_, more.Bytes = content.Size()
	}
	return q.Fits(s.usage(t), more)
}

// bounded is a Store whose rows grow within a quota.
type bounded struct {
	s *Store
	q access.Quota
}

// Within implements [admin.Quotas].
func (s *Store) Within(q access.Quota) admin.Additions { return bounded{s, q} }

// AddGrant implements [admin.Additions].
func (b bounded) AddGrant(ctx context.Context, g grant.Grant, content bundle.Bundle, after string, entry audit.Pending) error {
	return b.s.addGrant(ctx, g, content, after, entry, &b.q)
}

// AddVersion implements [admin.Additions].
func (b bounded) AddVersion(ctx context.Context, v admin.Version, content bundle.Content, after string, entry audit.Pending) error {
	return b.s.addVersion(ctx, v, content, after, entry, &b.q)
}
