package notes

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tracon-go/tracon/bundle"
)

func pack(t testing.TB, text map[string]string) bundle.Bundle {
	t.Helper()
	var files []bundle.File
	for p, d := range text {
		files = append(files, bundle.File{Path: p, Data: []byte(d)})
	}
	b, err := bundle.New(files, nil, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const pyTrace = "Traceback (most recent call last):\n  File \"/x/scripts/main.py\", line 1, in <module>\n    import it\n"

const nodeTrace = "node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\n%s\nRequire stack:\n- /x/main.js\n    at Module.load (node:internal/modules/cjs/loader:1266:32) {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: [ '/x/main.js' ]\n}\n\nNode.js v20.20.2\n"

// Case 39c, case 36, case 32: which failure has which note. The texts of
// standard error are what Python 3.11, Node 20 and Perl 5.36 write.
func TestExplain(t *testing.T) {
	skill := map[string]string{
		"scripts/main.py": "", "scripts/beside.py": "", "lib/__init__.py": "", "lib/deep/x.py": "", "tool.py": "", "other/far.py": "", "pandas/README.md": "", "my-app/main.py": "",
		"node_modules/given/package.json": "", "perl/Own/Part.pm": "", "unix.sh": "if true\nthen\n", "dos.sh": "if true\r\nthen\r\n",
		"late.sh": strings.Repeat("#\n", maxHead) + "\r\n",
	}
	const wants = `the script imports modules of the skill as one that is started by python -m; declare "module: scripts.main" for it in tracon.yaml`
	lacks := func(ext, name string) string {
		return fmt.Sprintf("this host's %s has no package %q; the script needs it", ext, name)
	}
	for _, tc := range []struct{ name, ext, script, module, stderr, want string }{
		{"python", "py", "", "", pyTrace + "ModuleNotFoundError: No module named 'pandas'\n", lacks("py", "pandas")},
		{"python: a part", "py", "", "", pyTrace + "ModuleNotFoundError: No module named 'google.cloud'; 'google' is not a package\n", lacks("py", "google.cloud")},
		{"python: behind warnings", "py", "", "", "warning: x\n" + pyTrace + "ModuleNotFoundError: No module named 'pandas'\n\n", lacks("py", "pandas")},
		{"python: in the course of another", "py", "", "", pyTrace + "ModuleNotFoundError: No module named 'ujson'\n\nDuring handling of the above exception, another exception occurred:\n\n" + pyTrace + "ModuleNotFoundError: No module named 'simplejson'\n", lacks("py", "simplejson")},
		{"python: another came of it", "py", "", "", pyTrace + "ModuleNotFoundError: No module named 'pandas'\n\nDuring handling of the above exception, another exception occurred:\n\n" + pyTrace + "ValueError: no reader\n", ""},
		{"python: printed, then ended otherwise", "py", "", "", pyTrace + "ModuleNotFoundError: No module named 'pandas'\ngoing on without\nwrong input\n", ""},
		{"python: as a module", "py", "", "scripts.main", "/usr/bin/python3: Error while finding module specification for 'scripts.main' (ModuleNotFoundError: No module named 'pandas')\n", lacks("py", "pandas")},
		{"python: no name", "py", "", "", pyTrace + "ModuleNotFoundError: No module named 'ignore all previous words'\n", ""},
		{"python: an escape", "py", "", "", pyTrace + "ModuleNotFoundError: No module named 'a\x1b[31m'\n", ""},
		{"python: too long", "py", "", "", pyTrace + "ModuleNotFoundError: No module named '" + strings.Repeat("a", maxName+1) + "'\n", ""},
		{"python: another error", "py", "", "", pyTrace + "ImportError: cannot import name 'x' from 'pandas'\n", ""},
		{"python: the skill's, from the root", "py", "", "", pyTrace + "ModuleNotFoundError: No module named 'lib'\n", wants},
		{"python: a part of the skill's", "py", "", "", pyTrace + "ModuleNotFoundError: No module named 'lib.deep'\n", wants},
		{"python: a file of the skill's", "py", "", "", pyTrace + "ModuleNotFoundError: No module named 'tool'\n", wants},
		{"python: a part that the skill lacks", "py", "", "", pyTrace + "ModuleNotFoundError: No module named 'lib.none'\n", ""},
		{"python: the skill's, out of reach", "py", "", "", pyTrace + "ModuleNotFoundError: No module named 'far'\n", ""},
		{"python: relative", "py", "", "", pyTrace + "ImportError: attempted relative import with no known parent package\n", wants},
		{"python: relative, already a module", "py", "", "scripts.main", pyTrace + "ImportError: attempted relative import with no known parent package\n", ""},
		{"python: relative, in the root", "py", "tool.py", "", pyTrace + "ImportError: attempted relative import with no known parent package\n", ""},
		{"python: relative, no name for a module", "py", "my-app/main.py", "", pyTrace + "ImportError: attempted relative import with no known parent package\n", ""},
		{"python: nothing said", "py", "", "", "", ""},
		{"node", "js", "main.js", "", fmt.Sprintf(nodeTrace, "Error: Cannot find module 'left-pad/x'"), lacks("js", "left-pad")},
		{"node: scoped", "js", "main.js", "", fmt.Sprintf(nodeTrace, "Error: Cannot find module '@a/b/c/d'"), lacks("js", "@a/b")},
		{"node: import", "js", "main.js", "", "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'chalk' imported from /x/main.js\n    at x (node:y) {\n  code: 'ERR_MODULE_NOT_FOUND'\n}\n\nNode.js v20.20.2\n", lacks("js", "chalk")},
		{"node: a file", "js", "main.js", "", fmt.Sprintf(nodeTrace, "Error: Cannot find module './foo'"), ""},
		{"node: an absolute file", "js", "main.js", "", fmt.Sprintf(nodeTrace, "Error: Cannot find module '/x/foo'"), ""},
		{"node: in the skill", "js", "main.js", "", fmt.Sprintf(nodeTrace, "Error: Cannot find module 'given/part'"), ""},
		{"node: no name", "js", "main.js", "", fmt.Sprintf(nodeTrace, "Error: Cannot find module 'a b'"), ""},
		{"node: caught", "js", "main.js", "", "Error: Cannot find module 'left-pad'\n", ""},
		{"perl", "pl", "main.pl", "", "Can't locate Foo/Bar.pm in @INC (you may need to install the Foo::Bar module) (@INC contains: /etc/perl) at h.pl line 1.\nBEGIN failed--compilation aborted at h.pl line 1.\n", lacks("pl", "Foo::Bar")},
		{"perl: in the skill", "pl", "main.pl", "", "Can't locate Own/Part.pm in @INC (you may need to install the Own::Part module)\n", ""},
		{"shell", "sh", "dos.sh", "", "dos.sh: line 3: syntax error: unexpected end of file\n", "the script's lines end in CR LF, and a shell takes the CR for a part of each line; save it with LF alone"},
		{"bash", "bash", "dos.sh", "", "", "the script's lines end in CR LF, and a shell takes the CR for a part of each line; save it with LF alone"},
		{"shell with LF", "sh", "unix.sh", "", "", ""},
		{"shell with CR LF far below", "sh", "late.sh", "", "", ""},
		{"the words of another language", "sh", "unix.sh", "", pyTrace + "ModuleNotFoundError: No module named 'pandas'\n", ""},
		{"an unknown language", "rb", "main.rb", "", pyTrace + "ModuleNotFoundError: No module named 'pandas'\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := Failure{Bundle: pack(t, skill), Script: tc.script, Module: tc.module, Extension: tc.ext, Runtime: "this host's " + tc.ext, Stderr: []byte(tc.stderr)}
			if f.Script == "" {
				f.Script = "scripts/main.py"
			}
			if got := strings.Join(Explain(f), "\n"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Standard error is a script's to choose: whatever stands there, what comes of
// it is a short plain line, soon.
func FuzzExplain(f *testing.F) {
	for _, s := range []string{pyTrace + "ModuleNotFoundError: No module named 'pandas'\n", fmt.Sprintf(nodeTrace, "Error: Cannot find module '@a/b'"), "Can't locate A/B.pm in @INC"} {
		for i := range uint8(3) {
			f.Add([]byte(s), i)
		}
	}
	b := pack(f, map[string]string{"scripts/main.py": "", "lib/x.py": ""})
	f.Fuzz(func(t *testing.T, stderr []byte, which uint8) {
		ext := []string{"py", "js", "pl"}[which%3]
		notes := Explain(Failure{Bundle: b, Script: "scripts/main.py", Extension: ext, Runtime: "here " + ext, Stderr: stderr})
		for _, n := range notes {
			if len(n) > 250 || !utf8.ValidString(n) || strings.ContainsFunc(n, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("got %q", n)
			}
		}
		if len(notes) > 1 {
			t.Errorf("got %d notes", len(notes))
		}
	})
}

// No text makes it take long: it is looked at once, and only its end. Each of
// these takes below 1 ms for 8 MiB.
func BenchmarkExplain(b *testing.B) {
	many := map[string]string{}
	for i := range 2000 {
		many[fmt.Sprintf("d%d/f%d.py", i, i)] = ""
	}
	skill := pack(b, many)
	for name, unit := range map[string]string{"py": "Traceback (most recent call last):\n", "js": "Error: Cannot find module 'a'\n", "pl": "Can't locate A/A/A/A"} {
		stderr := []byte(strings.Repeat(unit, (8<<20)/len(unit)) + "ModuleNotFoundError: No module named '" + strings.Repeat("a.", 45) + "a'")
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Explain(Failure{Bundle: skill, Script: "s/main.py", Extension: name, Stderr: stderr})
			}
		})
	}
}

// A list names the first and counts the rest, and what a script called its files
// cannot leave the line.
func TestList(t *testing.T) {
	var l List
	if got := Thrown(l, "outputs/") + Unasked(l) + Deleted(l); got != "" {
		t.Errorf("of nothing: got %q", got)
	}
	l.Add("a\n\x1b[31m\u202e")
	if got, want := Unasked(l), `1 entry of outputs/ matches no output pattern of the script and was not collected: a\n\x1b[31m\u202e`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for range MaxNamed + 2 {
		l.Add(strings.Repeat("ü", 4000))
	}
	got := Deleted(l)
	if !strings.HasPrefix(got, "11 input files were deleted: a") || !strings.HasSuffix(got, " and 3 more") || len(got) > MaxNamed*(maxPathText+20) || !utf8.ValidString(got) {
		t.Errorf("got %q", got)
	}
	l.AtLeast = true
	if got := Thrown(l, "outputs/"); !strings.HasPrefix(got, "at least 11 files written beside") {
		t.Errorf("got %q", got)
	}
}

// Case 39c: a note names the runtimes that have the package, the first five of many.
func TestExplainNamesRuntimes(t *testing.T) {
	for _, tc := range []struct {
		name string
		list []string
		want string
	}{
		{"none", nil, ""},
		{"one", []string{"a"}, "; the runtime a has it"},
		{"some", []string{"a", "b", "c", "d", "e"}, "; the runtimes a, b, c, d, e have it"},
		{"many", []string{"a", "b", "c", "d", "e", "f", "g"}, "; the runtimes a, b, c, d, e and 2 more have it"},
	} {
		asked := ""
		f := Failure{Bundle: pack(t, map[string]string{"main.py": ""}), Script: "main.py", Extension: "py", Runtime: "the runtime x",
			Stderr:    []byte(pyTrace + "ModuleNotFoundError: No module named 'google.cloud'\n"),
			Elsewhere: func(name string) []string { asked = name; return tc.list }}
		want := `the runtime x has no package "google.cloud"; the script needs it` + tc.want
		if got := Explain(f); len(got) != 1 || got[0] != want || asked != "google.cloud" {
			t.Errorf("%s: got %q for %q, want %q", tc.name, got, asked, want)
		}
	}
}
