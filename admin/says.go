package admin

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// The entries that an [Admin] writes, read again beside what is kept. Each
// function says in a few words in what the two differ, and "" where they agree.

// IsGrant compares e, of the kind audit.Granted, with g.
func IsGrant(e audit.Entry, g grant.Grant) string {
	var d differences
	d.text("id", e.Fact("grant"), g.ID)
	d.text("reference", e.Subject, audit.Clip(g.Ref.String()))
	d.text("digest", e.Fact("digest"), g.Pin.String())
	d.text("tier", e.Fact("tier"), string(g.MinTier))
	d.text("author", e.Actor, audit.Clip(g.GrantedBy))
	d.time("end", e.Fact("expires"), g.Expires)
	return d.String()
}

// IsRevocation compares e, of the kind audit.Revoked, with the grant that it
// revokes.
func IsRevocation(e audit.Entry, g grant.Grant) string {
	var d differences
	d.text("id", e.Fact("grant"), g.ID)
	d.text("digest", e.Fact("digest"), g.Pin.String())
	if g.Revoked.IsZero() {
		return d.add("it is not revoked").String()
	}
	d.text("author of the revocation", e.Actor, audit.Clip(g.RevokedBy))
	return d.String()
}

// IsVersion compares e, of the kind audit.Imported or audit.Deleted, with v.
func IsVersion(e audit.Entry, v Version) string {
	var d differences
	d.text("id", e.Fact("version"), v.ID)
	d.text("skill", e.Subject, audit.Clip(v.Skill))
	d.text("author", e.Actor, v.By)
	d.text("kind", string(e.Kind), string(map[bool]audit.Kind{true: audit.Deleted, false: audit.Imported}[v.Deleted]))
	digest := ""
	if !v.Deleted {
		digest = v.Digest.String()
	}
	d.text("digest", e.Fact("digest"), digest)
	d.text("mark of a stored script", e.Fact("stored"), map[bool]string{true: "true"}[v.Stored])
	return d.String()
}

// IsKey compares e, of the kind audit.Key, with the key k that it tells was made. Of its
// secret the log knows nothing. A key that was put in another's place ends earlier
// than its own entry says; see IsReplacement.
func IsKey(e audit.Entry, k access.Key) string {
	var d differences
	d.text("id", e.Fact("key"), k.ID)
	d.text("name", e.Fact("name"), audit.Clip(k.Name))
	d.text("roles", e.Fact("roles"), list(k.Roles))
	d.text("scopes", e.Fact("scopes"), list(k.Scopes))
	d.text("author", e.Actor, audit.Clip(k.CreatedBy))
	if k.ReplacedBy == "" {
		d.time("end", e.Fact("expires"), k.Expires)
	}
	return d.String()
}

// IsReplacement compares e, of the kind audit.Key, with the key that it tells was
// replaced.
func IsReplacement(e audit.Entry, old access.Key) string {
	var d differences
	d.text("id", e.Fact("replaces"), old.ID)
	d.text("key in its place", e.Fact("key"), old.ReplacedBy)
	d.time("end", e.Fact("ends"), old.Expires)
	return d.String()
}

// IsKeyRevocation compares e, of the kind audit.Key, with the key that it tells was
// revoked.
func IsKeyRevocation(e audit.Entry, k access.Key) string {
	var d differences
	d.text("id", e.Fact("key"), k.ID)
	if k.Revoked.IsZero() {
		return d.add("it is not revoked").String()
	}
	d.text("author of the revocation", e.Actor, audit.Clip(k.RevokedBy))
	return d.String()
}

// IsTenant compares e, of the kind audit.Tenant, with t.
func IsTenant(e audit.Entry, t access.Tenant) string {
	return isSetting(e, t, new(access.Tenant), new(access.Tenant))
}

// IsPolicy compares e, of the kind audit.Policy, with p. Of the values of the
// environment the log knows the lengths alone.
func IsPolicy(e audit.Entry, p gate.Policy) string {
	return isSetting(e, p, new(gate.Policy), new(gate.Policy))
}

// IsHost compares e, of the kind audit.Host, with h: the zero Entry where there was
// none. Of h's runtimes other entries tell; see [ReadRuntime].
func IsHost(e audit.Entry, h gate.Host) string {
	if e.Kind == "" {
		e.Facts = audit.Facts("after", tell(gate.Host{}))
	}
	return isSetting(e, h, new(gate.Host), new(gate.Host))
}

// ReadRuntime makes the change of the runtimes of a host that e, of the kind
// audit.Runtime, tells of.
func ReadRuntime(e audit.Entry, runtimes map[string]bundle.Digest) error {
	name := strings.TrimPrefix(e.Subject, "runtime ")
	digest, err := bundle.ParseDigest(e.Fact("digest"))
	switch {
	case err != nil:
		return err
	case e.Fact("act") == "removed":
		delete(runtimes, name)
	default:
		runtimes[name] = digest
	}
	return nil
}

// isSetting compares the values, not the texts: a later version of this program
// may write a setting with more members. A text that was cut is compared as it is.
func isSetting(e audit.Entry, setting, said, kept any) string {
	was, is := e.Fact("after"), tell(setting)
	if was == is {
		return ""
	}
	if json.Unmarshal([]byte(was), said) == nil && json.Unmarshal([]byte(is), kept) == nil && reflect.DeepEqual(said, kept) {
		return ""
	}
	return fmt.Sprintf("the entry says %s, and kept is %s", was, is)
}

type differences []string

func (d *differences) add(what string) differences {
	*d = append(*d, what)
	return *d
}

func (d *differences) text(what, said, kept string) {
	if said != kept {
		d.add(fmt.Sprintf("the entry has the %s %q, and kept is %q", what, said, kept))
	}
}

func (d *differences) time(what, said string, kept time.Time) {
	at, err := time.Parse(time.RFC3339Nano, said)
	if said == "" {
		at, err = time.Time{}, nil
	}
	if err != nil || !at.Truncate(time.Microsecond).Equal(kept) {
		d.add(fmt.Sprintf("the entry has the %s %q, and kept is %q", what, said, kept.Format(time.RFC3339Nano)))
	}
}

func (d differences) String() string { return strings.Join(d, "; ") }
