package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store/internal/keep"
)

// scanVersion reads versionColumns, and behind them what more takes. What cannot
// be a version is an error, not another state of the skill.
func scanVersion(row scanner, more ...any) (admin.Version, error) {
	var v admin.Version
	var digest, kept []byte
	var imported int64
	err := row.Scan(append([]any{&v.Tenant, &v.ID, &v.Skill, &digest, &v.Stored, &v.Source, &v.Reason, &v.By, &imported, &v.Deleted, &kept}, more...)...)
	if err != nil {
		return admin.Version{}, err
	}
	if digest != nil {
		if len(digest) != len(v.Digest) {
			return admin.Version{}, damaged("the digest of version %s has %d bytes", v.ID, len(digest))
		}
		v.Digest = bundle.Digest(digest)
	}
	v.Imported = time.UnixMicro(imported).UTC()
	if err := v.Validate(); err != nil {
		return admin.Version{}, damaged("version %s of skill %s: %w", v.ID, v.Skill, err)
	}
	if unlike(kept, versionValues(v)...) {
		return admin.Version{}, damaged("version %s of skill %s was changed where it is kept", v.ID, v.Skill)
	}
	return v, nil
}

// AddVersion implements [admin.Imports].
func (s *Store) AddVersion(ctx context.Context, v admin.Version, content bundle.Content, after string, entry audit.Pending) error {
	return s.addVersion(ctx, v, content, after, entry, nil)
}

func (s *Store) addVersion(ctx context.Context, v admin.Version, content bundle.Content, after string, entry audit.Pending, q *access.Quota) error {
	v, err := keep.Version(v, content, entry)
	if err != nil {
		return err
	}
	return s.commit(ctx, entry, func(ctx context.Context, w *writer) error {
		before, err := scanVersion(w.do[newestVersion].QueryRowContext(ctx, v.Tenant, v.Skill))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if before.ID != after {
			return refused{fmt.Errorf("%w: the newest version of skill %q is another one", grant.ErrConflict, v.Skill)}
		}
		var digest []byte
		if !v.Deleted {
			if err := w.given(ctx, v.Tenant); err != nil {
				return err
			}
			digest = v.Digest[:]
			more := access.Usage{Skills: int(number(before.ID == "" || before.Deleted))}
			if err := w.holds(ctx, q, v.Tenant, content.Listing(), more); err != nil {
				return err
			}
			if err := w.addContent(ctx, content); err != nil {
				return err
			}
		}
		n, err := affected(w.do[addVersion].ExecContext(ctx, v.Tenant, v.ID, v.Skill, digest, number(v.Stored), v.Source, v.Reason,
			v.By, v.Imported.UnixMicro(), number(v.Deleted), sum(versionValues(v)...)))
		if err == nil && n == 0 {
			err = refused{fmt.Errorf("%w: there is a version %s", grant.ErrConflict, v.ID)}
		}
		return err
	})
}

// Versions implements [admin.Imports].
func (s *Store) Versions(ctx context.Context, tenant, skill string, limit int) ([]admin.Version, error) {
	limit, err := keep.Limit(limit, admin.DefaultVersions)
	if err != nil {
		return nil, err
	}
	return list(ctx, s, "the versions of a skill", scanAlone, versionsOfSkill, tenant, skill, limit)
}

// Skills implements [admin.Imports].
func (s *Store) Skills(ctx context.Context, tenant string) ([]admin.Version, error) {
	return list(ctx, s, "the imported skills", scanAlone, skillsOfTenant, tenant)
}

// scanAlone is scanVersion where a version is all of a row.
func scanAlone(row scanner) (admin.Version, error) { return scanVersion(row) }

// now returns the newest version of the skill, unless it is a deletion, and
// whether its content has the file path.
func (s *Store) now(ctx context.Context, tenant, skill, path string) (v admin.Version, has bool, err error) {
	v, err = scanVersion(s.read[newestVersionFile].QueryRowContext(ctx, tenant, skill, path), &has)
	if err == nil && v.Deleted {
		err = sql.ErrNoRows
	}
	if err != nil {
		return admin.Version{}, false, missing(err, "no skill %q was imported", skill)
	}
	return v, has, nil
}

// Imported implements [admin.Imports].
func (s *Store) Imported(ctx context.Context, tenant, skill string) (v admin.Version, b bundle.Bundle, err error) {
	err = s.reads(ctx, "the imported skill", func() (err error) {
		if v, _, err = s.now(ctx, tenant, skill, ""); err == nil {
			b, err = s.content(ctx, v.Digest)
		}
		return err
	})
	if err != nil {
		return admin.Version{}, bundle.Bundle{}, err
	}
	return v, b, nil
}

// ImportedFile implements [admin.Imports].
func (s *Store) ImportedFile(ctx context.Context, tenant, skill, path string) (v admin.Version, has bool, err error) {
	err = s.reads(ctx, "the imported skill", func() (err error) {
		v, has, err = s.now(ctx, tenant, skill, path)
		return err
	})
	return v, has, err
}
