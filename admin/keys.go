package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/grant"
)

// What an entry of the kind audit.Key tells of, by its fact "act".
const (
	KeyCreated  = "created"
	KeyReplaced = "replaced" // the key of the fact "key" was made in place of "replaces"
	KeyRevoked  = "revoked"
)

// DefaultOverlap is how long doors have a key valid still that was rotated, unless
// they are told otherwise.
const DefaultOverlap = 24 * time.Hour

// MaxOverlap is the longest that a key may be valid beside the one in its place.
const MaxOverlap = 30 * 24 * time.Hour

// A Keying says which key is to be made.
type Keying struct {
	By      access.Principal // who hands on what he holds
	Tenant  string           // whose it is; empty: the platform's
	Name    string           // for people; see grant.CheckName
	Roles   []access.Role    // required
	Scopes  []access.Permission
	Expires time.Time // zero: does not expire
}

// CreateKey makes a key, and returns it with its secret, which nobody can have again.
//
// # Errors
//
// access.ErrDenied where By may not make it or does not hold what it would give;
// access.ErrInvalid and grant.ErrRef for what cannot be a key; grant.ErrNotFound for a
// tenant that nobody made; access.ErrQuota; audit.ErrUnavailable or the store's own when
// it could not be written.
func (a *Admin) CreateKey(ctx context.Context, k Keying) (access.Key, access.Secret, error) {
	key, secret, err := newKey(k)
	if err != nil {
		return access.Key{}, access.Secret{}, err
	}
	if err := mayKeys(k.By, k.Tenant); err != nil {
		return access.Key{}, access.Secret{}, err
	}
	if !k.By.Covers(key.Tenant, key.Roles, key.Scopes) {
		return access.Key{}, access.Secret{}, fmt.Errorf("%w: nobody hands on what he does not hold", access.ErrDenied)
	}
	q, err := a.room(ctx, k.Tenant)
	if err != nil {
		return access.Key{}, access.Secret{}, err
	}
	if err := a.made(ctx, k.Tenant); err != nil {
		return access.Key{}, access.Secret{}, err
	}
	_, err = set(func() (access.Key, error) {
		// A key that came since is a conflict, and so the count holds at the moment of the change.
		all, err := a.c.Store.Keys(ctx, k.Tenant, access.KeyFilter{Limit: math.MaxInt32})
		if err != nil {
			return key, err
		}
		var used access.Usage
		for _, other := range all {
			if other.Counts(key.Created) {
				used.Keys++
			}
		}
		if err := q.Fits(used, access.Usage{Keys: 1}); err != nil {
			return key, err
		}
		after := ""
		if len(all) > 0 {
			after = all[0].ID
		}
		return key, a.write(ctx, keyEntry(k.By, key, "act", KeyCreated), false, func(ctx context.Context, entry audit.Pending) error {
			return a.c.Store.AddKey(ctx, key, after, entry)
		})
	})
	if err != nil {
		return access.Key{}, access.Secret{}, err
	}
	return key, secret, nil
}

func newKey(k Keying) (access.Key, access.Secret, error) {
	secret := access.NewSecret()
	key := access.Key{ID: secret.ID(), Tenant: k.Tenant, Name: k.Name, Roles: k.Roles, Scopes: k.Scopes, Created: now(),
		CreatedBy: audit.Clip(k.By.Actor), Expires: k.Expires.UTC().Truncate(time.Microsecond), Hash: secret.Hash()}
	if err := key.Validate(); err != nil {
		return access.Key{}, access.Secret{}, err
	}
	if !key.InForce(key.Created) {
		return access.Key{}, access.Secret{}, fmt.Errorf("%w: the key would expire at %s, before it begins", access.ErrInvalid, key.Expires.Format(time.RFC3339))
	}
	return key, secret, nil
}

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// mayKeys says why p may not change the keys of tenant, or nil.
func mayKeys(p access.Principal, tenant string) error {
	switch {
	case tenant == "":
		return p.Check(access.WriteKeysOf)
	case p.IsPlatform():
		return p.Check(access.WriteTenants)
	case p.Tenant != tenant:
		return fmt.Errorf("%w: the keys are those of another tenant", access.ErrDenied)
	}
	return p.Check(access.WriteKeys)
}

// FirstKey makes a key of the platform, with everything that it may do, if there has
// never been one: of hosts that start at once, one makes it. It reports whether it did.
//
// # Errors
//
// audit.ErrUnavailable or the store's own when it could not be read or written.
func (a *Admin) FirstKey(ctx context.Context) (key access.Key, secret access.Secret, made bool, err error) {
	by := access.Principal{Actor: "the first start", Roles: []access.Role{access.Platform}}
	if key, secret, err = newKey(Keying{By: by, Name: "first", Roles: by.Roles}); err != nil {
		return access.Key{}, access.Secret{}, false, err
	}
	err = a.write(ctx, keyEntry(by, key, "act", KeyCreated), false, func(ctx context.Context, entry audit.Pending) error {
		return a.c.Store.AddKey(ctx, key, "", entry)
	})
	if errors.Is(err, grant.ErrConflict) {
		return access.Key{}, access.Secret{}, false, nil
	}
	if err != nil {
		return access.Key{}, access.Secret{}, false, err
	}
	return key, secret, true, nil
}

