package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

const (
	maxBodyLines  = 500      // see the standard
	maxBodyBytes  = 4 * 5000 // 5,000 tokens, at about four bytes each
	maxLinksTold  = 50
	maxShellBytes = 1 << 20 // of a shell script that is looked through for CR LF
)

// strict is how bad the lint takes what reading takes lightly: the standard says
// must, and other readers refuse it.
var strict = map[string]Severity{
	"compatibility-long": Error,
	"description-long":   Error,
	"field-kind":         Warning,
	"field-unknown":      Warning,
	"frontmatter-late":   Error,
	"frontmatter-quotes": Error,
	"metadata-kind":      Warning,
	"name-folder":        Error,
	"name-form":          Error,
	"name-long":          Error,
	"name-missing":       Error,
}

// Lint says what is amiss with s by the letter of the standard, what its author
// will stumble over, and which signs of risk a reviewer should look at (see
// [Diagnostic.Risk]). It holds what reading said, more strictly: a skill that
// loads may have errors here. The errors come first. Nothing is run, and the time
// that it takes grows with the size of the skill.
func Lint(s Skill) []Diagnostic {
	md, _, _ := s.Bundle.Text(markdown)
	return judge(s.Outline, md, s.Bundle.Declaration(), lookAtAll(s.Bundle))
}

// judge says what is amiss with the skill of o, whose files were all looked at. They
// are in the order of their paths.
func judge(o Outline, md string, declaration []byte, all []looked) []Diagnostic {
	l := &linter{Outline: o, diags: slices.Clone(o.Diagnostics), files: map[string]looked{}, paths: map[string]bool{}, folded: map[string]string{}}
	for i, d := range l.diags {
		if worse, ok := strict[d.Code]; ok && rank(worse) < rank(d.Severity) {
			l.diags[i].Severity = worse
		}
	}
	for _, f := range all {
		l.files[f.path] = f
		for p := f.path; p != "." && !l.paths[p]; p = path.Dir(p) {
			l.paths[p], l.folded[strings.ToLower(p)] = true, p
		}
	}
	l.markdown(md)
	l.scripts(declaration)
	l.others(all)
	l.diags = append(l.diags, signs(all)...)
	sortDiagnostics(l.diags)
	return l.diags
}

// A looked is what the lint has to know of a file, so that it can forget its bytes.
type looked struct {
	path      string
	shebang   bool   // it begins with #!
	crlf      int    // the first line that ends in CR LF, of a shell script; zero: none
	options   string // of a shell script: what its first line gives the shell
	relative  int    // see relativeImport, of a Python module
	signs     []Diagnostic
	moreSigns int
}

func lookAt(p, text string) looked {
	f := looked{path: p, shebang: strings.HasPrefix(text, "#!")}
	ext := gate.Extension(p, text)
	if slices.Contains([]string{"sh", "bash", "zsh"}, ext) {
		if i := strings.Index(text[:min(len(text), maxShellBytes)], "\r\n"); i >= 0 {
			f.crlf = 1 + strings.Count(text[:i], "\n")
		}
		f.options = shellOptions(text)
	}
	if ext == "py" && gate.ModuleOf(p) != "" {
		f.relative = relativeImport(text)
	}
	f.signs, f.moreSigns = signsIn(p, ext, text)
	return f
}

// shellOptions returns the options behind the shell in a script's first line, such as -e,
// by which it ends at the first command that fails.
func shellOptions(text string) string {
	line, ok := strings.CutPrefix(text[:min(len(text), 256)], "#!")
	if !ok {
		return ""
	}
	line, _, _ = strings.Cut(line, "\n")
	var options []string
	shell := false
	for _, word := range strings.Fields(line) {
		switch {
		case !shell: // env, and what is its own
			shell = path.Base(word) != "env" && !strings.HasPrefix(word, "-") && !strings.Contains(word, "=")
		case len(word) > 1 && word[0] == '-' && word != "--":
			options = append(options, word)
		}
	}
	return strings.Join(options, " ")
}

// lookAtAll looks at the files of b, in the order of their paths.
func lookAtAll(b bundle.Bundle) []looked {
	var all []looked
	for _, p := range b.Paths() {
		text, _, _ := b.Text(p)
		all = append(all, lookAt(p, text))
	}
	return all
}

// LintFolder reads the folder and lints it, one file at a time. When SKILL.md cannot be used, what is
// wrong with it is the answer and no error, together with what can be said without
// it. Its errors are those of [Read] for a folder that cannot be read or is over a
// limit.
func LintFolder(folder string, limits bundle.Limits) ([]Diagnostic, error) {
	d, err := openDir(folder)
	if err != nil {
		return nil, unopened(folder, err)
	}
	defer d.close()
	r := &reading{folder: folder, called: folder, keep: forgetful{bundle.NewLister(limits)}, lint: true}
	said, err := r.dir(d, limits)
	if err != nil {
		return nil, err
	}
	return r.diagnostics(said)
}

