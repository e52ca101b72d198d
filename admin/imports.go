package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/id"
)

// A Version is one state of a skill that was imported for a tenant. The zero
// Version is none.
type Version struct {
	ID       string        `json:"id"` // UUIDv7
	Tenant   string        `json:"tenant"`
	Skill    string        `json:"skill"`
	Digest   bundle.Digest `json:"digest,omitzero"`  // of the content; zero for a deletion
	Stored   bool          `json:"stored,omitempty"` // a single stored script, not a folder
	Source   string        `json:"source,omitempty"` // where it came from, for information: it decides nothing
	Reason   string        `json:"reason,omitempty"` // why, in the operator's words
	Imported time.Time     `json:"imported"`
	By       string        `json:"by"`
	Deleted  bool          `json:"deleted,omitempty"` // from here on the tenant has no such skill
}

// Validate says why v cannot be a version, or nil.
func (v Version) Validate() error {
	switch {
	case v.ID == "":
		return errors.New("admin: a version has no id")
	case v.Digest.IsZero() != v.Deleted:
		return errors.New("admin: a version has a digest exactly when it is no deletion")
	case v.Deleted && v.Stored:
		return errors.New("admin: a deletion is no stored script")
	case v.Imported.IsZero():
		return errors.New("admin: a version has no time")
	}
	if err := gate.CheckTenant(v.Tenant); err != nil {
		return err
	}
	return grant.CheckName("skill", v.Skill)
}

// Check says why v cannot be the version of a content with this listing, or nil: of
// the zero Listing for a deletion, of one file with a plain name for a stored script.
func (v Version) Check(content bundle.Listing) error {
	if err := v.Validate(); err != nil {
		return err
	}
	if d := content.Digest(); d != v.Digest {
		return fmt.Errorf("admin: a version of %s, and its content has the digest %s", v.Digest, d)
	}
	paths := content.Paths()
	switch {
	case v.Deleted:
		return nil
	case len(paths) == 0:
		return fmt.Errorf("%w: it has no file", bundle.ErrContent)
	case v.Stored && (len(paths) != 1 || strings.Contains(paths[0], "/")):
		return fmt.Errorf("%w: a stored script is one file with a plain name", bundle.ErrContent)
	}
	return nil
}

// DefaultVersions is how many versions Versions returns at most where its limit
// is zero.
const DefaultVersions = 1000

// Imports keeps the skills that were imported for tenants, with their history.
// The newest version of a skill is the one that came last, whatever its id and
// its time say. Names are compared by exact bytes.
type Imports interface {
	// AddVersion keeps v as the newest version of its skill, with content, whose
	// digest it names (nil or the zero Bundle for a deletion), and seals entry, all
	// or nothing. After is the id of the newest version that the caller saw, empty
	// for none; where there is another, or one of v's id in whatever skill of the
	// tenant, it fails with grant.ErrConflict.
	//
	// The files of content are read by bundle.Read, one at a time and each at most
	// once. Where reading fails, nothing is kept, and the error is content's. The
	// lock of the store may be held meanwhile, so content must not wait for anybody:
	// what comes from elsewhere is put aside first.
	AddVersion(ctx context.Context, v Version, content bundle.Content, after string, entry audit.Pending) error

	// Versions returns the versions of the tenant's skill, the newest first, at
	// most limit (zero means 1,000, a negative one is an error); nothing for a
	// skill that it never had.
	Versions(ctx context.Context, tenant, skill string, limit int) ([]Version, error)

	// Skills returns the newest version of each skill that the tenant has now, in
	// the bytewise order of their names.
	Skills(ctx context.Context, tenant string) ([]Version, error)

	// Imported returns the newest version of the tenant's skill and its content, or
	// grant.ErrNotFound where it has none now. The content has that digest: bytes
	// that were changed where they are kept are an error.
	Imported(ctx context.Context, tenant, skill string) (Version, bundle.Bundle, error)

	// ImportedFile returns the newest version of the tenant's skill, and whether
	// its content has a file of exactly this path, or grant.ErrNotFound where it
	// has none now. It reads no file, so that a name can be looked for at a cost
	// that does not grow with the skill.
	ImportedFile(ctx context.Context, tenant, skill, path string) (v Version, has bool, err error)
}

// An Importing says what is to be imported.
type Importing struct {
	Actor   string
	Tenant  string
	Skill   string         // the name that it gets, as its SKILL.md has it
	Content bundle.Content // every file, and the declaration; see [Imports.AddVersion]
	Stored  bool           // a single stored script: one file with a plain name
	Source  string         // where it came from, for information; at most 4 KiB are kept, as of Reason
	Reason  string
}

