package skill

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// Imports is where skills are kept that were imported for tenants. A tenant's
// are its own: no method answers with those of another. Where the tenant has no
// such skill now, the error wraps grant.ErrNotFound; any other error means that it
// could not be read. It must be safe for concurrent use.
type Imports interface {
	// ImportedScript returns where the file of exactly this path lives, and the
	// zero gate.Origin where the skill has none. It should read no file: whoever
	// guesses names asks it before any grant is looked at.
	ImportedScript(ctx context.Context, tenant, skill, path string) (gate.Origin, error)

	// ImportedSkill returns every file of the skill, and its declaration.
	ImportedSkill(ctx context.Context, tenant, skill string) (bundle.Bundle, error)
}

// Imported is the gates' Contents over imported skills. Make one with
// [NewImported]; it is safe for concurrent use and keeps nothing: every call asks
// anew, so that what was deleted is gone at once.
type Imported struct{ from Imports }

var _ Knower = (*Imported)(nil)

// NewImported returns the Contents over from. It panics when from is nil.
func NewImported(from Imports) *Imported {
	if from == nil {
		panic("skill: NewImported of nil")
	}
	return &Imported{from}
}

// Knows reports whether the skill was imported for the tenant and is there now.
func (i *Imported) Knows(ctx context.Context, tenant, skill string) (bool, error) {
	_, err := i.from.ImportedScript(ctx, tenant, skill, markdown)
	if errors.Is(err, grant.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Find reports whether script is a file of the skill, by the exact bytes of its
// path: gate.StoredScript for that of a stored script, else gate.FileScript.
func (i *Imported) Find(ctx context.Context, tenant, skill, script string) (gate.Origin, error) {
	origin, err := i.from.ImportedScript(ctx, tenant, skill, script)
	switch {
	case err != nil:
		return 0, unknown(err, skill)
	case origin == 0 || bundle.CheckPath(script) != nil:
		return 0, fmt.Errorf("%w: skill %s has no script %s", gate.ErrUnknown, short(skill), short(script))
	}
	return origin, nil
}

// Read returns every file of the skill as it was imported. One over the limits,
// which may be narrower now, is an error that wraps bundle.ErrContent.
func (i *Imported) Read(ctx context.Context, tenant, skill string, limits bundle.Limits) (bundle.Bundle, error) {
	b, err := i.from.ImportedSkill(ctx, tenant, skill)
	if err != nil {
		return bundle.Bundle{}, unknown(err, skill)
	}
	if err := b.Within(limits); err != nil {
		return bundle.Bundle{}, err
	}
	return b, nil
}

// unknown makes gate.ErrUnknown of the error for a skill that is not there.
func unknown(err error, skill string) error {
	if errors.Is(err, grant.ErrNotFound) {
		return fmt.Errorf("%w: skill %s", gate.ErrUnknown, short(skill))
	}
	return err
}

// A Knower is the gates' Contents that can say of a skill whether it has it,
// whatever its scripts are called.
type Knower interface {
	gate.Contents

	// Knows reports whether the tenant has the skill here. An error means that it
	// could not be found out.
	Knows(ctx context.Context, tenant, skill string) (bool, error)
}

var _ Knower = (*Library)(nil)

// Knows reports whether the skill is in a folder that was added. All tenants have
// the same ones here.
func (l *Library) Knows(_ context.Context, _, skill string) (bool, error) {
	_, ok := l.entry(skill)
	return ok, nil
}

// Contents returns the skills of first, and those of second that first does not
// know. A skill that first knows is first's alone: a script that it does not have
// there, or that cannot be read there, is not looked for in second, so that two
// skills of one name never mix. It is as safe for concurrent use as they are. It
// panics when one of them is nil.
func Contents(first Knower, second gate.Contents) gate.Contents {
	if first == nil || second == nil {
		panic("skill: Contents of nil")
	}
	return inTurn{first, second}
}

// inTurn is safe to ask twice in one admission: should the answer change between
// Find and Read, the bytes are still all of one skill, and the pin judges them.
type inTurn struct {
	first  Knower
	second gate.Contents
}

func (c inTurn) of(ctx context.Context, tenant, skill string) (gate.Contents, error) {
	knows, err := c.first.Knows(ctx, tenant, skill)
	if err != nil {
		return nil, err
	}
	if knows {
		return c.first, nil
	}
	return c.second, nil
}

func (c inTurn) Find(ctx context.Context, tenant, skill, script string) (gate.Origin, error) {
	from, err := c.of(ctx, tenant, skill)
	if err != nil {
		return 0, err
	}
	return from.Find(ctx, tenant, skill, script)
}

func (c inTurn) Read(ctx context.Context, tenant, skill string, limits bundle.Limits) (bundle.Bundle, error) {
	from, err := c.of(ctx, tenant, skill)
	if err != nil {
		return bundle.Bundle{}, err
	}
	return from.Read(ctx, tenant, skill, limits)
}
