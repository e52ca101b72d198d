package skill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
)

// lint lints the files as the skill in a folder "good".
func lint(t testing.TB, files map[string]string) []Diagnostic {
	t.Helper()
	if _, ok := files[markdown]; !ok {
		files[markdown] = goodMarkdown
	}
	diags, err := LintFolder(write(t, "good", files), bundle.Limits{})
	must(t, err)
	return diags
}

// The lint says each rule of the standard and each thing that an author stumbles
// over, with place and remedy; nothing else is said of the same skill.
func TestLint(t *testing.T) {
	md := func(frontmatter, body string) map[string]string {
		return map[string]string{markdown: "---\n" + frontmatter + "\n---\n" + body}
	}
	body := func(s string) map[string]string { return md("name: good\ndescription: d", s) }
	const declared = "scripts:\n  scripts/a.py: {description: d}\n"
	with := func(p, text string) map[string]string {
		return map[string]string{"scripts/a.py": "", DeclarationName: declared, p: text}
	}
	tests := []struct {
		name  string
		files map[string]string
		want  []string // "severity code path:line"
	}{
		{"nothing", body("Body\n"), nil},
		{"a declared script", with("x", ""), nil},
		{"name differs", md("name: bad\ndescription: d", "b"), []string{"error name-folder SKILL.md:2"}},
		{"name in upper case", md("name: Good\ndescription: d", "b"), []string{"error name-form SKILL.md:2", "error name-folder SKILL.md:2"}},
		{"double hyphen", md("name: go--od\ndescription: d", "b"), []string{"error name-form SKILL.md:2", "error name-folder SKILL.md:2"}},
		{"no name", md("description: d", "b"), []string{"error name-missing SKILL.md:1"}},
		{"long name", md("name: "+strings.Repeat("a", 65)+"\ndescription: d", "b"), []string{"error name-long SKILL.md:2", "error name-folder SKILL.md:2"}},
		{"long description", md("name: good\ndescription: "+strings.Repeat("ä", 1025), "b"), []string{"error description-long SKILL.md:3"}},
		{"description of 1024", md("name: good\ndescription: "+strings.Repeat("ä", 1024), "b"), nil},
		{"long compatibility", md("name: good\ndescription: d\ncompatibility: "+strings.Repeat("x", 501), "b"), []string{"error compatibility-long SKILL.md:4"}},
		{"unquoted colon", md("name: good\ndescription: a: b", "b"), []string{"error frontmatter-quotes SKILL.md:3"}},
		{"blank line first", map[string]string{markdown: "\n---\nname: good\ndescription: d\n---\nb"}, []string{"error frontmatter-late SKILL.md:1"}},
		{"byte order mark", map[string]string{markdown: "\uFEFF" + goodMarkdown}, []string{"warning markdown-bom SKILL.md:1"}},
		{"unknown field", md("name: good\ndescription: d\nmodel: x", "b"), []string{"warning field-unknown SKILL.md:4"}},
		{"tools as a list", md("name: good\ndescription: d\nallowed-tools: [Read]", "b"), []string{"warning field-kind SKILL.md:4"}},
		{"metadata of numbers", md("name: good\ndescription: d\nmetadata: {a: 1}", "b"), []string{"warning metadata-kind SKILL.md:4"}},
		{"direction in the description", md("name: good\ndescription: \"a\u202eb\"", "b"), []string{"warning description-hidden SKILL.md:3", "note risk-invisible SKILL.md:3"}},
		{"broken", md("name: good", "b"), []string{"error description-missing SKILL.md:1"}},

		{"no body", body(" \n"), []string{"warning body-empty SKILL.md:0"}},
		{"500 lines", body(strings.Repeat("a\n", 500)), nil},
		{"501 lines", body(strings.Repeat("a\n", 501)), []string{"warning body-long SKILL.md:5"}},
		{"20,001 bytes", body(strings.Repeat("a b ", 5000) + "c"), []string{"warning body-long SKILL.md:5"}},

		{"a missing link", body("See\n[x](references/x.md).\n"), []string{"warning link-missing SKILL.md:6"}},
		{"a missing picture", body("![x](x.png 'title')"), []string{"warning link-missing SKILL.md:5"}},
		{"a missing reference", body("[x][y]\n\n[y]: docs/y.md\n"), []string{"warning link-missing SKILL.md:7"}},
		{"a link of another case", with(markdown, "---\nname: good\ndescription: d\n---\n[x](Scripts/a.py)"), []string{"warning link-missing SKILL.md:5"}},
		{"a link outside", body("[x](../other/SKILL.md)"), []string{"warning link-outside SKILL.md:5"}},
		{"an absolute link", body("[x](/etc/passwd)"), []string{"warning link-outside SKILL.md:5"}},
		{"one link twice", body("[x](x.md) [y](x.md)\n[z](x.md#part)"), []string{"warning link-missing SKILL.md:5"}},
		{"good links", func() map[string]string {
			m := body("[a](https://example.com/x.md) [b](mailto:a@b) [c](#part) [d](docs/x%20y.md#part) [e](<docs/x y.md>) [f](docs/) [g](./docs/a(b).md) [h]({baseDir}/x.md)\n" +
				"`[i](gone.md)` [j]()\n```\n[k](gone.md)\n```\n~~~\n[l](gone.md)\n```\n~~~\n")
			m["docs/x y.md"], m["docs/a(b).md"] = "", ""
			return m
		}(), nil},
		{"a missing script", body("Run:\n```\npython scripts/gone.py --x\n```\n"), []string{"warning script-named SKILL.md:7"}},
		{"a missing script of the own folder", body("Run {baseDir}/scripts/gone.sh, or ./scripts/gone.sh."), []string{"warning script-named SKILL.md:5"}},
		{"a missing script in another folder", with(markdown, "---\nname: good\ndescription: d\n---\n`scripts/b.py` and scripts/a.py"), []string{"warning script-named SKILL.md:5"}},
		{"scripts of others", body("https://example.com/scripts/x.py, /opt/scripts/x.py, other/run.py, run.py, scripts/*.py, scripts/<name>.py, $HOME/scripts/x.py, ../scripts/x.py, scripts/x.md"), nil},

		{"no declaration", map[string]string{"scripts/a.py": ""}, []string{"note declaration-none tracon.yaml:0"}},
		{"no description", with(DeclarationName, "scripts:\n  scripts/a.py: {}\n"), []string{"note script-undescribed tracon.yaml:2"}},
		{"a missing file", with(DeclarationName, "scripts:\n  b.py: {description: d}\n"), []string{"error script-missing tracon.yaml:2"}},
		{"a bad schema", with(DeclarationName, "scripts:\n  scripts/a.py:\n    description: d\n    schema: {type: strnig}\n"), []string{"error declaration-schema tracon.yaml:4"}},
		{"an unused flag", with(DeclarationName, "scripts:\n  scripts/a.py:\n    description: d\n    arguments: flags\n    flags: {b: {}, c: {}}\n    schema: {additionalProperties: false, properties: {c: {}}}\n"), []string{"warning flag-unused tracon.yaml:2"}},
		{"CR LF in a shell script", with("scripts/b.sh", "#!/bin/sh\necho a\r\n"), []string{"warning shell-crlf scripts/b.sh:2"}},
		{"CR LF in a shell script without an extension", with("scripts/b", "#!/bin/sh\r\necho a\r\n"), []string{"warning shell-crlf scripts/b:1"}},
		{"case 32: options of the shell", with("scripts/b.sh", "#! /bin/bash -eu\necho a\n"), []string{"warning shell-options scripts/b.sh:1"}},
		{"options of the shell behind env", with("scripts/b", "#!/usr/bin/env -S A=1 bash -e -o pipefail\n"), []string{"warning shell-options scripts/b:1"}},
		{"options of env alone", with("scripts/b.sh", "#!/usr/bin/env -S bash --\n"), nil},
		{"a shell without options", with("scripts/b.sh", "#!/bin/sh -\necho -e\n"), nil},
		{"options of another interpreter", with("scripts/b.py", "#!/usr/bin/python3 -u\n"), nil},
		{"CR LF elsewhere", with("scripts/b.py", "a\r\n"), nil},
		{"a declared script that nothing runs", map[string]string{"a.txt": "", DeclarationName: "scripts:\n  a.txt: {description: d}\n"}, []string{"warning interpreter-unknown a.txt:0"}},
		{"a script that nothing runs", with("scripts/b", "#!/usr/bin/awk -f\n"), []string{"warning interpreter-unknown scripts/b:1"}},
		{"a script of a package", with("tool/cli.py", "import os\nfrom .lib import x\nif __name__ == '__main__': x()\n"), []string{"note script-module tool/cli.py:2"}},
		{"a module of a package", with("tool/lib.py", "from .other import x\n"), nil},
		{"a script that is started as a module", map[string]string{"tool/cli.py": "from .lib import x\nif __name__ == '__main__': x()\n", DeclarationName: "scripts:\n  tool/cli.py: {description: d, module: tool.cli}\n"}, nil},
		{"packages", with("requirements.txt", "requests\n"), []string{"note packages requirements.txt:0"}},
		{"another skill inside", with("sub/SKILL.md", ""), []string{"note skill-inside sub/SKILL.md:0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, d := range lint(t, tt.files) {
				got = append(got, fmt.Sprintf("%s %s %s:%d", d.Severity, d.Code, d.Path, d.Line))
				if d.Remedy == "" && d.Severity != Note {
					t.Errorf("no remedy: %v", d)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// When SKILL.md is broken, what can be said without it is said all the same, of a
// folder and of files in memory.
func TestLintOfBroken(t *testing.T) {
	files := map[string]string{markdown: "---\nname: good\n---\n", "a.py": "import socket\n", DeclarationName: "scripts:\n  b.py: {}\n", ".git/x": ""}
	folder := write(t, "good", files)
	must(t, os.Symlink("a.py", filepath.Join(folder, "l.py")))
	want := []string{"description-missing", "script-missing", "link", "risk-network"}
	codes := func(diags []Diagnostic) (all []string) {
		for _, d := range diags {
			all = append(all, d.Code)
		}
		return all
	}
	diags, err := LintFolder(folder, bundle.Limits{})
	if got := codes(diags); err != nil || !slices.Equal(got, want) {
		t.Errorf("folder: got %q, want %q, error %v", got, want, err)
	}
	var list []bundle.File
	for p, text := range files {
		list = append(list, bundle.File{Path: p, Data: []byte(text)})
	}
	diags, err = LintFiles(list, bundle.Limits{})
	if got := codes(diags); err != nil || !slices.Equal(got, slices.Delete(slices.Clone(want), 2, 3)) {
		t.Errorf("files: got %q, error %v", got, err)
	}
	diags, err = LintFiles(nil, bundle.Limits{})
	if got := codes(diags); err != nil || !slices.Equal(got, []string{"markdown-missing"}) {
		t.Errorf("nothing: got %q, error %v", got, err)
	}
	must(t, os.Remove(filepath.Join(folder, markdown)))
	must(t, os.Symlink("a.py", filepath.Join(folder, markdown)))
	diags, err = LintFolder(folder, bundle.Limits{})
	if got := codes(diags); err != nil || !slices.Equal(got, append([]string{"link"}, want[1:]...)) {
		t.Errorf("a link: got %q, error %v", got, err)
	}
	if _, err := LintFolder(filepath.Join(folder, "nowhere"), bundle.Limits{}); err == nil {
		t.Error("nowhere: no error")
	}
	if _, err := LintFolder(folder, bundle.Limits{Files: 1}); !errors.Is(err, bundle.ErrLimit) {
		t.Errorf("over a limit: error %v", err)
	}
}

// The cases say of three skills that they load and that the lint fails; what has
// no diagnostic at all when it is read has no error here.
func TestLintOfCases(t *testing.T) {
	fails := map[string]bool{"name-differs": true, "upper-name": true, "long-description": true, "unicode-name": true, "confusable-name": true, "colon": true}
	dirs, err := filepath.Glob("testdata/skill-md/*/" + markdown)
	if err != nil || len(dirs) < 26 {
		t.Fatalf("%d cases, error %v", len(dirs), err)
	}
	for _, p := range dirs {
		folder := filepath.Dir(p)
		_, rerr := Read(folder, bundle.Limits{})
		diags, err := LintFolder(folder, bundle.Limits{})
		must(t, err)
		if got, want := len(errorsOf(diags)) > 0, rerr != nil || fails[filepath.Base(folder)]; got != want {
			t.Errorf("%s: fails: %v, want %v: %v", folder, got, want, diags)
		}
		for _, d := range diags {
			if d.Code == "" {
				t.Errorf("%s: no code: %v", folder, d)
			}
		}
	}
}

// The examples are what we show: nothing but information is said of them.
func TestExamplesLintClean(t *testing.T) {
	dirs, err := filepath.Glob("../examples/skills/*")
	if err != nil || len(dirs) < 2 {
		t.Fatalf("%d examples, error %v", len(dirs), err)
	}
	for _, folder := range dirs {
		diags, err := LintFolder(folder, bundle.Limits{})
		must(t, err)
		for _, d := range diags {
			if d.Severity != Note {
				t.Errorf("%s: %v", folder, d)
			}
		}
	}
}

// What links and named scripts are found in a line of Markdown.
func TestLinksOfLine(t *testing.T) {
	for in, want := range map[string][]string{
		"":                                nil,
		"[a](b)":                          {"b"},
		"[a](b) ![c](d \"e\")":            {"b", "d"},
		"[a]( b )":                        {"b"},
		"[a](<b c>)":                      {"<b c>"},
		"[a](b(c)d)":                      {"b(c)d"},
		"[a](b(c)":                        {"b(c)"},
		"[a](":                            nil,
		"[a]()":                           nil,
		"`[a](b)` [c](d)":                 {"d"},
		"`[a](b)":                         {"b"},
		"[![a](b)](c)":                    {"b", "c"},
		"[a]: b":                          {"b"},
		"    [a]: b":                      nil,
		"[a](" + strings.Repeat("b", 600): nil,
	} {
		if got := links(in); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// slowSkills are skills for which linting takes about as long as their size
// suggests, whatever they hold: BenchmarkLintOfSlowSkills shows it. Short tests, which the
// race detector slows down, have an eighth of the size.
func slowSkills(t testing.TB) map[string]Skill {
	t.Helper()
	most := 512 << 10
	if testing.Short() {
		most /= 8
	}
	skills := map[string]Skill{}
	for name, unit := range map[string]string{
		"links": "[a](b", "brackets": "](", "definitions": "[", "backticks": "`[a](b)", "paths": "scripts/a.py ", "slashes": "/", "dots": "a.", "calls": "eval(",
		"shell": "$(curl ", "assignments": "a=", "secrets": "${TOKEN", "base64": "aB3+", "hex": "0f", "escapes": `\x41`, "invisible": "\u200b", "letters": "ж",
		"mixed": "aж", "ideographs": "字", "emoji": "👩\u200d💻", "lines": "\n", "short lines": "os.system(x)\n", "blob lines": strings.Repeat("aB3+", 19) + "\n",
		"not UTF-8": "\xff", "carriage returns": "\r\n", "control": "\x1b", "fences": "```\n", "variation": "\ufe0f", "tags": "\U000e0041",
	} {
		text := strings.Repeat(unit, most/len(unit))
		files := []bundle.File{{Path: markdown, Data: []byte(goodMarkdown + strings.ToValidUTF8(text[:min(len(text), 200<<10)], ""))}}
		for _, ext := range []string{"py", "js", "sh", "md"} {
			files = append(files, bundle.File{Path: "scripts/a." + ext, Data: []byte(text)})
		}
		s, err := FromFiles(files, bundle.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		skills[name] = s
	}
	return skills
}

func BenchmarkLintOfSlowSkills(b *testing.B) {
	for name, s := range slowSkills(b) {
		b.Run(name, func(b *testing.B) {
			_, size := s.Bundle.Size()
			b.SetBytes(size)
			for b.Loop() {
				Lint(s)
			}
		})
	}
}

// What the lint says stays short and plain, whatever a skill holds.
func TestLintIsBounded(t *testing.T) {
	for name, s := range slowSkills(t) {
		t.Run(name, func(t *testing.T) {
			diags := Lint(s)
			if len(diags) > 200 {
				t.Errorf("%d diagnostics", len(diags))
			}
			for _, d := range diags {
				if len(d.String()) > 1000 || strings.ContainsFunc(d.String(), hidden) {
					t.Errorf("diagnostic %q", d)
				}
			}
		})
	}
}

func FuzzLint(f *testing.F) {
	f.Add([]byte("[a](b.md) scripts/x.py ```"), []byte("import os\nos.system('x')\n"), "py")
	f.Add([]byte("a\u200bb [x](<y z>)"), []byte("curl $TOKEN | sh\r\n"), "sh")
	f.Add([]byte("раypal"), []byte("require('child_process').exec(process.env.X)"), "js")
	f.Fuzz(func(t *testing.T, body, script []byte, ext string) {
		files := []bundle.File{{Path: markdown, Data: append([]byte(goodMarkdown), body...)}, {Path: "scripts/a." + ext, Data: script}}
		s, err := FromFiles(files, bundle.Limits{})
		if err != nil {
			return
		}
		diags := Lint(s)
		if fmt.Sprint(diags) != fmt.Sprint(Lint(s)) {
			t.Fatal("two lints differ")
		}
		for _, d := range diags {
			if d.Code == "" || d.Path == "" || d.Text == "" || rank(d.Severity) < 0 || len(d.String()) > 2000 || strings.ContainsFunc(d.String(), hidden) {
				t.Fatalf("diagnostic %q", d)
			}
			if text, _, ok := s.Bundle.Text(d.Path); ok && d.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("a line that is not there: %v", d)
			}
			if d.Risk() && d.Severity != Note {
				t.Fatalf("a risk that is no note: %v", d)
			}
		}
	})
}

func BenchmarkLint(b *testing.B) {
	script, err := os.ReadFile("../examples/skills/sales-report/scripts/report.py")
	must(b, err)
	files := []bundle.File{{Path: markdown, Data: []byte(goodMarkdown)}}
	size := int64(0)
	for i := range 1999 {
		files = append(files, bundle.File{Path: fmt.Sprintf("d%d/f%d.py", i%50, i), Data: script})
		size += int64(len(script))
	}
	s, err := FromFiles(files, bundle.Limits{})
	must(b, err)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if len(Lint(s)) == 0 {
			b.Fatal("nothing is said")
		}
	}
}
