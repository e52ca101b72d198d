package sqlstore

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store/internal/keep"
)

// ofTenant stands in the sum of a tenant's setting, which so is not that of its policy.
func ofTenant(name string) string { return "tenant " + name }

// readTenant reads the setting of the tenant name. What cannot be a tenant is an error.
func readTenant(name string, revision int64, text []byte) (t access.Tenant, err error) {
	if err := readSetting(revision, text, ofTenant(name), &t); err != nil {
		return access.Tenant{}, err
	}
	if err := t.Validate(); err != nil || t.Name != name {
		return access.Tenant{}, damaged("the tenant %q, of the name %q: %w", name, t.Name, err)
	}
	return t, nil
}

// TenantAt implements [access.Finder].
func (s *Store) TenantAt(ctx context.Context, name string) (t access.Tenant, revision int64, err error) {
	err = s.reads(ctx, "the tenant", func() error {
		var text []byte
		err := s.read[tenantAt].QueryRowContext(ctx, name).Scan(&revision, &text)
		switch err {
		case sql.ErrNoRows:
			revision = 0
			return nil
		case nil:
			t, err = readTenant(name, revision, text)
		}
		return err
	})
	if err != nil {
		return access.Tenant{}, 0, err
	}
	return t, revision, nil
}

// given refuses a change that gives something to a tenant that was deleted: the row of
// the tenant is read in the change's own transaction.
func (w *writer) given(ctx context.Context, name string) error {
	var revision int64
	var text []byte
	switch err := w.do[tenantAt].QueryRowContext(ctx, name).Scan(&revision, &text); err {
	case sql.ErrNoRows:
		return nil // the platform, and a tenant that nobody made
	case nil:
	default:
		return err
	}
	t, err := readTenant(name, revision, text)
	if err != nil {
		return alone(err)
	}
	if err := keep.Alive(t); err != nil {
		return refused{err}
	}
	return nil
}

// SetTenant implements [access.Book].
func (s *Store) SetTenant(ctx context.Context, t access.Tenant, after int64, entry audit.Pending) error {
	t, err := keep.Tenant(t, entry)
	if err != nil {
		return err
	}
	change, err := setting(setTenant, ofTenant(t.Name), t, after, t.Name)
	if err != nil {
		return err
	}
	return s.commit(ctx, entry, change)
}

// Tenants implements [access.Book].
func (s *Store) Tenants(ctx context.Context, f access.TenantFilter) ([]access.Tenant, error) {
	limit, err := keep.Limit(f.Limit, access.DefaultLimit)
	if err != nil {
		return nil, err
	}
	scan := func(row scanner) (access.Tenant, error) {
		var name string
		var revision int64
		var text []byte
		if err := row.Scan(&name, &revision, &text); err != nil {
			return access.Tenant{}, err
		}
		return readTenant(name, revision, text)
	}
	return list(ctx, s, "the tenants", scan, tenantsBehind, f.After, limit)
}

// Kept implements [admin.Quotas].
func (s *Store) Kept(ctx context.Context, tenant string, now time.Time) (u access.Usage, err error) {
	err = s.reads(ctx, "what is kept for the tenant", func() error {
		u, err = keptFor(ctx, &s.read, tenant, access.Usage{Skills: 1, Bytes: 1, Grants: 1})
		if err != nil {
			return err
		}
		rows, err := s.read[keysFrom].QueryContext(ctx, tenant, 0, int64(math.MaxInt64))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			k, err := scanKey(&keyed[int64]{rows: rows})
			if err != nil {
				return err
			}
			u.Keys += int(number(k.Counts(now)))
		}
		return rows.Err()
	})
	if err != nil {
		return access.Usage{}, err
	}
	return u, nil
}

// keptFor returns what is kept for the tenant, of what of is not zero.
func keptFor(ctx context.Context, p *prepared, tenant string, of access.Usage) (u access.Usage, err error) {
	if of.Skills > 0 {
		if err := p[skillsKept].QueryRowContext(ctx, tenant).Scan(&u.Skills); err != nil {
			return u, err
		}
	}
	if of.Grants > 0 {
		if err := p[grantsKept].QueryRowContext(ctx, tenant).Scan(&u.Grants); err != nil {
			return u, err
		}
	}
	if of.Bytes > 0 {
		err = p[bytesKept].QueryRowContext(ctx, tenant).Scan(&u.Bytes)
	}
	return u, err
}

// holds refuses more, and a content that the tenant may have already, where it does
// not fit into q; nil q bounds nothing. Only what grows is counted: it is the price of
// every import.
func (w *writer) holds(ctx context.Context, q *access.Quota, tenant string, content bundle.Listing, more access.Usage) error {
	if q == nil {
		return nil
	}
	digest := content.Digest()
	var named, kept int
	if err := w.do[names].QueryRowContext(ctx, tenant, digest[:]).Scan(&named); err != nil {
		return err
	}
	if err := w.do[contentKept].QueryRowContext(ctx, digest[:]).Scan(&kept); err != nil {
		return err
	}
	if named == 0 || kept == 0 {
		_, more.Bytes = content.Size()
	}
	u, err := keptFor(ctx, &w.do, tenant, more)
	if err != nil {
		return err
	}
	if err := q.Fits(u, more); err != nil {
		return refused{err}
	}
	return nil
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
