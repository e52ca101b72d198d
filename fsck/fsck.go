// Package fsck checks that what a store keeps agrees with its log, and that the
// log adds up: the invariants that hold whatever fault came, at every moment at
// which nobody is in the middle of a change. It repairs nothing. Call [Check].
//
// # What is checked
//
// The letters are those of the fault plan.
//
//   - I2, I3: the log has no gap and no leaf that is not what was hashed, its root
//     is the one kept beside it, and so is the end of each tenant's history; with
//     Config.Verify, also every root that was ever signed.
//   - I5: each admission has one ending, or a living host works on it.
//   - I6: each grant, revocation, import, deletion, policy, key, tenant and setting of the host
//     has its entry, each such entry what it tells of, both say the same, and what
//     came later stands later. Each record of a call belongs to an admission, and each
//     call that ended has one, or an entry covers that its time was over.
//   - I7: what was revoked is revoked, and the newest policy is the one that holds.
//   - I8: no folder of a dead host is left.
//   - content: every content has the digest under which it is kept, and each that a
//     grant or a version names is there, or was erased by an entry.
//   - engine: the database finds nothing amiss in itself.
//
// That what was acknowledged is there (I1), that nothing ran without an admission
// (I4) and that nothing runs while the log cannot be written (I9) cannot be seen
// at rest: the tests of this package make the faults and compare.
package fsck

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/store"
)

// A Surveyor is a store that shows everything that it keeps.
type Surveyor interface {
	Survey(ctx context.Context) (store.Survey, error)
}

// Config says what is checked.
type Config struct {
	Store Surveyor   // required
	Log   *audit.Log // over the same store; required

	// Verify computes the log again and compares it with what was signed; it returns
	// how many entries it has. Nil: the log is computed again alone.
	Verify func(ctx context.Context, progress func(done uint64)) (uint64, error)

	// Alive reports whether the host that admitted a call lives, by the admission.
	// Nil: none does, as after every host has ended.
	Alive func(admission audit.Entry) bool

	// Unrecorded says that calls have no records, as with a runner without Calls.
	// False: one that is gone was erased by retention, or is a finding.
	Unrecorded bool

	// Leftovers names what dead hosts have left behind. Nil: it is not looked for.
	Leftovers func(context.Context) ([]string, error)

	// Progress, if not nil, is called now and then with what is being read and how
	// much of it was.
	Progress func(what string, done uint64)
}

// A Finding is one thing that is not as it must be.
type Finding struct {
	Invariant string  `json:"invariant"`        // which one is broken, such as "I6"
	Tenant    string  `json:"tenant,omitempty"` // whose it is, where it is one tenant's
	Entry     *uint64 `json:"entry,omitempty"`  // the index of the entry that it is about, where there is one
	What      string  `json:"what"`
	Remedy    string  `json:"remedy"`
}

// A Report counts what was read.
type Report struct {
	Entries  uint64 `json:"entries"`
	Tenants  uint64 `json:"tenants"`
	Grants   uint64 `json:"grants"`
	Versions uint64 `json:"versions"`
	Keys     uint64 `json:"keys"`
	Records  uint64 `json:"records"`
	Contents uint64 `json:"contents"`
	Running  uint64 `json:"running"` // admissions without an ending on which a living host works
	Findings uint64 `json:"findings"`
}

// What to do about a finding.
const (
	restore = "keep the data folder as it is for the inquiry, and restore a backup"
	inquire = "somebody or something wrote around Tracon: keep the data folder for the inquiry, compare it with a backup, and revoke what nobody vouches for"
	restart = "the next `tracon run` on this data folder closes and removes what a dead process left"
)

