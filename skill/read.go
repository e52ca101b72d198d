package skill

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

// Read reads the skill in folder, every byte once. Limits with zero fields are
// the defaults.
//
// # Errors
//
// A *BrokenError when SKILL.md is missing or cannot be used. One that wraps
// bundle.ErrLimit when the folder is over a limit; reading has stopped there.
// One that wraps bundle.ErrContent when a part of it cannot be read, or two names
// differ by case alone. Each names the file. When tracon.yaml cannot be used
// there is no error: the Skill is returned, its Diagnostics say so, and no
// script of it can run.
func Read(folder string, limits bundle.Limits) (Skill, error) {
	d, err := openDir(folder)
	if err != nil {
		return Skill{}, unopened(folder, err)
	}
	defer d.close()
	return inMemory(readDirInto(d, folder, folder, limits, bundle.NewBuilder(limits)))
}

func unopened(folder string, err error) error {
	return fmt.Errorf("skill %s: it cannot be opened: %w", visible(folder), errPart(err))
}

// nameOf is what the folder is called; nothing for one that is named as "." or "/".
func nameOf(folder string) string {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return ""
	}
	if base := filepath.Base(abs); base != string(filepath.Separator) {
		return base
	}
	return ""
}

// A Keeper is given the files of a skill one by one, each once. A [bundle.Builder]
// keeps them in memory.
type Keeper interface {
	// Add takes the file at path. The bytes are the reader's again when it returns.
	// An error ends the reading.
	Add(path string, data []byte) error

	// Content returns the files that were added, with the declaration. It is the
	// last call.
	Content(declaration []byte) (bundle.Content, error)
}

// ReadInto is [Read] for a skill that need not be in memory: each file goes to keep
// when it was read, and is forgotten. The content is what keep makes of them. No
// more than the largest file, SKILL.md and tracon.yaml are in memory.
//
// # Errors
//
// Those of [Read], and those of keep.
func ReadInto(folder string, limits bundle.Limits, keep Keeper) (Outline, bundle.Content, error) {
	d, err := openDir(folder)
	if err != nil {
		return Outline{}, nil, unopened(folder, err)
	}
	defer d.close()
	return readDirInto(d, folder, folder, limits, keep)
}

func readDirInto(d dir, folder, called string, limits bundle.Limits, keep Keeper) (Outline, bundle.Content, error) {
	r := &reading{folder: folder, called: called, keep: keep}
	said, err := r.dir(d, limits)
	if err != nil {
		return Outline{}, nil, err
	}
	return r.outline(said)
}

// inMemory makes a Skill of what was read into a bundle.Builder.
func inMemory(o Outline, c bundle.Content, err error) (Skill, error) {
	if err != nil {
		return Skill{}, err
	}
	return Skill{o, c.(bundle.Bundle)}, nil
}

// FromFiles makes a Skill of files that are in memory, such as those of an
// archive, with what [Read] says of a folder with the same files: the same
// digest, the same errors. A path with an element that [bundle.Ignored] knows is
// left out, as a folder leaves it out. The Folder is empty, so nothing is said
// of its name. The files are copied.
func FromFiles(files []bundle.File, limits bundle.Limits) (Skill, error) {
	return inMemory(readingOf(files, limits, false).outline(nil))
}

// readingOf is the reading of files that are in memory.
func readingOf(files []bundle.File, limits bundle.Limits, lint bool) *reading {
	r := &reading{keep: &unchecked{limits: limits}, lint: lint}
	for _, f := range unignored(files) {
		_ = r.add(f.Path, f.Data) // unchecked takes all
	}
	return r
}

// An unchecked keeps files that stay as they are until Content, which checks them:
// of a skill that has two faults, what is wrong with SKILL.md is told first.
type unchecked struct {
	limits bundle.Limits
	files  []bundle.File
}

func (u *unchecked) Add(path string, data []byte) error {
	u.files = append(u.files, bundle.File{Path: path, Data: data})
	return nil
}

func (u *unchecked) Content(declaration []byte) (bundle.Content, error) {
	return bundle.New(u.files, declaration, u.limits)
}

func unignored(files []bundle.File) []bundle.File {
	return slices.DeleteFunc(slices.Clone(files), func(f bundle.File) bool { return ignored(f.Path) })
}

func ignored(p string) bool {
	for elem := range strings.SplitSeq(p, "/") {
		if bundle.Ignored(elem) {
			return true
		}
	}
	return false
}

// A reading hands on the files of a skill, and remembers what is needed to tell of
// it when all were seen.
type reading struct {
	folder string // empty where none is known
	called string // what errors call the skill: the folder, or the name where a tenant may read them
	keep   Keeper
	lint   bool // each file is looked at for the lint, too

	heads       []head
	looked      []looked
	markdown    []byte
	hasMarkdown bool
	declaration []byte
}

// A head is what there is to know of a file to list it.
type head struct {
	path      string
	extension string // see [gate.Extension]
}

func headOf(path string, data []byte) head {
	first := ""
	if bytes.HasPrefix(data, []byte("#!")) {
		first = string(data[:min(len(data), 512)]) // more than is looked at
	}
	return head{path, gate.Extension(path, first)}
}