// A forgetful checks the files and keeps none.
type forgetful struct{ list *bundle.Lister }

func (f forgetful) Add(path string, data []byte) error {
	_, err := f.list.Add(path, data)
	return err
}

func (f forgetful) Content(declaration []byte) (bundle.Content, error) {
	_, err := f.list.Listing(declaration)
	return nil, err
}

// LintFiles is [LintFolder] for files in memory; see [FromFiles].
func LintFiles(files []bundle.File, limits bundle.Limits) ([]Diagnostic, error) {
	return readingOf(files, limits, true).diagnostics(nil)
}

// diagnostics lints what was read with lint.
func (r *reading) diagnostics(said []Diagnostic) ([]Diagnostic, error) {
	o, _, err := r.outline(said)
	slices.SortFunc(r.looked, func(a, b looked) int { return strings.Compare(a.path, b.path) })
	broken, ok := errors.AsType[*BrokenError](err)
	if !ok {
		if err != nil {
			return nil, err
		}
		return judge(o, string(r.markdown), r.declaration, r.looked), nil
	}
	if _, err = r.keep.Content(r.declaration); err != nil {
		return nil, about(r.called, err)
	}
	_, more := scripts(r.declaration, r.heads)
	diags := slices.Concat(broken.Diagnostics, more, signs(r.looked))
	for _, d := range said {
		if d.Path != markdown { // of that, the error speaks
			diags = append(diags, d)
		}
	}
	sortDiagnostics(diags)
	return diags, nil
}

type linter struct {
	Outline
	diags  []Diagnostic
	files  map[string]looked
	paths  map[string]bool   // files and folders
	folded map[string]string // by their path in lower case
	told   map[string]bool   // links that were told of
}

func (l *linter) say(s Severity, code, at string, line int, remedy, format string, args ...any) {
	l.diags = append(l.diags, Diagnostic{s, code, at, line, fmt.Sprintf(format, args...), remedy})
}

// markdown looks at SKILL.md behind the frontmatter.
func (l *linter) markdown(text string) {
	if strings.HasPrefix(text, "\uFEFF") {
		l.say(Warning, "markdown-bom", markdown, 1, "save it without", "it begins with a byte order mark, which some readers do not skip")
	}
	body := l.Instructions
	if strings.TrimSpace(body) == "" {
		l.say(Warning, "body-empty", markdown, 0, "say how to use the skill", "there are no instructions behind the frontmatter")
		return
	}
	first := 1 + strings.Count(text[:max(len(text)-len(body), 0)], "\n")
	lines := strings.Count(strings.TrimSpace(body), "\n") + 1
	if lines > maxBodyLines || len(body) > maxBodyBytes {
		l.say(Warning, "body-long", markdown, first, "move details into files that it links to",
			"the instructions have %d lines and %d bytes; the standard recommends at most %d lines and about %d bytes", lines, len(body), maxBodyLines, maxBodyBytes)
	}
	l.told = map[string]bool{}
	fence := ""
	line := first
	for text := range strings.Lines(body) {
		trimmed := strings.TrimSpace(text)
		switch {
		case fence != "" && strings.HasPrefix(trimmed, fence):
			fence = ""
		case fence == "" && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
			fence = trimmed[:3]
		case fence == "":
			for _, target := range links(text) {
				l.link(target, line)
			}
		}
		for _, script := range namedScripts(text) {
			l.named(script, line)
		}
		line++
	}
}

// link checks one target of a link in SKILL.md.
func (l *linter) link(target string, line int) {
	target, ok := relative(target)
	if !ok || l.told[target] || len(l.told) > maxLinksTold {
		return
	}
	clean := path.Clean(target)
	switch {
	case clean == "." || l.paths[clean]:
		return
	case strings.HasPrefix(target, "/") || clean == ".." || strings.HasPrefix(clean, "../"):
		l.say(Warning, "link-outside", markdown, line, "put the file into the skill's folder, and link to it from there", "the link %s leads out of the skill", short(target))
	default:
		l.say(Warning, "link-missing", markdown, line, l.instead(clean), "the link %s leads to no file of the skill", short(target))
	}
	l.told[target] = true
}

