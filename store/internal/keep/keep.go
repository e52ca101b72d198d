// Package keep is what every store does alike with a value before it keeps it:
// refuse what cannot be kept, bring it to the form that comes back, copy it.
package keep

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/toolcall"
)

// Time returns t as it comes back from a store: in UTC, cut to the microsecond.
// The zero time stays zero.
func Time(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

// Limit returns how many rows a filter with limit n may have: n, or def where n
// is zero. A negative n is an error, because SQL takes it for no limit at all.
func Limit(n, def int) (int, error) {
	switch {
	case n < 0:
		return 0, fmt.Errorf("store: a limit of %d; zero means %d", n, def)
	case n == 0:
		return def, nil
	}
	return n, nil
}

// History says why entry cannot be the record of a change of tenant's, or nil.
// An entry in another tenant's history would hide the change from its own.
func History(tenant string, entry audit.Pending) error {
	switch has := entry.Tenant(); {
	case has == "":
		return fmt.Errorf("%w: a change without its entry", audit.ErrEntry)
	case has != tenant:
		return fmt.Errorf("%w: a change of %q with an entry in the history of %q", audit.ErrEntry, tenant, has)
	}
	return nil
}

// Grant returns g as it is kept, or says why it cannot be kept with content and
// entry.
func Grant(g grant.Grant, content bundle.Bundle, entry audit.Pending) (grant.Grant, error) {
	g.Granted, g.Expires, g.Revoked = Time(g.Granted), Time(g.Expires), Time(g.Revoked)
	if err := g.Validate(); err != nil {
		return grant.Grant{}, err
	}
	if !g.Revoked.IsZero() || g.RevokedBy != "" {
		return grant.Grant{}, errors.New("grant: it is revoked before it is made")
	}
	if d := content.Digest(); d != g.Pin {
		return grant.Grant{}, fmt.Errorf("grant: it pins %s, and its content has the digest %s", g.Pin, d)
	}
	return g, History(g.Ref.Tenant, entry)
}

// Revocation returns the time of a revocation as it is kept, or says why it
// cannot be kept with entry. Zero would mean "not revoked".
func Revocation(tenant string, at time.Time, entry audit.Pending) (time.Time, error) {
	if at = Time(at); at.IsZero() {
		return time.Time{}, errors.New("grant: a revocation without its time")
	}
	return at, History(tenant, entry)
}

// Version returns v as it is kept, or says why it cannot be kept with content,
// which may be nil, and entry.
func Version(v admin.Version, content bundle.Content, entry audit.Pending) (admin.Version, error) {
	v.Imported = Time(v.Imported)
	var l bundle.Listing
	if content != nil {
		l = content.Listing()
	}
	if err := v.Check(l); err != nil {
		return admin.Version{}, err
	}
	return v, History(v.Tenant, entry)
}

// Key returns k as it is kept, or says why it cannot be kept with entry.
func Key(k access.Key, entry audit.Pending) (access.Key, error) {
	k = CopyKey(k)
	k.Created, k.Expires, k.Revoked = Time(k.Created), Time(k.Expires), Time(k.Revoked)
	if err := k.Validate(); err != nil {
		return access.Key{}, err
	}
	if !k.Revoked.IsZero() || k.RevokedBy != "" || k.ReplacedBy != "" || !k.Used.IsZero() {
		return access.Key{}, fmt.Errorf("%w: the key %s is revoked, replaced or used before it is made", access.ErrInvalid, k.ID)
	}
	return k, History(access.History(k.Tenant), entry)
}

// CopyKey returns a copy of k that shares nothing with it.
func CopyKey(k access.Key) access.Key {
	k.Roles, k.Scopes = slices.Clone(k.Roles), slices.Clone(k.Scopes)
	return k
}

// ReplacedKey returns k as it is kept when the key id was put in its place, or says why
// that cannot be.
func ReplacedKey(k access.Key, id string, ends time.Time) (access.Key, error) {
	switch {
	case !k.Revoked.IsZero():
		return k, fmt.Errorf("%w: key %s was revoked before", grant.ErrConflict, k.ID)
	case k.ReplacedBy != "":
		return k, fmt.Errorf("%w: key %s was replaced before", grant.ErrConflict, k.ID)
	case ends.IsZero():
		return k, fmt.Errorf("%w: key %s is replaced without an end", access.ErrInvalid, k.ID)
	}
	k.ReplacedBy = id
	if ends = Time(ends); k.Expires.IsZero() || ends.Before(k.Expires) {
		k.Expires = ends
	}
	return k, nil
}

// RevokedKey returns k as it is kept when it was revoked, or says why that cannot be.
func RevokedKey(k access.Key, at time.Time, by string) (access.Key, error) {
	if !k.Revoked.IsZero() {
		return k, fmt.Errorf("%w: key %s was revoked before", grant.ErrConflict, k.ID)
	}
	if at = Time(at); at.IsZero() {
		return k, fmt.Errorf("%w: a revocation without its time", access.ErrInvalid)
	}
	k.Revoked, k.RevokedBy = at, by
	return k, nil
}

// Tenant returns t as it is kept, or says why it cannot be kept with entry.
func Tenant(t access.Tenant, entry audit.Pending) (access.Tenant, error) {
	t.Created, t.Deleted = Time(t.Created), Time(t.Deleted)
	if err := t.Validate(); err != nil {
		return access.Tenant{}, err
	}
	return t, History(t.Name, entry)
}

// Answer returns the bytes of answer that are kept, and whether they are many; nil
// where there is none, or too much to keep.
func Answer(answer []byte) (kept []byte, large bool) {
	if len(answer) == 0 || len(answer) > idempotency.MaxAnswer {
		return nil, false
	}
	return slices.Clone(answer), len(answer) > idempotency.SmallAnswer
}

// Call returns a copy of r as it is kept, or says why it cannot be kept with
// ending.
func Call(r toolcall.Record, ending audit.Pending) (toolcall.Record, error) {
	if r.ID == "" || r.Tenant == "" {
		return toolcall.Record{}, errors.New("toolcall: a record without an id or a tenant")
	}
	r = CopyCall(r)
	r.Admitted, r.Ended = Time(r.Admitted), Time(r.Ended)
	for i, note := range r.Notes { // an executor's words
		r.Notes[i] = strings.ToValidUTF8(note, "\uFFFD")
	}
	return r, History(r.Tenant, ending)
}

// CopyCall returns a copy of r that shares nothing with it.
func CopyCall(r toolcall.Record) toolcall.Record {
	r.ArgumentsSalt = slices.Clone(r.ArgumentsSalt)
	r.Notes = slices.Clone(r.Notes)
	r.ExitCode, r.Signal = copyInt(r.ExitCode), copyInt(r.Signal)
	return r
}

func copyInt(n *int) *int {
	if n == nil {
		return nil
	}
	return new(*n)
}

// CopyHost returns a copy of h that shares nothing with it.
func CopyHost(h gate.Host) gate.Host {
	h.Interpreters, h.Runtimes = maps.Clone(h.Interpreters), maps.Clone(h.Runtimes)
	return h
}

// CopyPolicy returns a copy of p that shares nothing with it. Its timeout is
// cut to the microsecond, which is what the JSON of a policy holds.
func CopyPolicy(p gate.Policy) gate.Policy {
	p.Interpreters = slices.Clone(p.Interpreters)
	p.Environment = maps.Clone(p.Environment)
	p.Secrets = slices.Clone(p.Secrets)
	p.Timeout = p.Timeout.Truncate(time.Microsecond)
	return p
}
