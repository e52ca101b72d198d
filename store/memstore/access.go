package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store/internal/keep"
)

// A place is where a key lies.
type place struct {
	owner string
	index int
}

// owner returns under which name the keys of tenant lie: those of the platform beside
// the host's history, which no tenant can have for a name.
func owner(tenant string) string {
	if strings.HasPrefix(tenant, "@") {
		return "@nobody's keys"
	}
	return access.History(tenant)
}

// KeyByID implements [access.Finder].
func (s *Store) KeyByID(ctx context.Context, id string) (k access.Key, err error) {
	err = s.read(ctx, "", func(*tenant) error {
		p, ok := s.keys[id]
		if !ok {
			return fmt.Errorf("%w: key %s", grant.ErrNotFound, id)
		}
		k = keep.CopyKey(s.tenants[p.owner].keys[p.index])
		return nil
	})
	return k, err
}

// key returns where the tenant's key id lies.
func (s *Store) key(name, id string) (place, error) {
	p, ok := s.keys[id]
	if !ok || p.owner != owner(name) {
		return place{}, fmt.Errorf("%w: key %s", grant.ErrNotFound, id)
	}
	return p, nil
}

// Key implements [access.Book].
func (s *Store) Key(ctx context.Context, name, id string) (k access.Key, err error) {
	err = s.read(ctx, owner(name), func(t *tenant) error {
		p, err := s.key(name, id)
		if err == nil {
			k = keep.CopyKey(t.keys[p.index])
		}
		return err
	})
	return k, err
}

// Keys implements [access.Book].
func (s *Store) Keys(ctx context.Context, name string, f access.KeyFilter) (found []access.Key, err error) {
	limit, err := keep.Limit(f.Limit, access.DefaultLimit)
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, owner(name), func(t *tenant) error {
		end := len(t.keys)
		if p, err := s.key(name, f.Before); err == nil {
			end = p.index
		}
		for _, k := range slices.Backward(t.keys[:end]) {
			if len(found) == limit {
				break
			}
			found = append(found, keep.CopyKey(k))
		}
		return nil
	})
	return found, err
}

// AddKey implements [access.Book].
func (s *Store) AddKey(ctx context.Context, k access.Key, after string, entry audit.Pending) error {
	k, err := keep.Key(k, entry)
	if err != nil {
		return err
	}
	return s.change(ctx, entry, func(t *tenant) error {
		if err := keep.Alive(t.made); err != nil {
			return err
		}
		newest := ""
		if n := len(t.keys); n > 0 {
			newest = t.keys[n-1].ID
		}
		if newest != after {
			return fmt.Errorf("%w: the newest key is another one", grant.ErrConflict)
		}
		return s.free(k.ID)
	}, func(t *tenant) { s.addKey(t, k) })
}

func (s *Store) free(id string) error {
	if _, ok := s.keys[id]; ok {
		return fmt.Errorf("%w: there is a key %s", grant.ErrConflict, id)
	}
	return nil
}

func (s *Store) addKey(t *tenant, k access.Key) {
	s.keys[k.ID] = place{owner(k.Tenant), len(t.keys)}
	t.keys = append(t.keys, k)
}

// ReplaceKey implements [access.Book].
func (s *Store) ReplaceKey(ctx context.Context, name, id string, with access.Key, ends time.Time, entry audit.Pending) error {
	with, err := keep.Key(with, entry)
	if err == nil && with.Tenant != name {
		err = fmt.Errorf("%w: a key of %q in place of one of %q", access.ErrInvalid, with.Tenant, name)
	}
	if err != nil {
		return err
	}
	var p place
	var k access.Key
	return s.change(ctx, entry, func(t *tenant) (err error) {
		if p, err = s.key(name, id); err != nil {
			return err
		}
		if k, err = keep.ReplacedKey(t.keys[p.index], with.ID, ends); err != nil {
			return err
		}
		if err := keep.Alive(t.made); err != nil {
			return err
		}
		return s.free(with.ID)
	}, func(t *tenant) {
		t.keys[p.index] = k
		s.addKey(t, with)
	})
}

// RevokeKey implements [access.Book].
func (s *Store) RevokeKey(ctx context.Context, name, id string, at time.Time, by string, entry audit.Pending) error {
	if err := keep.History(access.History(name), entry); err != nil {
		return err
	}
	var p place
	var k access.Key
	return s.change(ctx, entry, func(t *tenant) (err error) {
		if p, err = s.key(name, id); err != nil {
			return err
		}
		k, err = keep.RevokedKey(t.keys[p.index], at, by)
		return err
	}, func(t *tenant) { t.keys[p.index] = k })
}

// UseKey implements [access.Finder].
func (s *Store) UseKey(ctx context.Context, id string, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	if p, ok := s.keys[id]; ok {
		k := &s.tenants[p.owner].keys[p.index]
		if at = keep.Time(at); at.Sub(k.Used) >= access.UsedEvery {
			k.Used = at
		}
	}
	return nil
}

// TenantAt implements [access.Finder].
func (s *Store) TenantAt(ctx context.Context, name string) (made access.Tenant, revision int64, err error) {
	err = s.read(ctx, name, func(t *tenant) error { made, revision = t.made, t.madeRev; return nil })
	return made, revision, err
}

// SetTenant implements [access.Book].
func (s *Store) SetTenant(ctx context.Context, made access.Tenant, after int64, entry audit.Pending) error {
	made, err := keep.Tenant(made, entry)
	if err != nil {
		return err
	}
	return s.change(ctx, entry, func(t *tenant) error {
		if t.madeRev != after {
			return grant.ErrConflict
		}
		return nil
	}, func(t *tenant) { t.made, t.madeRev = made, after+1 })
}

// Tenants implements [access.Book].
func (s *Store) Tenants(ctx context.Context, f access.TenantFilter) (found []access.Tenant, err error) {
	limit, err := keep.Limit(f.Limit, access.DefaultLimit)
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, gate.HostTenant, func(*tenant) error {
		for _, name := range slices.Sorted(maps.Keys(s.tenants)) {
			if t := s.tenants[name]; t.madeRev > 0 && name > f.After && len(found) < limit {
				found = append(found, t.made)
			}
		}
		return nil
	})
	return found, err
}