// A Rotation says which key gets another in its place.
type Rotation struct {
	By      access.Principal
	Tenant  string        // whose the key is; empty: the platform's
	ID      string        // of the key
	Overlap time.Duration // how long it is valid still, unless it expires before; zero: it ends now; at most 30 days
	Expires time.Time     // of the new key; zero: it lives as long as the old one was to
}

// RotateKey makes a key with the name, roles and scopes of another, which ends after
// an overlap, and returns it with its secret.
//
// # Errors
//
// As CreateKey, but for quotas; grant.ErrNotFound; grant.ErrConflict where the key was revoked or
// replaced before or has expired.
func (a *Admin) RotateKey(ctx context.Context, r Rotation) (access.Key, access.Secret, error) {
	if r.Overlap < 0 || r.Overlap > MaxOverlap {
		return access.Key{}, access.Secret{}, fmt.Errorf("%w: an overlap of %s; it is at most %s, and zero ends the key now", access.ErrInvalid, r.Overlap, MaxOverlap)
	}
	if err := mayKeys(r.By, r.Tenant); err != nil {
		return access.Key{}, access.Secret{}, err
	}
	if err := a.alive(ctx, r.Tenant); err != nil {
		return access.Key{}, access.Secret{}, err
	}
	old, err := a.c.Store.Key(ctx, r.Tenant, r.ID)
	if err != nil {
		return access.Key{}, access.Secret{}, err
	}
	if !r.By.Covers(old.Tenant, old.Roles, old.Scopes) {
		return access.Key{}, access.Secret{}, fmt.Errorf("%w: nobody hands on what he does not hold", access.ErrDenied)
	}
	if state := old.State(time.Now()); state != "in force" || old.ReplacedBy != "" {
		if old.ReplacedBy != "" {
			state = "replaced"
		}
		return access.Key{}, access.Secret{}, fmt.Errorf("%w: key %s is %s; make a new one", grant.ErrConflict, old.ID, state)
	}
	k := Keying{By: r.By, Tenant: old.Tenant, Name: old.Name, Roles: old.Roles, Scopes: old.Scopes, Expires: r.Expires}
	if k.Expires.IsZero() && !old.Expires.IsZero() {
		k.Expires = time.Now().Add(old.Expires.Sub(old.Created))
	}
	key, secret, err := newKey(k)
	if err != nil {
		return access.Key{}, access.Secret{}, err
	}
	ends := key.Created.Add(r.Overlap)
	if !old.Expires.IsZero() && old.Expires.Before(ends) {
		ends = old.Expires
	}
	e := keyEntry(r.By, key, "act", KeyReplaced, "replaces", old.ID, "ends", ends.Format(time.RFC3339Nano))
	err = a.write(ctx, e, false, func(ctx context.Context, entry audit.Pending) error {
		return a.c.Store.ReplaceKey(ctx, old.Tenant, old.ID, key, ends, entry)
	})
	if err != nil {
		return access.Key{}, access.Secret{}, err
	}
	return key, secret, nil
}

// RevokeKey takes a key back: from now on it lets nobody in.
//
// # Errors
//
// access.ErrDenied; grant.ErrNotFound, and grant.ErrConflict where it was revoked before.
func (a *Admin) RevokeKey(ctx context.Context, by access.Principal, tenant, keyID, reason string) (access.Key, error) {
	if err := mayKeys(by, tenant); err != nil {
		return access.Key{}, err
	}
	k, err := a.c.Store.Key(ctx, tenant, keyID)
	if err != nil {
		return access.Key{}, err
	}
	k.Revoked, k.RevokedBy = now(), audit.Clip(by.Actor)
	e := audit.Entry{Tenant: access.History(tenant), Actor: by.Actor, Kind: audit.Key, Subject: "key " + k.ID,
		Facts: audit.Facts("act", KeyRevoked, "key", k.ID, "name", audit.Clip(k.Name), "reason", audit.Clip(reason))}
	err = a.write(ctx, e, false, func(ctx context.Context, entry audit.Pending) error {
		return a.c.Store.RevokeKey(ctx, tenant, k.ID, k.Revoked, k.RevokedBy, entry)
	})
	if err != nil {
		return access.Key{}, err
	}
	return k, nil
}

// Key returns the tenant's key, or grant.ErrNotFound. An empty tenant is the platform.
func (a *Admin) Key(ctx context.Context, tenant, keyID string) (access.Key, error) {
	return a.c.Store.Key(ctx, tenant, keyID)
}

// Keys returns the tenant's keys, the newest first. An empty tenant is the platform.
func (a *Admin) Keys(ctx context.Context, tenant string, f access.KeyFilter) ([]access.Key, error) {
	return a.c.Store.Keys(ctx, tenant, f)
}

// keyEntry tells of a key that was made: nothing of its secret, nor of the hash.
func keyEntry(by access.Principal, k access.Key, facts ...string) audit.Entry {
	facts = append(facts, "key", k.ID, "name", audit.Clip(k.Name), "roles", list(k.Roles), "scopes", list(k.Scopes))
	if !k.Expires.IsZero() {
		facts = append(facts, "expires", k.Expires.Format(time.RFC3339Nano))
	}
	return audit.Entry{Tenant: access.History(k.Tenant), Actor: by.Actor, Kind: audit.Key, Subject: "key " + k.ID, Facts: audit.Facts(facts...)}
}

func list[T ~string](words []T) string {
	var all []string
	for _, w := range words {
		all = append(all, string(w))
	}
	return strings.Join(all, ",")
}
