package skill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

// A Summary is what a list shows of a skill: its names, not its contents.
type Summary struct {
	Meta
	Folder      string       // where it lies on the host
	Scripts     []string     // paths of what an interpreter may run, sorted
	Diagnostics []Diagnostic // of SKILL.md and of the folder's entries
}

// A Library is a set of skills in folders. It is the gates' Contents: what was
// found when a root was scanned is what is known, and the bytes are read anew for
// each call. It is safe for concurrent use.
type Library struct {
	limits bundle.Limits

	mu       sync.RWMutex
	sources  []source // in the order in which they were added
	byName   map[string]*entry
	problems []Diagnostic
}

var _ gate.Contents = (*Library)(nil)

type source struct {
	folder string // absolute
	root   bool   // a folder of skills; else one skill
}

type entry struct {
	Summary
	source string   // the source's folder
	below  []string // the elements of the way from it to the skill's
}

// NewLibrary returns a Library without skills. Limits bound the folders that it
// lists; those that it reads are bound by what the gate says.
func NewLibrary(limits bundle.Limits) *Library {
	return &Library{limits: limits.OrDefaults(), byName: map[string]*entry{}}
}

// AddRoot scans the folder for skills and adds those that can be used; see
// [Library.Problems] for the others. A skill whose name is known already is left
// out with a warning: the first one wins. It fails only when the folder itself
// cannot be read.
func (l *Library) AddRoot(folder string) error { return l.add(folder, true) }

// AddFolder adds the one skill in folder. It fails when that cannot be used, with
// an error as [Read] has them, or when its name is known already.
func (l *Library) AddFolder(folder string) error { return l.add(folder, false) }

func (l *Library) add(folder string, root bool) error {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return fmt.Errorf("skills in %s: %w", visible(folder), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := source{abs, root}
	found, problems, err := l.scan(s)
	if err != nil {
		return err
	}
	if !root {
		if was, ok := l.byName[found[0].Name]; ok && was.Folder != found[0].Folder {
			return fmt.Errorf("skill %s in %s: another one of this name is in %s; rename one of them",
				short(found[0].Name), visible(abs), visible(was.Folder))
		}
	}
	l.sources = append(l.sources, s)
	l.merge(found, problems)
	return nil
}

func (l *Library) merge(found []*entry, problems []Diagnostic) {
	l.problems = append(l.problems, problems...)
	for _, e := range found {
		was, ok := l.byName[e.Name]
		switch {
		case !ok:
			l.byName[e.Name] = e
		case was.Folder != e.Folder:
			l.problems = append(l.problems, Diagnostic{Warning, "name-twice", e.Folder, 0,
				fmt.Sprintf("skill %s is in %s already; that one is taken", short(e.Name), visible(was.Folder)), "rename or remove one of them"})
		}
	}
}

// Rescan looks through all sources again. What is there no longer is forgotten.
// When a source cannot be read, nothing changes.
func (l *Library) Rescan() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh := NewLibrary(l.limits)
	for _, s := range l.sources {
		found, problems, err := l.scan(s)
		if err != nil {
			return err
		}
		fresh.merge(found, problems)
	}
	l.byName, l.problems = fresh.byName, fresh.problems
	return nil
}

