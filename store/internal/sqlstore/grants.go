package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store/internal/keep"
)

// micros is a time as it is kept: microseconds since 1970, NULL for none.
func micros(t time.Time) sql.Null[int64] {
	return sql.Null[int64]{V: t.UnixMicro(), Valid: !t.IsZero()}
}

func timeOf(n sql.Null[int64]) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.V).UTC()
}

// scanGrant reads grantColumns. What cannot be a grant is an error, not a grant
// that permits something else.
func scanGrant(row scanner) (grant.Grant, error) {
	var g grant.Grant
	var pin, kept []byte
	var granted int64
	var expires, revoked sql.Null[int64]
	err := row.Scan(&g.Ref.Tenant, &g.ID, &g.Ref.Skill, &g.Ref.Script, &g.Ref.AllScripts, &pin, &g.Reason, &g.Source,
		&g.GrantedBy, &granted, &expires, &revoked, &g.RevokedBy, &g.MinTier, &kept)
	if err != nil {
		return grant.Grant{}, err
	}
	if len(pin) != len(g.Pin) {
		return grant.Grant{}, damaged("the pin of grant %s has %d bytes", g.ID, len(pin))
	}
	g.Pin = bundle.Digest(pin)
	g.Granted, g.Expires, g.Revoked = time.UnixMicro(granted).UTC(), timeOf(expires), timeOf(revoked)
	if err := g.Validate(); err != nil {
		return grant.Grant{}, damaged("grant %s: %w", g.ID, err)
	}
	if unlike(kept, grantValues(g)...) {
		return grant.Grant{}, damaged("grant %s was changed where it is kept", g.ID)
	}
	return g, nil
}

// newest returns the newest grant of ref. The script's name is empty exactly
// for all scripts, so it tells the two kinds of Ref apart.
func newest(ctx context.Context, p *prepared, ref grant.Ref) (grant.Grant, error) {
	if ref.Validate() != nil {
		return grant.Grant{}, sql.ErrNoRows // nothing is kept for what names nothing
	}
	return scanGrant(p[newestGrant].QueryRowContext(ctx, ref.Tenant, ref.Skill, ref.Script))
}

// missing makes grant.ErrNotFound of the error for no row.
func missing(err error, format string, args ...any) error {
	if errors.Is(err, sql.ErrNoRows) {
		return refused{fmt.Errorf("%w: "+format, append([]any{grant.ErrNotFound}, args...)...)}
	}
	return err
}

// Grant implements [grant.Finder].
func (s *Store) Grant(ctx context.Context, ref grant.Ref) (g grant.Grant, err error) {
	err = s.reads(ctx, "the grant", func() (err error) {
		g, err = newest(ctx, &s.read, ref)
		return missing(err, "for %s", ref)
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
	return s.commit(ctx, entry, func(ctx context.Context, w *writer) error {
		if err := w.given(ctx, g.Ref.Tenant); err != nil {
			return err
		}
		before, err := newest(ctx, &w.do, g.Ref)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if before.ID != after {
			return refused{fmt.Errorf("%w: the newest grant for %s is another one", grant.ErrConflict, g.Ref)}
		}
		more := access.Usage{Grants: int(number(before.ID == "" || !before.Revoked.IsZero()))}
		if err := w.holds(ctx, q, g.Ref.Tenant, content.Listing(), more); err != nil {
			return err
		}
		if err := w.addContent(ctx, content); err != nil {
			return err
		}
		n, err := affected(w.do[addGrant].ExecContext(ctx, g.Ref.Tenant, g.ID, g.Ref.Skill, g.Ref.Script, number(g.Ref.AllScripts),
			g.Pin[:], g.Reason, g.Source, g.GrantedBy, g.Granted.UnixMicro(), micros(g.Expires), micros(g.Revoked), g.RevokedBy,
			string(g.MinTier), sum(grantValues(g)...)))
		if err == nil && n == 0 {
			err = refused{fmt.Errorf("%w: there is a grant %s", grant.ErrConflict, g.ID)}
		}
		return err
	})
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// RevokeGrant implements [grant.Book].
func (s *Store) RevokeGrant(ctx context.Context, tenant, id string, at time.Time, by string, entry audit.Pending) error {
	at, err := keep.Revocation(tenant, at, entry)
	if err != nil {
		return err
	}
	return s.commit(ctx, entry, func(ctx context.Context, w *writer) error {
		g, err := scanGrant(w.do[grantByID].QueryRowContext(ctx, tenant, id))
		switch {
		case err != nil:
			return missing(err, "%s", id)
		case !g.Revoked.IsZero():
			return refused{fmt.Errorf("%w: grant %s was revoked before", grant.ErrConflict, id)}
		}
		g.Revoked, g.RevokedBy = at, by
		n, err := affected(w.do[revokeGrant].ExecContext(ctx, tenant, id, at.UnixMicro(), by, sum(grantValues(g)...)))
		if err == nil && n == 0 {
			err = damaged("grant %s, which was there, cannot be revoked", id)
		}
		return err
	})
}

// GrantByID implements [grant.Book].
func (s *Store) GrantByID(ctx context.Context, tenant, id string) (g grant.Grant, err error) {
	err = s.reads(ctx, "the grant", func() (err error) {
		g, err = scanGrant(s.read[grantByID].QueryRowContext(ctx, tenant, id))
		return missing(err, "%s", id)
	})
	return g, err
}

// Grants implements [grant.Book].
func (s *Store) Grants(ctx context.Context, tenant string, f grant.Filter) ([]grant.Grant, error) {
	limit, err := keep.Limit(f.Limit, grant.DefaultLimit)
	if err != nil {
		return nil, err
	}
	return list(ctx, s, "the grants", scanGrant, grantsOfTenant, tenant, f.Skill, limit, f.Before)
}
