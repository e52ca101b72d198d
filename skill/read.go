package skill

import (
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
	return readDir(d, folder, limits)
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

func readDir(d dir, folder string, limits bundle.Limits) (Skill, error) {
	w := newWalker(folder, limits, true)
	if err := w.walk(d, "", 1); err != nil {
		return Skill{}, err
	}
	return build(folder, w.files, w.diags, limits)
}

// FromFiles makes a Skill of files that are in memory, such as those of an
// archive, with what [Read] says of a folder with the same files: the same
// digest, the same errors. A path with an element that [bundle.Ignored] knows is
// left out, as a folder leaves it out. The Folder is empty, so nothing is said
// of its name. The files are copied.
func FromFiles(files []bundle.File, limits bundle.Limits) (Skill, error) {
	return build("", unignored(files), nil, limits)
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

// build makes a Skill of all files of its folder, which is empty where none is
// known, and of what was said while they were gathered.
func build(folder string, files []bundle.File, said []Diagnostic, limits bundle.Limits) (Skill, error) {
	s := Skill{Folder: folder, Diagnostics: said}
	md, ok := contentOf(files, markdown)
	if !ok {
		return Skill{}, &BrokenError{folder, []Diagnostic{noMarkdown(files, said)}}
	}
	name := ""
	if folder != "" {
		name = nameOf(folder)
	}
	meta, body, diags := readMarkdown(md, name)
	s.Meta, s.Instructions = meta, body
	s.Diagnostics = append(s.Diagnostics, diags...)
	if errs := errorsOf(diags); len(errs) > 0 {
		return Skill{}, &BrokenError{folder, errs}
	}
	decl, _ := contentOf(files, DeclarationName)
	var err error
	if s.Bundle, err = bundle.New(files, decl, limits); err != nil {
		return Skill{}, about(folder, err)
	}
	s.Scripts, diags = scripts(s.Bundle)
	s.Diagnostics = append(s.Diagnostics, diags...)
	for _, f := range files {
		if strings.HasSuffix(f.Path, "/"+markdown) {
			s.Diagnostics = append(s.Diagnostics, Diagnostic{Note, "skill-inside", f.Path, 0, "it belongs to this skill and is none of its own", ""})
		}
	}
	sortDiagnostics(s.Diagnostics)
	return s, nil
}

// about says which folder an error is about, where one is known.
func about(folder string, err error) error {
	if folder == "" {
		return err
	}
	return fmt.Errorf("skill %s: %w", visible(folder), err)
}

func noMarkdown(files []bundle.File, diags []Diagnostic) Diagnostic {
	for _, d := range diags {
		if d.Path == markdown {
			return Diagnostic{Error, d.Code, markdown, 0, d.Text, d.Remedy}
		}
	}
	for _, f := range files {
		if strings.EqualFold(f.Path, markdown) {
			return Diagnostic{Error, "markdown-missing", f.Path, 0, "the file must be called " + markdown, "rename it"}
		}
	}
	return Diagnostic{Error, "markdown-missing", markdown, 0, "there is no " + markdown, "write one, or name the folder that has it"}
}

func contentOf(files []bundle.File, path string) ([]byte, bool) {
	i, ok := slices.BinarySearchFunc(sortedFiles(files), path, func(f bundle.File, p string) int { return strings.Compare(f.Path, p) })
	if !ok {
		return nil, false
	}
	return files[i].Data, true
}

// sortedFiles sorts files in place: the order of a walk is that of names, which
// is not that of paths ("a-b" comes before "a/b").
func sortedFiles(files []bundle.File) []bundle.File {
	slices.SortFunc(files, func(a, b bundle.File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

func sortDiagnostics(all []Diagnostic) {
	slices.SortStableFunc(all, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
}

// runnable are the extensions of files that are listed as scripts. Which of them
// may run is the allow-list's business.
var runnable = []string{"bash", "bat", "cjs", "cmd", "js", "lua", "mjs", "php", "pl", "ps1", "py", "r", "R", "rb", "sh", "tcl", "ts", "zsh"}

// scripts lists what an interpreter may run, with how it takes its arguments.
func scripts(b bundle.Bundle) ([]Script, []Diagnostic) {
	decl, diags := readDeclaration(b.Declaration())
	var all []Script
	for _, p := range b.Paths() {
		text, _, _ := b.Text(p)
		ext := gate.Extension(p, text)
		d, declared := decl.scripts[p]
		if !declared {
			d = undeclared()
			if !slices.Contains(runnable, ext) || strings.HasSuffix(p, "/__init__.py") {
				continue
			}
		}
		all = append(all, Script{p, ext, declared, d})
	}
	for p, line := range decl.lines {
		if _, _, ok := b.Text(p); !ok {
			diags = append(diags, Diagnostic{Error, "script-missing", DeclarationName, line, fmt.Sprintf("the skill has no file %s", short(p)), "write the script's path from the skill's folder"})
		}
	}
	return all, diags
}

// errPart takes off what the system's error says of the path, which we say better.
func errPart(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
