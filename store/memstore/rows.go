package memstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store/internal/keep"
	"github.com/tracon-go/tracon/toolcall"
)

// Grant implements [grant.Finder].
func (s *Store) Grant(ctx context.Context, ref grant.Ref) (g grant.Grant, err error) {
	err = s.read(ctx, ref.Tenant, func(t *tenant) error {
		i, ok := t.newest[ref]
		if !ok {
			return fmt.Errorf("%w: for %s", grant.ErrNotFound, ref)
		}
		g = t.grants[i]
		return nil
	})
	return g, err
}

// AddGrant implements [grant.Book].
func (s *Store) AddGrant(ctx context.Context, g grant.Grant, content bundle.Bundle, after string, entry audit.Pending) error {
	return s.addGrant(ctx, g, content, after, entry, nil)
}

func (s *Store) addGrant(ctx context.Context, g grant.Grant, content bundle.Bundle, after string, entry audit.Pending, q *access.Quota) error {
	g, err := keep.Grant(g, content, entry)
	if err != nil {
		return err
	}
	return s.change(ctx, entry, func(t *tenant) error {
		if err := keep.Alive(t.made); err != nil {
			return err
		}
		newest := ""
		if i, ok := t.newest[g.Ref]; ok {
			newest = t.grants[i].ID
		}
		if newest != after {
			return fmt.Errorf("%w: the newest grant for %s is another one", grant.ErrConflict, g.Ref)
		}
		if _, ok := t.byID[g.ID]; ok {
			return fmt.Errorf("%w: there is a grant %s", grant.ErrConflict, g.ID)
		}
		i, ok := t.newest[g.Ref]
		return s.fits(t, q, g.Pin, content.Listing(), access.Usage{Grants: int(one(!ok || !t.grants[i].Revoked.IsZero()))})
	}, func(t *tenant) {
		t.byID[g.ID], t.newest[g.Ref] = len(t.grants), len(t.grants)
		t.grants = append(t.grants, g)
		s.contents[g.Pin] = content
	})
}

// RevokeGrant implements [grant.Book].
func (s *Store) RevokeGrant(ctx context.Context, name, id string, at time.Time, by string, entry audit.Pending) error {
	at, err := keep.Revocation(name, at, entry)
	if err != nil {
		return err
	}
	return s.change(ctx, entry, func(t *tenant) error {
		i, ok := t.byID[id]
		switch {
		case !ok:
			return fmt.Errorf("%w: %s", grant.ErrNotFound, id)
		case !t.grants[i].Revoked.IsZero():
			return fmt.Errorf("%w: grant %s was revoked before", grant.ErrConflict, id)
		}
		return nil
	}, func(t *tenant) {
		g := &t.grants[t.byID[id]]
		g.Revoked, g.RevokedBy = at, by
	})
}

// GrantByID implements [grant.Book].
func (s *Store) GrantByID(ctx context.Context, name, id string) (g grant.Grant, err error) {
	err = s.read(ctx, name, func(t *tenant) error {
		i, ok := t.byID[id]
		if !ok {
			return fmt.Errorf("%w: %s", grant.ErrNotFound, id)
		}
		g = t.grants[i]
		return nil
	})
	return g, err
}

// Grants implements [grant.Book].
func (s *Store) Grants(ctx context.Context, name string, f grant.Filter) (found []grant.Grant, err error) {
	limit, err := keep.Limit(f.Limit, grant.DefaultLimit)
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, name, func(t *tenant) error {
		list := t.grants
		if i := slices.IndexFunc(list, func(g grant.Grant) bool { return g.ID == f.Before }); i >= 0 {
			list = list[:i]
		}
		for _, g := range slices.Backward(list) {
			if len(found) == limit {
				break
			}
			if f.Skill == "" || g.Ref.Skill == f.Skill {
				found = append(found, g)
			}
		}
		return nil
	})
	return found, err
}

// Content implements [grant.Book].
func (s *Store) Content(ctx context.Context, name string, digest bundle.Digest) (b bundle.Bundle, err error) {
	err = s.read(ctx, name, func(t *tenant) error {
		if !t.names(digest) {
			return fmt.Errorf("%w: no grant and no version names %s", grant.ErrNotFound, digest)
		}
		b, err = s.content(digest)
		return err
	})
	return b, err
}

// content returns what is kept under digest. A Bundle never changes, so it can be
// shared.
func (s *Store) content(digest bundle.Digest) (bundle.Bundle, error) {
	b, ok := s.contents[digest]
	if !ok {
		return b, fmt.Errorf("%w: the content %s was erased, because its time was over; import or grant it again", grant.ErrNotFound, digest)
	}
	return b, nil
}

// Files implements [grant.Book].
func (s *Store) Files(ctx context.Context, name string, digest bundle.Digest) (bundle.Content, error) {
	b, err := s.Content(ctx, name, digest)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// names reports whether a grant of the tenant pins the content, or a version of
// an imported skill is of it.
func (t *tenant) names(digest bundle.Digest) bool {
	if digest.IsZero() {
		return false // that of a deletion
	}
	if slices.ContainsFunc(t.grants, func(g grant.Grant) bool { return g.Pin == digest }) {
		return true
	}
	for _, history := range t.skills {
		if slices.ContainsFunc(history, func(v admin.Version) bool { return v.Digest == digest }) {
			return true
		}
	}
	return false
}

// AddCall implements [toolcall.Store].
func (s *Store) AddCall(ctx context.Context, r toolcall.Record, ending audit.Pending) error {
	r, err := keep.Call(r, ending)
	if err != nil {
		return err
	}
	return s.change(ctx, ending, func(t *tenant) error {
		if _, ok := t.calls[r.ID]; ok {
			return fmt.Errorf("%w: %s", toolcall.ErrExists, r.ID)
		}
		return nil
	}, func(t *tenant) {
		at, _ := slices.BinarySearch(t.callIDs, r.ID)
		t.callIDs = slices.Insert(t.callIDs, at, r.ID)
		t.calls[r.ID] = r
		t.count(r)
	})
}

// Call implements [toolcall.Store].
func (s *Store) Call(ctx context.Context, name, id string) (r toolcall.Record, err error) {
	err = s.read(ctx, name, func(t *tenant) error {
		kept, ok := t.calls[id]
		if !ok {
			return fmt.Errorf("%w: %s", toolcall.ErrNotFound, id)
		}
		r = keep.CopyCall(kept)
		return nil
	})
	return r, err
}

// Calls implements [toolcall.Store].
func (s *Store) Calls(ctx context.Context, name string, f toolcall.Filter) (found []toolcall.Record, err error) {
	limit, err := keep.Limit(f.Limit, toolcall.DefaultLimit)
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, name, func(t *tenant) error {
		end := len(t.callIDs)
		if f.Before != "" {
			end, _ = slices.BinarySearch(t.callIDs, f.Before)
		}
		for _, id := range slices.Backward(t.callIDs[:end]) {
			if len(found) == limit {
				break
			}
			if r := t.calls[id]; f.Skill == "" || r.Skill == f.Skill {
				found = append(found, keep.CopyCall(r))
			}
		}
		return nil
	})
	return found, err
}
