package access

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// ErrInvalid is wrapped by the error for what cannot be a key, a tenant or a set of
// roles.
var ErrInvalid = errors.New("access: it cannot be so")

// A Key is what is kept of an API key. The zero Key lets nobody in.
type Key struct {
	ID         string       `json:"id"`               // public; see [ValidID]
	Tenant     string       `json:"tenant,omitempty"` // whose it is; empty: the platform's
	Name       string       `json:"name"`             // for people; see grant.CheckName
	Roles      []Role       `json:"roles"`            // of the tenant, or Platform alone
	Scopes     []Permission `json:"scopes,omitempty"` // narrow what the roles give; empty: all of it
	Created    time.Time    `json:"created"`
	CreatedBy  string       `json:"createdBy"`
	Expires    time.Time    `json:"expires,omitzero"` // zero: does not expire
	Revoked    time.Time    `json:"revoked,omitzero"` // zero: not revoked
	RevokedBy  string       `json:"revokedBy,omitempty"`
	ReplacedBy string       `json:"replacedBy,omitempty"` // id of the key that a rotation made in its place
	Used       time.Time    `json:"used,omitzero"`        // when it was used last, to [UsedEvery]; zero: never
	Hash       Hash         `json:"-"`                    // of its secret
}

// UsedEvery is how often it is written that a key is used.
const UsedEvery = time.Minute

// Validate says why k cannot be a key, or nil. The error wraps ErrInvalid, or
// grant.ErrRef for a name.
func (k Key) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
	}
	switch {
	case !ValidID(k.ID):
		return bad("%q is not the id of a key", k.ID)
	case k.Hash == Hash{}:
		return bad("key %s has no hash", k.ID)
	case k.CreatedBy == "":
		return bad("nobody made the key %s", k.ID)
	case k.Created.IsZero():
		return bad("key %s has no time", k.ID)
	case k.ReplacedBy != "" && (!ValidID(k.ReplacedBy) || k.ReplacedBy == k.ID):
		return bad("key %s was replaced by %q", k.ID, k.ReplacedBy)
	}
	if err := grant.CheckName("key", k.Name); err != nil {
		return err
	}
	if k.Tenant != "" {
		if err := gate.CheckTenant(k.Tenant); err != nil {
			return err
		}
	}
	if err := checkRoles(k.Roles, k.Scopes); err != nil {
		return err
	}
	if err := k.Principal().validate(); err != nil {
		return bad("%w", err)
	}
	return nil
}

// State returns "in force", "revoked", "expired" or "invalid" at the time now.
func (k Key) State(now time.Time) string {
	switch {
	case k.Validate() != nil:
		return "invalid"
	case !k.Revoked.IsZero():
		return "revoked"
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return "expired"
	}
	return "in force"
}

// InForce reports whether k lets anybody in at the time now, by itself: see
// [Authenticate] for what else it takes.
func (k Key) InForce(now time.Time) bool { return k.State(now) == "in force" }

// Counts reports whether k takes room of its tenant's quota at the time now: it is in
// force, and no rotation put another in its place.
func (k Key) Counts(now time.Time) bool { return k.ReplacedBy == "" && k.InForce(now) }

// Actor returns who acts by k, for the log: the id stands before the name, which
// somebody chose.
func (k Key) Actor() string { return "key " + k.ID + " " + k.Name }

// Principal returns whom k lets in, if it is in force.
func (k Key) Principal() Principal {
	return Principal{Tenant: k.Tenant, Actor: k.Actor(), Roles: slices.Clone(k.Roles), Scopes: slices.Clone(k.Scopes), Key: k.ID}
}