// Check reads everything once and calls tell with each finding, as it comes. Its
// memory follows the largest content, the number of tenants and of contents, and
// the calls under way; and that of the grants that were revoked, at some 500 bytes
// each, and of the records that one erasure took away, at some 150.
//
// # Errors
//
// When something could not be read for another reason than that it is damaged.
// What was told until then holds.
func Check(ctx context.Context, c Config, tell func(Finding)) (Report, error) {
	if c.Store == nil || c.Log == nil {
		return Report{}, errors.New("fsck: Config without a Store or a Log")
	}
	k := &checker{Config: c, tell: tell, named: map[bundle.Digest]string{}, erased: map[bundle.Digest]bool{}}
	err := k.check(ctx)
	if err != nil {
		err = fmt.Errorf("fsck: %w", err)
	}
	return k.report, err
}

type checker struct {
	Config
	survey store.Survey
	report Report
	tell   func(Finding)
	named  map[bundle.Digest]string // contents that a grant or a version names: which
	erased map[bundle.Digest]bool   // those that the log tells were erased
}

func (k *checker) found(f Finding) {
	k.report.Findings++
	k.tell(f)
}

// damage makes a finding of an error that tells of damage, and returns any other.
func (k *checker) damage(invariant, tenant string, err error) error {
	if err == nil || !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, audit.ErrBroken) {
		return err
	}
	f := Finding{Invariant: invariant, Tenant: tenant, What: err.Error(), Remedy: restore}
	if broken, ok := errors.AsType[*audit.BrokenError](err); ok {
		f.Entry = &broken.Index
	}
	k.found(f)
	return nil
}

func (k *checker) progress(what string, done uint64) {
	if k.Progress != nil && done%1024 == 0 {
		k.Progress(what, done)
	}
}

func (k *checker) check(ctx context.Context) (err error) {
	// The log first, in itself: it is what the rest is compared with.
	verify := k.Verify
	if verify == nil {
		verify = func(ctx context.Context, progress func(uint64)) (uint64, error) {
			tree, err := k.Log.Verify(ctx, progress)
			return tree.Size, err
		}
	}
	size, err := verify(ctx, func(done uint64) { k.progress("entries verified", done) })
	if err := k.damage("I3", "", err); err != nil {
		return err
	}
	if k.survey, err = k.Store.Survey(ctx); err != nil {
		return k.damage("engine", "", err)
	}
	defer func() { err = errors.Join(err, k.survey.Close()) }()
	for text, err := range k.survey.Flaws(ctx) {
		if err := k.damage("engine", "", err); err != nil {
			return err
		}
		if text != "" {
			k.found(Finding{Invariant: "engine", What: text, Remedy: restore})
		}
	}
	tip, err := k.survey.Tip(ctx)
	if err := k.damage("I3", "", err); err != nil {
		return err
	}
	if k.report.Entries = tip.Size(); tip.Size() < size {
		k.found(Finding{Invariant: "I2", What: fmt.Sprintf("the log had %d entries, and a moment later %d", size, tip.Size()), Remedy: restore})
	}
	names, err := k.survey.Tenants(ctx)
	if err := k.damage("I6", "", err); err != nil {
		return err
	}
	if !slices.Contains(names, gate.HostTenant) {
		names = append(names, gate.HostTenant) // the host's setting may be all that there is of it
	}
	for _, name := range names {
		if err := k.tenant(ctx, name); err != nil {
			return err
		}
		k.report.Tenants++
	}
	for d, err := range k.survey.Contents(ctx) {
		if err := k.damage("content", "", err); err != nil {
			return fmt.Errorf("the content %s: %w", d, err)
		}
		delete(k.named, d)
		k.report.Contents++
		k.progress("contents", k.report.Contents)
	}
	for d, by := range k.named {
		if !k.erased[d] {
			k.found(Finding{Invariant: "content", Remedy: restore, What: fmt.Sprintf("the content %s is not there, %s names it, and no entry tells that it was erased", d, by)})
		}
	}
	return k.leftovers(ctx)
}

func (k *checker) leftovers(ctx context.Context) error {
	if k.Leftovers == nil {
		return nil
	}
	left, err := k.Leftovers(ctx)
	for _, what := range left {
		k.found(Finding{Invariant: "I8", What: "left behind by a dead host: " + what, Remedy: restart})
	}
	return err
}
