package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store/internal/keep"
)

// newestVersion returns the newest version of the skill; the zero one where there is none.
func (t *tenant) newestVersion(skill string) admin.Version {
	history := t.skills[skill]
	if len(history) == 0 {
		return admin.Version{}
	}
	return history[len(history)-1]
}

// now returns the newest version of the skill, unless it is a deletion.
func (t *tenant) now(skill string) (admin.Version, error) {
	v := t.newestVersion(skill)
	if v.ID == "" || v.Deleted {
		return admin.Version{}, fmt.Errorf("%w: no skill %q was imported", grant.ErrNotFound, skill)
	}
	return v, nil
}

// AddVersion implements [admin.Imports]. The files are read before the lock is
// taken, unless what they are is kept already.
func (s *Store) AddVersion(ctx context.Context, v admin.Version, content bundle.Content, after string, entry audit.Pending) error {
	return s.addVersion(ctx, v, content, after, entry, nil)
}

func (s *Store) addVersion(ctx context.Context, v admin.Version, content bundle.Content, after string, entry audit.Pending, q *access.Quota) error {
	v, err := keep.Version(v, content, entry)
	if err != nil {
		return err
	}
	var kept bundle.Bundle
	if !v.Deleted {
		if kept, err = s.load(ctx, v.Digest, content); err != nil {
			return err
		}
	}
	return s.change(ctx, entry, func(t *tenant) error {
		if t.newestVersion(v.Skill).ID != after {
			return fmt.Errorf("%w: the newest version of skill %q is another one", grant.ErrConflict, v.Skill)
		}
		if t.versions[v.ID] {
			return fmt.Errorf("%w: there is a version %s", grant.ErrConflict, v.ID)
		}
		if v.Deleted {
			return nil
		}
		if err := keep.Alive(t.made); err != nil {
			return err
		}
		_, err := t.now(v.Skill)
		return s.fits(t, q, v.Digest, kept.Listing(), access.Usage{Skills: int(one(err != nil))})
	}, func(t *tenant) {
		t.versions[v.ID], t.imports = true, append(t.imports, v)
		t.skills[v.Skill] = append(t.skills[v.Skill], v)
		if !v.Deleted {
			s.contents[v.Digest] = kept
		}
	})
}

// load returns content in memory, or what is kept of the same digest.
func (s *Store) load(ctx context.Context, digest bundle.Digest, content bundle.Content) (b bundle.Bundle, err error) {
	err = s.read(ctx, "", func(*tenant) error { b = s.contents[digest]; return nil })
	if err != nil || !b.IsZero() {
		return b, err
	}
	return bundle.Load(content)
}

// Versions implements [admin.Imports].
func (s *Store) Versions(ctx context.Context, name, skill string, limit int) (found []admin.Version, err error) {
	if limit, err = keep.Limit(limit, admin.DefaultVersions); err != nil {
		return nil, err
	}
	err = s.read(ctx, name, func(t *tenant) error {
		history := t.skills[skill]
		found = slices.Clone(history[max(0, len(history)-limit):])
		slices.Reverse(found)
		return nil
	})
	return found, err
}

// Skills implements [admin.Imports].
func (s *Store) Skills(ctx context.Context, name string) (found []admin.Version, err error) {
	err = s.read(ctx, name, func(t *tenant) error {
		for _, skill := range slices.Sorted(maps.Keys(t.skills)) {
			if v, err := t.now(skill); err == nil {
				found = append(found, v)
			}
		}
		return nil
	})
	return found, err
}

// Imported implements [admin.Imports].
func (s *Store) Imported(ctx context.Context, name, skill string) (v admin.Version, b bundle.Bundle, err error) {
	err = s.read(ctx, name, func(t *tenant) (err error) {
		if v, err = t.now(skill); err == nil {
			b, err = s.content(v.Digest)
		}
		return err
	})
	if err != nil {
		return admin.Version{}, bundle.Bundle{}, err
	}
	return v, b, nil
}

// ImportedFile implements [admin.Imports].
func (s *Store) ImportedFile(ctx context.Context, name, skill, path string) (v admin.Version, has bool, err error) {
	err = s.read(ctx, name, func(t *tenant) (err error) {
		if v, err = t.now(skill); err == nil {
			_, _, has = s.contents[v.Digest].Text(path)
		}
		return err
	})
	return v, has, err
}