// List returns the skills that can be used, by name. It reads nothing.
func (l *Library) List() []Summary {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]Summary, 0, len(l.byName))
	for _, e := range l.byName {
		all = append(all, e.Summary)
	}
	slices.SortFunc(all, func(a, b Summary) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Problems returns what scanning found amiss outside of the skills that can be
// used: folders that cannot be read, links, broken skills, names that stand
// twice. Their paths are those on the host.
func (l *Library) Problems() []Diagnostic {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clone(l.problems)
}

// Folder returns where the skill lies, by its exact name.
func (l *Library) Folder(skill string) (string, bool) {
	e, ok := l.entry(skill)
	if !ok {
		return "", false
	}
	return e.Folder, true
}

func (l *Library) entry(skill string) (*entry, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	e, ok := l.byName[skill]
	return e, ok
}

// Skill reads the skill whole. An unknown one is an error that wraps
// gate.ErrUnknown; the others are those of [Read].
func (l *Library) Skill(skill string, limits bundle.Limits) (Skill, error) {
	return inMemory(l.SkillInto(skill, limits, bundle.NewBuilder(limits)))
}

// SkillInto is [Library.Skill] for a skill that need not be in memory; see [ReadInto].
func (l *Library) SkillInto(skill string, limits bundle.Limits, keep Keeper) (Outline, bundle.Content, error) {
	e, ok := l.entry(skill)
	if !ok {
		return Outline{}, nil, fmt.Errorf("%w: skill %s", gate.ErrUnknown, short(skill))
	}
	d, err := e.open()
	if err != nil {
		return Outline{}, nil, err
	}
	defer d.close()
	o, c, err := readDirInto(d, e.Folder, e.Name, limits, keep)
	if err != nil {
		return Outline{}, nil, err
	}
	if o.Name != skill {
		return Outline{}, nil, fmt.Errorf("%w: skill %s calls itself %s now; list the skills again", bundle.ErrContent, short(skill), short(o.Name))
	}
	return o, c, nil
}

// open goes to the skill's folder element by element, following no link.
func (e *entry) open() (dir, error) {
	d, err := openDir(e.source)
	if err == nil {
		d, err = descend(d, e.below)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errLink):
		return dir{}, fmt.Errorf("%w: skill %s is not where it was any more; list the skills again", gate.ErrUnknown, short(e.Name))
	case err != nil:
		return dir{}, fmt.Errorf("%w: skill %s: its folder cannot be opened: %w", bundle.ErrContent, short(e.Name), errPart(err))
	}
	return d, nil
}

// descend closes d and returns the folder at the end of the way.
func descend(d dir, way []string) (dir, error) {
	for _, name := range way {
		sub, err := d.sub(name)
		d.close()
		if err != nil {
			return dir{}, err
		}
		d = sub
	}
	return d, nil
}

// Find reports whether script is a file of the skill, by the exact bytes of its
// path: each element is looked for among the names that the folder lists, so no
// path is joined of what a model sent, and a file system that folds case or
// normal form finds nothing more. All tenants have the same skills here; those
// that were imported for one of them are the store's.
func (l *Library) Find(ctx context.Context, _, skill, script string) (gate.Origin, error) {
	unknown := fmt.Errorf("%w: skill %s has no script %s", gate.ErrUnknown, short(skill), short(script))
	e, ok := l.entry(skill)
	if !ok {
		return 0, fmt.Errorf("%w: skill %s", gate.ErrUnknown, short(skill))
	}
	if bundle.CheckPath(script) != nil {
		return 0, unknown
	}
	d, err := e.open()
	if err != nil {
		return 0, err
	}
	defer func() { d.close() }()
	way := strings.Split(script, "/")
	for i, name := range way {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		mode, err := d.lookup(name, 8*l.limits.Files+1024)
		if err != nil {
			return 0, fmt.Errorf("%w: skill %s: its folder cannot be read: %w", bundle.ErrContent, short(skill), errPart(err))
		}
		if i == len(way)-1 {
			if !mode.IsRegular() {
				return 0, unknown
			}
			break
		}
		if !mode.IsDir() {
			return 0, unknown
		}
		sub, err := d.sub(name)
		if err != nil {
			return 0, unknown
		}
		d.close()
		d = sub
	}
	return gate.FileScript, nil
}

// lookup returns what the entry of exactly this name is; ModeIrregular where
// there is none.
func (d dir) lookup(name string, most int) (fs.FileMode, error) {
	mode := fs.ModeIrregular
	if bundle.Ignored(name) {
		return mode, nil
	}
	err := d.entries(func(e fs.DirEntry) error {
		if most--; most < 0 {
			return errTooMany
		}
		if e.Name() == name {
			mode = d.kindOf(e)
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return mode, err
}

var errFound = errors.New("found")

// Read reads every file of the skill, now. See [Library.Skill] for its errors.
func (l *Library) Read(ctx context.Context, _, skill string, limits bundle.Limits) (bundle.Bundle, error) {
	if ctx.Err() != nil {
		return bundle.Bundle{}, context.Cause(ctx)
	}
	s, err := l.Skill(skill, limits)
	return s.Bundle, err
}