// named checks a path in SKILL.md that reads like that of a script.
func (l *linter) named(script string, line int) {
	top, _, _ := strings.Cut(script, "/")
	if top != "scripts" && !l.paths[top] || l.paths[script] || l.told[script] || len(l.told) > maxLinksTold {
		return
	}
	l.told[script] = true
	l.say(Warning, "script-named", markdown, line, l.instead(script), "it names the script %s, which is not there", short(script))
}

func (l *linter) instead(p string) string {
	if have, ok := l.folded[strings.ToLower(p)]; ok {
		return "write " + short(have) + ": case counts"
	}
	return "add the file, or mend the path"
}

// scripts looks at how scripts are declared and whether something can run them.
func (l *linter) scripts(declaration []byte) {
	if _, declared := l.files[DeclarationName]; len(l.Scripts) > 0 && !declared {
		l.say(Note, "declaration-none", DeclarationName, 0, "write one to say how each script takes its arguments",
			"there is none, so every script takes a list of strings")
	}
	decl, _ := readDeclaration(declaration)
	for _, sc := range l.Scripts {
		f := l.files[sc.Path]
		if f.crlf > 0 {
			l.say(Warning, "shell-crlf", sc.Path, f.crlf, "save it with LF alone; Tracon never changes a script", "its lines end in CR LF, which a shell takes for part of the commands")
		}
		if f.options != "" {
			l.say(Warning, "shell-options", sc.Path, 1, "write it into the script, such as set -e", "its first line gives the shell %s, and the first line is never run", short(f.options))
		}
		if f.relative > 0 && sc.Declaration.Module == "" {
			l.say(Note, "script-module", sc.Path, f.relative, "declare module: "+gate.ModuleOf(sc.Path)+" in "+DeclarationName, "it imports from its own package, which Python finds only when it is started as a module")
		}
		if !sc.Declared {
			continue
		}
		line := decl.lines[sc.Path]
		if !slices.Contains(runnable, sc.Extension) {
			l.say(Warning, "interpreter-unknown", sc.Path, 0, "give it an extension such as .py or .sh, or a first line such as #!/usr/bin/env python3", "it is declared, and no interpreter for it is known")
		}
		if sc.Declaration.Description == "" {
			l.say(Note, "script-undescribed", DeclarationName, line, "add a description", "a model is told nothing of %s", short(sc.Path))
		}
		for _, name := range unusedFlags(sc) {
			l.say(Warning, "flag-unused", DeclarationName, line, "add the property to the schema, or take the flag out", "the schema of %s has no property %s, for which there is a flag", short(sc.Path), short(name))
		}
	}
}

// relativeImport returns the line in which a script that is made to be started
// imports from its own package; zero where it does not.
func relativeImport(text string) int {
	if !strings.Contains(text, "__main__") {
		return 0
	}
	line := 0
	for text := range strings.Lines(text) {
		line++
		if strings.HasPrefix(text, "from .") {
			return line
		}
	}
	return 0
}

// unusedFlags returns the flags whose property a plain schema can never let
// through. Of a schema that is put together of others nothing is said.
func unusedFlags(sc Script) []string {
	var s map[string]json.RawMessage
	if len(sc.Declaration.Flags) == 0 || json.Unmarshal(sc.Declaration.Schema, &s) != nil {
		return nil
	}
	for _, more := range []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"} {
		if _, ok := s[more]; ok {
			return nil
		}
	}
	var properties map[string]json.RawMessage
	_ = json.Unmarshal(s["properties"], &properties) // none: every flag is unused
	var unused []string
	for name := range sc.Declaration.Flags {
		if _, ok := properties[name]; !ok {
			unused = append(unused, name)
		}
	}
	slices.Sort(unused)
	return unused
}

// packageFiles name packages that somebody would have to install.
var packageFiles = []string{"requirements.txt", "pyproject.toml", "Pipfile", "setup.py", "environment.yml", "package.json", "Gemfile"}

// others looks at what is neither SKILL.md nor a script that is listed.
func (l *linter) others(all []looked) {
	listed := map[string]bool{}
	for _, sc := range l.Scripts {
		listed[sc.Path] = true
	}
	for _, f := range all {
		switch p := f.path; {
		case slices.Contains(packageFiles, path.Base(p)):
			l.say(Note, "packages", p, 0, "see that the runtime has them", "it names packages, which are never installed when a script runs")
		case !listed[p] && strings.HasPrefix(p, "scripts/") && f.shebang:
			l.say(Warning, "interpreter-unknown", p, 1, "give it an extension such as .py or .sh, or a first line such as #!/usr/bin/env python3", "its first line names no interpreter that is known")
		}
	}
}

// rank orders severities, the worst first.
func rank(s Severity) int { return slices.Index([]Severity{Error, Warning, Note}, s) }