// dir reads all that is in d, and returns what is to be said of what was left out.
func (r *reading) dir(d dir, limits bundle.Limits) ([]Diagnostic, error) {
	w := newWalker(r.called, limits)
	w.add = r.add
	err := w.walk(d, "", 1)
	return w.diags, err
}

// add takes one file. The bytes stay the caller's.
func (r *reading) add(path string, data []byte) error {
	switch path {
	case markdown:
		r.markdown, r.hasMarkdown = bytes.Clone(data), true
	case DeclarationName:
		r.declaration = bytes.Clone(data)
	}
	r.heads = append(r.heads, headOf(path, data))
	if r.lint {
		r.looked = append(r.looked, lookAt(path, string(data)))
	}
	if err := r.keep.Add(path, data); err != nil {
		return about(r.called, err)
	}
	return nil
}

// outline tells of the skill whose files were all added, and of what was said while
// they were gathered.
func (r *reading) outline(said []Diagnostic) (Outline, bundle.Content, error) {
	// The order of a walk is that of names, which is not that of paths ("a-b" comes
	// before "a/b").
	slices.SortFunc(r.heads, func(a, b head) int { return strings.Compare(a.path, b.path) })
	o := Outline{Folder: r.folder, Diagnostics: said}
	if !r.hasMarkdown {
		return Outline{}, nil, &BrokenError{r.called, []Diagnostic{noMarkdown(r.heads, said)}}
	}
	name := ""
	if r.folder != "" {
		name = nameOf(r.folder)
	}
	meta, body, diags := readMarkdown(r.markdown, name)
	o.Meta, o.Instructions = meta, body
	o.Diagnostics = append(o.Diagnostics, diags...)
	if errs := errorsOf(diags); len(errs) > 0 {
		return Outline{}, nil, &BrokenError{r.called, errs}
	}
	c, err := r.keep.Content(r.declaration)
	if err != nil {
		return Outline{}, nil, about(r.called, err)
	}
	o.Scripts, diags = scripts(r.declaration, r.heads)
	o.Diagnostics = append(o.Diagnostics, diags...)
	for _, h := range r.heads {
		if strings.HasSuffix(h.path, "/"+markdown) {
			o.Diagnostics = append(o.Diagnostics, Diagnostic{Note, "skill-inside", h.path, 0, "it belongs to this skill and is none of its own", ""})
		}
	}
	sortDiagnostics(o.Diagnostics)
	return o, c, nil
}

// about says which skill an error is about, where that is known.
func about(folder string, err error) error {
	if folder == "" {
		return err
	}
	return fmt.Errorf("skill %s: %w", visible(folder), err)
}

func noMarkdown(heads []head, diags []Diagnostic) Diagnostic {
	for _, d := range diags {
		if d.Path == markdown {
			return Diagnostic{Error, d.Code, markdown, 0, d.Text, d.Remedy}
		}
	}
	for _, h := range heads {
		if strings.EqualFold(h.path, markdown) {
			return Diagnostic{Error, "markdown-missing", h.path, 0, "the file must be called " + markdown, "rename it"}
		}
	}
	return Diagnostic{Error, "markdown-missing", markdown, 0, "there is no " + markdown, "write one, or name the folder that has it"}
}

func sortDiagnostics(all []Diagnostic) {
	slices.SortStableFunc(all, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
}

// runnable are the extensions of files that are listed as scripts. Which of them
// may run is the allow-list's business.
var runnable = []string{"bash", "bat", "cjs", "cmd", "js", "lua", "mjs", "php", "pl", "ps1", "py", "r", "R", "rb", "sh", "tcl", "ts", "zsh"}

// scripts lists what an interpreter may run, with how it takes its arguments. The
// heads are in the order of their paths.
func scripts(declaration []byte, heads []head) ([]Script, []Diagnostic) {
	decl, diags := readDeclaration(declaration)
	var all []Script
	for _, h := range heads {
		d, declared := decl.scripts[h.path]
		if !declared {
			d = undeclared()
			if !slices.Contains(runnable, h.extension) || strings.HasSuffix(h.path, "/__init__.py") {
				continue
			}
		}
		all = append(all, Script{h.path, h.extension, declared, d})
	}
	for p, line := range decl.lines {
		if _, ok := slices.BinarySearchFunc(heads, p, func(h head, p string) int { return strings.Compare(h.path, p) }); !ok {
			diags = append(diags, Diagnostic{Error, "script-missing", DeclarationName, line, fmt.Sprintf("the skill has no file %s", short(p)), "write the script's path from the skill's folder"})
		}
	}
	return all, diags
}

// headsOf returns the heads of the files of b.
func headsOf(b bundle.Bundle) []head {
	var heads []head
	for _, p := range b.Paths() {
		text, _, _ := b.Text(p)
		heads = append(heads, head{p, gate.Extension(p, text)})
	}
	return heads
}

// errPart takes off what the system's error says of the path, which we say better.
func errPart(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
