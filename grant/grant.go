package grant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
)

// A Ref names what a grant is for. Exactly one of Script and AllScripts is set:
// a blank Script alone is a mistake, never "everything".
type Ref struct {
	Tenant     string `json:"tenant"`
	Skill      string `json:"skill"`            // the name in the skill's frontmatter, exact bytes
	Script     string `json:"script,omitempty"` // exact path of a file script, or name of a stored one
	AllScripts bool   `json:"allScripts,omitempty"`
}

// String returns "skill script", or "skill (all scripts)".
func (r Ref) String() string {
	if r.AllScripts {
		return r.Skill + " (all scripts)"
	}
	return r.Skill + " " + r.Script
}

// MaxName is the most bytes that the name of a tenant, a skill or a script may have.
const MaxName = 512

// ErrRef is wrapped by the error for a Ref that names nothing.
var ErrRef = errors.New("grant: bad reference")

// Validate says why r names nothing, or nil.
func (r Ref) Validate() error {
	if err := CheckName("tenant", r.Tenant); err != nil {
		return err
	}
	if err := CheckName("skill", r.Skill); err != nil {
		return err
	}
	switch {
	case r.AllScripts && r.Script != "":
		return fmt.Errorf("%w: it names the script %q and all scripts; name one of the two", ErrRef, r.Script)
	case r.AllScripts:
		return nil
	case r.Script == "":
		return fmt.Errorf("%w: the script's name is blank; name a script, or say all scripts", ErrRef)
	}
	return CheckName("script", r.Script)
}

// CheckName says why name cannot be that of a tenant, skill or script (what
// says which), or nil: 1 to 512 bytes of UTF-8 without control or direction
// characters, and no blank at either end.
func CheckName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the %s's name is blank", ErrRef, what)
	case len(name) > MaxName:
		return fmt.Errorf("%w: the %s's name has %d bytes, at most %d", ErrRef, what, len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: the %s's name %q is not UTF-8", ErrRef, what, name)
	}
	for _, r := range name {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return fmt.Errorf("%w: the %s's name %+q holds a control character", ErrRef, what, name)
		}
	}
	first, _ := utf8.DecodeRuneInString(name)
	last, _ := utf8.DecodeLastRuneInString(name)
	if unicode.IsSpace(first) || unicode.IsSpace(last) {
		return fmt.Errorf("%w: the %s's name %q begins or ends with a blank", ErrRef, what, name)
	}
	return nil
}

// A Tier says how strong the walls around a run are. Only the constants are
// tiers; the empty Tier is invalid and meets nothing.
type Tier string

// The tiers, rising.
const (
	Process Tier = "process" // a plain process of the host's user
	Sandbox Tier = "sandbox" // the Linux sandbox; OCI containers
	Kernel  Tier = "kernel"  // a kernel in user space, such as gVisor
	VM      Tier = "vm"      // a kernel of its own
)

// Tiers returns all tiers, rising.
func Tiers() []Tier { return []Tier{Process, Sandbox, Kernel, VM} }

// Valid reports whether t is a tier.
func (t Tier) Valid() bool { return slices.Contains(Tiers(), t) }

// Meets reports whether t is as high as want. A Tier that is not valid meets
// nothing, and nothing meets it.
func (t Tier) Meets(want Tier) bool {
	return t.Valid() && want.Valid() && slices.Index(Tiers(), t) >= slices.Index(Tiers(), want)
}

// A Grant lets a tenant run what Ref names while its content has the digest
// Pin. The zero Grant permits nothing.
type Grant struct {
	ID        string        `json:"id"` // UUIDv7
	Ref       Ref           `json:"ref"`
	Pin       bundle.Digest `json:"pin"`
	Reason    string        `json:"reason,omitempty"` // why, in the operator's words
	Source    string        `json:"source,omitempty"` // where the content came from, for information: it decides nothing
	GrantedBy string        `json:"grantedBy"`
	Granted   time.Time     `json:"granted"`
	Expires   time.Time     `json:"expires,omitzero"` // zero: does not expire
	Revoked   time.Time     `json:"revoked,omitzero"` // zero: not revoked
	RevokedBy string        `json:"revokedBy,omitempty"`
	MinTier   Tier          `json:"minTier"` // the least tier that may run it; required
}

