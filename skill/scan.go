package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

// Bounds of a scan for skills below one root.
const (
	maxScanDepth   = 16
	maxScanEntries = 200_000
	maxProblems    = 1000
)

// A scanner looks for skills below a root.
type scanner struct {
	source   source
	limits   bundle.Limits
	left     int
	found    []*entry
	problems []Diagnostic
}

// scan finds the skills of a source. Of a single folder it returns exactly one,
// or an error.
func (l *Library) scan(s source) ([]*entry, []Diagnostic, error) {
	d, err := openDir(s.folder)
	if err != nil {
		return nil, nil, fmt.Errorf("skills in %s: it cannot be opened: %w", visible(s.folder), errPart(err))
	}
	defer d.close()
	sc := &scanner{source: s, limits: l.limits, left: maxScanEntries}
	if !s.root {
		e, err := sc.skill(d, s.folder, nil)
		if err != nil {
			return nil, nil, err
		}
		return []*entry{e}, nil, nil
	}
	if err := sc.folder(d, s.folder, nil); err != nil {
		return nil, nil, err
	}
	return sc.found, sc.problems, nil
}

func (s *scanner) problem(sev Severity, code, at, remedy, format string, args ...any) {
	switch {
	case len(s.problems) < maxProblems:
		s.problems = append(s.problems, Diagnostic{sev, code, at, 0, fmt.Sprintf(format, args...), remedy})
	case len(s.problems) == maxProblems:
		s.problems = append(s.problems, Diagnostic{Warning, "problems-more", s.source.folder, 0, "more problems, which are not listed", "mend these first"})
	}
}

// folder looks at d. A folder with a SKILL.md is a skill with all that is below;
// in another one the search goes on. Only the root's own fault is an error: one
// bad folder never hides another.
func (s *scanner) folder(d dir, at string, below []string) error {
	list, err := d.sorted(&s.left)
	if err != nil {
		switch {
		case errors.Is(err, errTooMany):
			s.problem(Error, "scan-stopped", at, "scan a smaller folder", "the scan has stopped here: more than %d entries", maxScanEntries)
		case len(below) == 0:
			return fmt.Errorf("skills in %s: it cannot be read: %w", visible(at), errPart(err))
		default:
			s.problem(Warning, "folder-unreadable", at, "make it readable, or remove it", "it cannot be read (%v) and is skipped", errPart(err))
		}
		return nil
	}
	if i := slices.IndexFunc(list, func(e fs.DirEntry) bool { return e.Name() == markdown }); i >= 0 {
		switch t := d.kindOf(list[i]); {
		case t.IsRegular():
			s.add(d, at, below)
			return nil
		case t&fs.ModeSymlink == 0:
			s.problem(Warning, "markdown-missing", filepath.Join(at, markdown), "make it a file", "it is no file; the folder is no skill")
		}
	}
	for _, e := range list {
		s.entry(d, e, at, below)
	}
	return nil
}

func (s *scanner) entry(d dir, e fs.DirEntry, at string, below []string) {
	if bundle.Ignored(e.Name()) || s.left < 0 {
		return
	}
	p := filepath.Join(at, e.Name())
	switch t := d.kindOf(e); {
	case t&fs.ModeSymlink != 0:
		s.problem(Warning, "link", p, "put the folder or file itself in its place", "it is a link, which is not followed; what it leads to is not loaded")
	case t.IsRegular() && strings.EqualFold(e.Name(), markdown) && e.Name() != markdown:
		s.problem(Warning, "markdown-missing", p, "rename it", "the file must be called %s; the folder is no skill", markdown)
	case t.IsDir() && len(below) >= maxScanDepth:
		s.problem(Warning, "folder-deep", p, "move skills up", "deeper than %d folders; it is skipped", maxScanDepth)
	case t.IsDir():
		sub, err := d.sub(e.Name())
		if err != nil {
			s.problem(Warning, "folder-unreadable", p, "make it readable, or remove it", "it cannot be opened (%v) and is skipped", errPart(err))
			return
		}
		defer sub.close()
		_ = s.folder(sub, p, append(slices.Clone(below), e.Name())) // its faults are problems
	}
}

func (s *scanner) add(d dir, at string, below []string) {
	e, err := s.skill(d, at, below)
	if broken, ok := errors.AsType[*BrokenError](err); ok {
		for _, diag := range broken.Diagnostics {
			diag.Path = filepath.Join(at, filepath.FromSlash(diag.Path))
			if len(s.problems) < maxProblems {
				s.problems = append(s.problems, diag)
			}
		}
		return
	}
	if err != nil {
		s.problem(Error, "skill-unreadable", at, "", "%v", err)
		return
	}
	s.found = append(s.found, e)
}

// skill reads the names of a skill's files and its SKILL.md.
func (s *scanner) skill(d dir, at string, below []string) (*entry, error) {
	md, err := d.read(markdown, MaxMarkdown+1, nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &BrokenError{at, []Diagnostic{noMarkdown(nil, nil)}}
	case errors.Is(err, errLink):
		return nil, &BrokenError{at, []Diagnostic{{Error, "link", markdown, 0, "it is a link, which is not followed", "put the file itself in its place"}}}
	case errors.Is(err, errTooLarge):
		return nil, &BrokenError{at, []Diagnostic{{Error, "markdown-large", markdown, 0, fmt.Sprintf("more than %d bytes", MaxMarkdown), "move parts of it into files of their own"}}}
	case err != nil:
		return nil, &BrokenError{at, []Diagnostic{{Error, "markdown-unreadable", markdown, 0, fmt.Sprintf("it cannot be read: %v", errPart(err)), "make it readable"}}}
	}
	meta, _, diags := readMarkdown(md, nameOf(at))
	if errs := errorsOf(diags); len(errs) > 0 {
		return nil, &BrokenError{at, errs}
	}
	e := &entry{Summary: Summary{Meta: meta, Folder: at, Diagnostics: diags}, source: s.source.folder, below: below}
	w := newWalker(at, s.limits)
	if err := w.walk(d, "", 1); err != nil {
		// It is listed all the same: it is known, and the gate "content" says why it
		// cannot run.
		e.Diagnostics = append(e.Diagnostics, Diagnostic{Error, "skill-unreadable", ".", 0, err.Error(), ""})
	}
	e.Diagnostics = append(e.Diagnostics, w.diags...)
	slices.Sort(w.paths)
	for _, p := range w.paths {
		if slices.Contains(runnable, gate.Extension(p, "")) && !strings.HasSuffix(p, "/__init__.py") {
			e.Scripts = append(e.Scripts, p)
		}
	}
	sortDiagnostics(e.Diagnostics)
	return e, nil
}
