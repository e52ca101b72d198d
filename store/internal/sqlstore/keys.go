package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/internal/keep"
)

// A keyRest is what of a key has no column. Its JSON is for this package alone.
type keyRest struct {
	Name       string              `json:"name"`
	Roles      []access.Role       `json:"roles"`
	Scopes     []access.Permission `json:"scopes,omitempty"`
	Created    int64               `json:"created"` // microseconds since 1970, as the times below
	CreatedBy  string              `json:"createdBy"`
	Expires    *int64              `json:"expires,omitempty"`
	Revoked    *int64              `json:"revoked,omitempty"`
	RevokedBy  string              `json:"revokedBy,omitempty"`
	ReplacedBy string              `json:"replacedBy,omitempty"`
	Hash       string              `json:"hash"`
}

// restOfKey returns the text of k's row.
func restOfKey(k access.Key) (string, error) {
	at := func(t time.Time) *int64 {
		if t.IsZero() {
			return nil
		}
		return new(t.UnixMicro())
	}
	text, err := json.Marshal(keyRest{
		Name: k.Name, Roles: k.Roles, Scopes: k.Scopes, Created: k.Created.UnixMicro(), CreatedBy: k.CreatedBy, Expires: at(k.Expires),
		Revoked: at(k.Revoked), RevokedBy: k.RevokedBy, ReplacedBy: k.ReplacedBy, Hash: k.Hash.String(),
	})
	if err != nil {
		return "", refused{fmt.Errorf("store: key %s: %w", k.ID, err)}
	}
	return withSum(text, k.ID, k.Tenant), nil
}

// scanKey reads keyColumns. What cannot be a key is an error, not a key that lets
// somebody else in.
func scanKey(row scanner) (access.Key, error) {
	var k access.Key
	var text []byte
	var used sql.Null[int64]
	if err := row.Scan(&k.ID, &k.Tenant, &text, &used); err != nil {
		return access.Key{}, err
	}
	var rest keyRest
	text, err := withoutSum(text, k.ID, k.Tenant)
	if err == nil {
		err = decode(text, &rest)
	}
	if err == nil {
		k.Hash, err = access.ParseHash(rest.Hash)
	}
	if err != nil {
		return access.Key{}, damaged("key %s: %w", k.ID, err)
	}
	at := func(n *int64) time.Time {
		if n == nil {
			return time.Time{}
		}
		return time.UnixMicro(*n).UTC()
	}
	k.Name, k.Roles, k.Scopes, k.Created, k.CreatedBy = rest.Name, rest.Roles, rest.Scopes, at(&rest.Created), rest.CreatedBy
	k.Expires, k.Revoked, k.RevokedBy, k.ReplacedBy, k.Used = at(rest.Expires), at(rest.Revoked), rest.RevokedBy, rest.ReplacedBy, timeOf(used)
	if err := k.Validate(); err != nil {
		return access.Key{}, damaged("key %s: %w", k.ID, err)
	}
	return k, nil
}

// KeyByID implements [access.Finder].
func (s *Store) KeyByID(ctx context.Context, id string) (access.Key, error) {
	return s.oneKey(ctx, id, keyByID, id)
}

// Key implements [access.Book].
func (s *Store) Key(ctx context.Context, tenant, id string) (access.Key, error) {
	return s.oneKey(ctx, id, keyOfTenant, tenant, id)
}

func (s *Store) oneKey(ctx context.Context, id string, which statement, args ...any) (k access.Key, err error) {
	err = s.reads(ctx, "the key", func() (err error) {
		k, err = scanKey(s.read[which].QueryRowContext(ctx, args...))
		return missing(err, "key %s", id)
	})
	return k, err
}

// Keys implements [access.Book].
func (s *Store) Keys(ctx context.Context, tenant string, f access.KeyFilter) ([]access.Key, error) {
	limit, err := keep.Limit(f.Limit, access.DefaultLimit)
	if err != nil {
		return nil, err
	}
	return list(ctx, s, "the keys", scanKey, keysOfTenant, tenant, f.Before, limit)
}

// AddKey implements [access.Book].
func (s *Store) AddKey(ctx context.Context, k access.Key, after string, entry audit.Pending) error {
	k, err := keep.Key(k, entry)
	if err != nil {
		return err
	}
	return s.commit(ctx, entry, func(ctx context.Context, w *writer) error {
		newest, err := scanKey(w.do[newestKey].QueryRowContext(ctx, k.Tenant))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return alone(err)
		}
		if newest.ID != after {
			return refused{fmt.Errorf("%w: the newest key is another one", grant.ErrConflict)}
		}
		return w.addKey(ctx, k)
	})
}

// alone has a row that is damaged end the change that met it, and no other.
func alone(err error) error {
	if errors.Is(err, store.ErrCorrupt) {
		return refused{err}
	}
	return err
}

func (w *writer) addKey(ctx context.Context, k access.Key) error {
	if err := w.given(ctx, k.Tenant); err != nil {
		return err
	}
	rest, err := restOfKey(k)
	if err != nil {
		return err
	}
	n, err := affected(w.do[addKey].ExecContext(ctx, k.ID, k.Tenant, rest))
	if err == nil && n == 0 {
		err = refused{fmt.Errorf("%w: there is a key %s", grant.ErrConflict, k.ID)}
	}
	return err
}

// changeKey keeps what change makes of the tenant's key id.
func (w *writer) changeKey(ctx context.Context, tenant, id string, change func(access.Key) (access.Key, error)) error {
	k, err := scanKey(w.do[keyOfTenant].QueryRowContext(ctx, tenant, id))
	if err != nil {
		return missing(alone(err), "key %s", id)
	}
	if k, err = change(k); err != nil {
		return refused{err}
	}
	rest, err := restOfKey(k)
	if err != nil {
		return err
	}
	return w.single(ctx, id, setKey, tenant, id, rest)
}

// ReplaceKey implements [access.Book].
func (s *Store) ReplaceKey(ctx context.Context, tenant, id string, with access.Key, ends time.Time, entry audit.Pending) error {
	with, err := keep.Key(with, entry)
	if err == nil && with.Tenant != tenant {
		err = fmt.Errorf("%w: a key of %q in place of one of %q", access.ErrInvalid, with.Tenant, tenant)
	}
	if err != nil {
		return err
	}
	return s.commit(ctx, entry, func(ctx context.Context, w *writer) error {
		err := w.changeKey(ctx, tenant, id, func(k access.Key) (access.Key, error) { return keep.ReplacedKey(k, with.ID, ends) })
		if err != nil {
			return err
		}
		return w.addKey(ctx, with)
	})
}

// RevokeKey implements [access.Book].
func (s *Store) RevokeKey(ctx context.Context, tenant, id string, at time.Time, by string, entry audit.Pending) error {
	if err := keep.History(access.History(tenant), entry); err != nil {
		return err
	}
	return s.commit(ctx, entry, func(ctx context.Context, w *writer) error {
		return w.changeKey(ctx, tenant, id, func(k access.Key) (access.Key, error) { return keep.RevokedKey(k, at, by) })
	})
}

// UseKey implements [access.Finder].
func (s *Store) UseKey(ctx context.Context, id string, at time.Time) error {
	micro := at.UnixMicro()
	return s.beside(ctx, func(ctx context.Context, w *writer) error {
		_, err := w.do[useKey].ExecContext(ctx, id, micro, micro-access.UsedEvery.Microseconds())
		return err
	})
}