// Import keeps the content as the newest version of the tenant's skill. The
// versions before it stay in the history. What is the newest already is not
// kept again: its version is returned. It grants nothing.
//
// A name that some file system takes for that of another skill of the tenant is
// refused. Two such imports at the same moment may both stand; they are two
// skills even then.
//
// # Errors
//
// bundle.ErrContent for content that cannot be a skill's, for one over the host's
// limits, and, as bundle.ErrTwins, for such a name; grant.ErrRef for a name that
// is none; grant.ErrConflict when another import of the skill came first;
// access.ErrQuota; ErrDeleted.
func (a *Admin) Import(ctx context.Context, i Importing) (Version, error) {
	if i.Content == nil || i.Content.Listing().IsZero() {
		return Version{}, fmt.Errorf("%w: there is none", bundle.ErrContent)
	}
	content := i.Content.Listing()
	v := Version{Tenant: i.Tenant, Skill: i.Skill, Digest: content.Digest(), Stored: i.Stored, Source: audit.Clip(i.Source), Reason: i.Reason, By: i.Actor}
	h, err := a.Host(ctx)
	if err != nil {
		return Version{}, err
	}
	if err := content.Within(h.Content); err != nil {
		return Version{}, err
	}
	return a.addVersion(ctx, audit.Imported, v, i.Content, "")
}

// DeleteSkill takes the tenant's skill away. Its history and its contents stay;
// a grant for it holds again when the same bytes are imported again (case 48).
//
// # Errors
//
// grant.ErrNotFound where the tenant has no such skill; grant.ErrConflict when an
// import came first.
func (a *Admin) DeleteSkill(ctx context.Context, actor, tenant, skill, reason string) (Version, error) {
	return a.DeleteSkillAfter(ctx, actor, tenant, skill, reason, "")
}

// DeleteSkillAfter is DeleteSkill for who has looked: after is the id of the newest
// version that he saw, and where there is another it fails with grant.ErrConflict. An
// empty one means whatever is the newest.
func (a *Admin) DeleteSkillAfter(ctx context.Context, actor, tenant, skill, reason, after string) (Version, error) {
	v := Version{Tenant: tenant, Skill: skill, Reason: reason, By: actor, Deleted: true}
	return a.addVersion(ctx, audit.Deleted, v, bundle.Bundle{}, after)
}

func (a *Admin) addVersion(ctx context.Context, kind audit.Kind, v Version, content bundle.Content, after string) (Version, error) {
	v.ID, v.Imported = id.New(), time.Now().UTC().Truncate(time.Microsecond)
	v.Reason, v.By = audit.Clip(v.Reason), audit.Clip(v.By)
	if err := v.Check(content.Listing()); err != nil {
		return Version{}, err
	}
	newest, err := a.newestVersion(ctx, v.Tenant, v.Skill)
	has := newest.ID != "" && !newest.Deleted
	switch {
	case err != nil:
		return Version{}, err
	case after != "" && newest.ID != after:
		return Version{}, fmt.Errorf("%w: the newest version of %q is %s", grant.ErrConflict, v.Skill, newest.ID)
	case v.Deleted && !has:
		return Version{}, fmt.Errorf("%w: tenant %q has no imported skill %q", grant.ErrNotFound, v.Tenant, v.Skill)
	case has && newest.Digest == v.Digest && newest.Stored == v.Stored:
		return newest, nil
	case !has:
		if err := a.twin(ctx, v); err != nil {
			return Version{}, err
		}
	}
	room := a.room
	if v.Deleted {
		room = a.quota
	}
	quota, err := room(ctx, v.Tenant)
	if err != nil {
		return Version{}, err
	}
	// The source stays out of the log: it may be a path of somebody's machine.
	facts := []string{"version", v.ID, "reason", v.Reason, "replaces", newest.ID}
	if !v.Deleted {
		files, bytes := content.Listing().Size()
		facts = append(facts, "digest", v.Digest.String(), "content", fmt.Sprintf("%d files, %d bytes", files, bytes))
	}
	if v.Stored {
		facts = append(facts, "stored", "true")
	}
	e := audit.Entry{Tenant: v.Tenant, Actor: v.By, Kind: kind, Subject: audit.Clip(v.Skill), Facts: audit.Facts(facts...)}
	err = a.write(ctx, e, false, func(ctx context.Context, entry audit.Pending) error {
		return a.c.Store.Within(quota).AddVersion(ctx, v, content, newest.ID, entry)
	})
	if err != nil {
		return Version{}, err
	}
	return v, nil
}

// newestVersion returns the newest version of the skill, the zero one for none.
func (a *Admin) newestVersion(ctx context.Context, tenant, skill string) (Version, error) {
	history, err := a.c.Store.Versions(ctx, tenant, skill, 1)
	if err != nil || len(history) == 0 {
		return Version{}, err
	}
	return history[0], nil
}

// twin says with which skill that the tenant has v's name would be confused.
func (a *Admin) twin(ctx context.Context, v Version) error {
	skills, err := a.c.Store.Skills(ctx, v.Tenant)
	if err != nil {
		return err
	}
	for _, s := range skills {
		if bundle.Twins(s.Skill, v.Skill) {
			return fmt.Errorf("%w: skill %q, and %q, which the tenant has; rename one of them", bundle.ErrTwins, v.Skill, s.Skill)
		}
	}
	return nil
}

// Versions returns the history of the tenant's imported skill, the newest first,
// at most limit versions; zero means 1,000.
func (a *Admin) Versions(ctx context.Context, tenant, skill string, limit int) ([]Version, error) {
	return a.c.Store.Versions(ctx, tenant, skill, limit)
}

// Skills returns the newest version of each skill that was imported for the
// tenant and not deleted, by name.
func (a *Admin) Skills(ctx context.Context, tenant string) ([]Version, error) {
	return a.c.Store.Skills(ctx, tenant)
}