// Validate says why g cannot be a grant, or nil.
func (g Grant) Validate() error {
	switch {
	case g.ID == "":
		return errors.New("grant: it has no id")
	case g.Pin.IsZero():
		return errors.New("grant: it pins no content")
	case !g.MinTier.Valid():
		return fmt.Errorf("grant: %q is not a tier; the tiers are %v", g.MinTier, Tiers())
	case g.Granted.IsZero():
		return errors.New("grant: it has no time")
	case !g.Expires.IsZero() && !g.Expires.After(g.Granted):
		return fmt.Errorf("grant: it would expire at %s, before it begins", g.Expires.Format(time.RFC3339))
	}
	return g.Ref.Validate()
}

// State returns "in force", "revoked", "expired", or "invalid" at the time now.
func (g Grant) State(now time.Time) string {
	switch {
	case g.ID == "" || g.Pin.IsZero() || !g.MinTier.Valid():
		return "invalid"
	case !g.Revoked.IsZero():
		return "revoked"
	case !g.Expires.IsZero() && !now.Before(g.Expires):
		return "expired"
	}
	return "in force"
}

// InForce reports whether g permits anything at the time now.
func (g Grant) InForce(now time.Time) bool { return g.State(now) == "in force" }

// Errors of a Book and a Finder.
var (
	ErrNotFound = errors.New("grant: not found") // there is none
	ErrConflict = errors.New("grant: conflict")  // another change came first; look again, then decide again
)

// A Finder finds grants. It must be safe for concurrent use.
type Finder interface {
	// Grant returns the newest grant of exactly ref, in force or not, or an error
	// that wraps ErrNotFound. Any other error means that it could not be read, and
	// nothing runs.
	Grant(ctx context.Context, ref Ref) (Grant, error)
}

// DefaultLimit is how many grants a [Filter] without a limit chooses at most.
const DefaultLimit = 1000

// A Filter chooses grants to list. The zero Filter chooses all.
type Filter struct {
	Skill  string // empty: any
	Before string // only grants that came before that one; empty, or one that the tenant has not: from the newest on
	Limit  int    // at most so many, the newest first; zero means 1,000, a negative one is an error
}

// A Book keeps grants and the contents that they pin.
type Book interface {
	Finder

	// AddGrant keeps g and content, whose digest g pins, and seals entry, all or
	// nothing. After is the id of the newest grant of g.Ref that the caller saw,
	// empty for none: where another one is the newest, it fails with ErrConflict.
	// The entry must be of the history of g's tenant, as for RevokeGrant.
	AddGrant(ctx context.Context, g Grant, content bundle.Bundle, after string, entry audit.Pending) error

	// RevokeGrant marks the tenant's grant id as revoked and seals entry, all or
	// nothing. It fails with ErrNotFound, or with ErrConflict when the grant was
	// revoked before.
	RevokeGrant(ctx context.Context, tenant, id string, at time.Time, by string, entry audit.Pending) error

	// GrantByID returns the tenant's grant id, or ErrNotFound.
	GrantByID(ctx context.Context, tenant, id string) (Grant, error)

	// Grants returns the tenant's grants, the newest first.
	Grants(ctx context.Context, tenant string, f Filter) ([]Grant, error)

	// Content returns the content that some grant of the tenant pins, or some
	// version of a skill that was imported for it, or ErrNotFound. It is kept as
	// long as one of them names it, revoked, replaced or deleted. What is returned
	// has that digest: bytes that were changed where they are kept are an error.
	Content(ctx context.Context, tenant string, digest bundle.Digest) (bundle.Bundle, error)

	// Files is Content for who reads one file at a time: the listing has that
	// digest, and each file is read, and compared with it, when it is asked for.
	// Files can be read until ctx is done or the Book is closed.
	Files(ctx context.Context, tenant string, digest bundle.Digest) (bundle.Content, error)
}
