package skill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/strictyaml"
	"github.com/tracon-go/tracon/schema"
)

func TestDeclaration(t *testing.T) {
	const in = `
scripts:
  scripts/a.py:
    description: Adds.
    arguments: flags
    timeout: 1m30s
    schema: {type: object, properties: {n: {type: integer, maximum: 9007199254740993, multipleOf: 1.0}}, additionalProperties: false}
    flags:
      n: {flag: "-n"}
      file: {position: 1}
      more: {}
  scripts/b.sh: {arguments: stdin, outputs: ["*.csv", "outputs/a/**"]}
  tool/__main__.py: {module: tool}
  scripts/c.sh: {}
  d.py: {arguments: none, schema: false}
`
	want := map[string]gate.Declaration{
		"scripts/a.py": {
			Description: "Adds.", Mode: gate.Flags, Timeout: 90 * time.Second,
			Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993,"multipleOf":1.0}},"additionalProperties":false}`),
			Flags:  map[string]gate.Flag{"n": {Flag: "-n"}, "file": {Position: 1}, "more": {}},
		},
		"scripts/b.sh":     {Mode: gate.Stdin, Outputs: []string{"*.csv", "a/**"}},
		"tool/__main__.py": {Mode: gate.Argv, Module: "tool"},
		"scripts/c.sh":     {Mode: gate.Argv},
		"d.py":             {Mode: gate.None, Schema: []byte("false")},
	}
	d, diags := readDeclaration([]byte(in))
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	if diff := cmp.Diff(want, d.scripts); diff != "" {
		t.Error(diff)
	}
	for _, empty := range []string{"", "# nothing\n", "scripts: {}\n"} {
		if d, diags := readDeclaration([]byte(empty)); len(diags) > 0 || len(d.scripts) > 0 {
			t.Errorf("%q: got %v, %v", empty, d, diags)
		}
	}
}

// Every mistake in tracon.yaml is an error with its line and what to do, and
// closes all scripts of the skill.
func TestDeclarationMistakes(t *testing.T) {
	one := func(body string) string {
		return "scripts:\n  a.py:\n    " + strings.ReplaceAll(body, "\n", "\n    ") + "\n"
	}
	tests := []struct {
		name, in string
		line     int
		text     string
	}{
		{"not YAML", "scripts: [", 2, "did not find"},
		{"a list", "- a\n", 1, "the file is a list"},
		{"unknown key", "scripts: {}\nscript: {}\n", 2, `unknown key "script"`},
		{"twice", "scripts: {}\nscripts: {}\n", 2, "given twice"},
		{"alias", "scripts: &a {}\n", 1, "aliases"},
		{"scripts is a list", "scripts: [a.py]\n", 1, "scripts is a list"},
		{"bad path", "scripts:\n  ../a.py: {}\n", 2, "not a plain relative path"},
		{"absolute path", "scripts:\n  /a.py: {}\n", 2, "not a plain relative path"},
		{"backslash", "scripts:\n  'a\\b.py': {}\n", 2, "holds"},
		{"entry is a text", "scripts:\n  a.py: argv\n", 2, "is a text"},
		{"entry is nothing", "scripts:\n  a.py:\n", 2, "is nothing"},
		{"unknown key of a script", one("arguments: argv\nargs: x"), 4, `unknown key "args"`},
		{"another case", one("Arguments: argv"), 3, `unknown key "Arguments"`},
		{"unknown mode", one("arguments: args"), 3, "no way to take them"},
		{"mode is a list", one("arguments: [argv]"), 3, "no way to take them"},
		{"description is a list", one("description: [a]"), 3, "description is a list"},
		{"timeout without a unit", one("timeout: 10"), 3, "no timeout"},
		{"timeout of zero", one("timeout: 0s"), 3, "no timeout"},
		{"negative timeout", one("timeout: -1s"), 3, "no timeout"},
		{"timeout beyond a day", one("timeout: 25h"), 3, "no timeout"},
		{"schema is a text", one("schema: object"), 3, "schema is a text"},
		{"schema that isn't one", one("schema:\n  type: object\n  properties:\n    a:\n      type: strnig"), 7, "/properties/a/type"},
		{"schema with hex", one("schema:\n  maximum: 0x1f"), 4, "no number of JSON"},
		{"schema from the web", one("schema:\n  items:\n    $ref: https://example.com/x"), 5, "nothing is fetched"},
		{"hostile schema", one("schema: {$ref: '#'}"), 3, "ring"},
		{"flags without the mode", one("arguments: argv\nflags: {a: {flag: --a}}"), 4, "arguments: flags alone"},
		{"flags without a mode", one("flags: {a: {flag: --a}}"), 3, "arguments: flags alone"},
		{"flag is a text", one("arguments: flags\nflags:\n  a: --a"), 5, "is a text"},
		{"no flag", one("arguments: flags\nflags:\n  a: {flag: a}"), 5, "no flag"},
		{"flag with a blank", one("arguments: flags\nflags:\n  a: {flag: '--a b'}"), 5, "no flag"},
		{"flag with a value", one("arguments: flags\nflags:\n  a: {flag: '--a=b'}"), 5, "no flag"},
		{"position of zero", one("arguments: flags\nflags:\n  a: {position: 0}"), 5, "no position"},
		{"position as text", one("arguments: flags\nflags:\n  a: {position: '1'}"), 5, "no position"},
		{"flag and position", one("arguments: flags\nflags:\n  a: {flag: --a, position: 1}"), 5, "a flag and a position"},
		{"one position twice", one("arguments: flags\nflags:\n  a: {position: 1}\n  b: {position: 1}"), 6, "same position"},
		{"unknown key of a flag", one("arguments: flags\nflags:\n  a: {name: --a}"), 5, `unknown key "name"`},
		{"position with a sign", one("arguments: flags\nflags:\n  a: {position: +1}"), 5, "no position"},
		{"long description", one("description: " + strings.Repeat("x", 1025)), 3, "longer than 1024"},
		{"another module", one("module: b"), 3, `module is "b", which is not "a.py"`},
		{"a path for a module", one("module: a.py"), 3, "which is not"},
		{"module is a list", one("module: [a]"), 3, "which is not"},
		{"module of no Python script", "scripts:\n  a-b.py: {module: a}\n", 2, "no module that Python can name"},
		{"outputs is a text", one("outputs: '*.csv'"), 3, "outputs is a text"},
		{"outputs is empty", one("outputs: []"), 3, "an empty list"},
		{"output that leaves", one("outputs:\n- a\n- ../b"), 5, `"../b" is no pattern`},
		{"absolute output", one("outputs: [/tmp/x]"), 3, "no pattern"},
		{"output with an open bracket", one("outputs: ['[a']"), 3, "no pattern"},
		{"output is a number", one("outputs: [1]"), 3, "no pattern"},
		{"output twice", one("outputs: [a, outputs/a]"), 3, "stands twice"},
		{"too many outputs", one("outputs: [" + strings.Repeat("a,", 64) + "b]"), 3, "65 patterns, at most 64"},
		{"too large", "# " + strings.Repeat("x", MaxDeclaration), 0, "at most 262144"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := readDeclaration([]byte(tt.in))
			found := false
			for _, d := range diags {
				found = found || d.Severity == Error && d.Line == tt.line && strings.Contains(d.String(), visible(tt.text))
			}
			if !found {
				t.Fatalf("got %v, want line %d with %q", diags, tt.line, tt.text)
			}
			for _, d := range diags {
				if !strings.HasPrefix(d.Code, "declaration-") {
					t.Errorf("code %q of %v", d.Code, d)
				}
			}
			b, err := bundle.New([]bundle.File{{Path: "a.py"}}, []byte(tt.in), bundle.Limits{})
			must(t, err)
			var all Declarations
			for _, script := range []string{"a.py", "other.py"} {
				d, err := all.Declare(b, script)
				if !errors.Is(err, bundle.ErrContent) || !strings.Contains(err.Error(), DeclarationName) || d.Mode != "" {
					t.Errorf("%s: got %+v, error %v", script, d, err)
				}
			}
		})
	}
}

// A declaration comes from the pinned bytes alone; without one a script takes a
// list of strings.
func TestDeclarations(t *testing.T) {
	var all Declarations
	if d, err := all.Declare(bundle.Bundle{}, "a.py"); !errors.Is(err, bundle.ErrContent) || d.Mode != "" {
		t.Errorf("without content: got %+v, error %v", d, err)
	}
	var wg sync.WaitGroup
	for i := range 3 * keptDeclarations {
		wg.Go(func() {
			text := fmt.Sprintf("scripts:\n  a.py: {arguments: stdin, description: d%d, schema: {const: 1}}\n", i)
			b, err := bundle.New([]bundle.File{{Path: "a.py"}}, []byte(text), bundle.Limits{})
			must(t, err)
			for range 2 {
				d, err := all.Declare(b, "a.py")
				if err != nil || d.Mode != gate.Stdin || d.Description != fmt.Sprintf("d%d", i) {
					t.Errorf("got %+v, error %v", d, err)
				}
				d.Schema[0] = 'x' // a copy
			}
			if d, err := all.Declare(b, "A.py"); err != nil || d.Mode != gate.Argv || d.Schema != nil {
				t.Errorf("another script: got %+v, error %v", d, err)
			}
		})
	}
	wg.Wait()
	if n := all.order.Len(); n > keptDeclarations || n != len(all.byKey) {
		t.Errorf("%d declarations are kept, %d by key", n, len(all.byKey))
	}
}

func TestReadWithBadDeclaration(t *testing.T) {
	folder := write(t, "good", map[string]string{
		"SKILL.md": goodMarkdown, "a.py": "",
		"tracon.yaml": "scripts:\n  a.py: {arguments: stdin}\n  gone.py: {}\n",
	})
	s, err := Read(folder, bundle.Limits{})
	must(t, err)
	if d := find(s.Errors(), Error, DeclarationName, `no file "gone.py"`); d == nil || d.Line != 3 {
		t.Errorf("got %v", s.Diagnostics)
	}
	writeIn(t, folder, map[string]string{"tracon.yaml": "script: {}\n"})
	s, err = Read(folder, bundle.Limits{})
	must(t, err)
	if d := find(s.Errors(), Error, DeclarationName, "unknown key"); d == nil || s.Bundle.IsZero() {
		t.Errorf("got %v", s.Diagnostics)
	}
	// Case 42: the declaration is under the pin.
	one := s.Bundle.Digest()
	writeIn(t, folder, map[string]string{"tracon.yaml": "scripts: {}\n"})
	if s, err = Read(folder, bundle.Limits{}); err != nil || s.Bundle.Digest() == one || string(s.Bundle.Declaration()) != "scripts: {}\n" {
		t.Errorf("got %q, error %v", s.Bundle.Declaration(), err)
	}
}

func FuzzDeclaration(f *testing.F) {
	for _, p := range []string{"unit-converter", "sales-report"} {
		b, err := os.ReadFile(filepath.Join("../examples/skills", p, DeclarationName))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("scripts: {a: {schema: {$ref: '#/x'}, flags: {b: {position: 1}}, timeout: 1s}}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, diags := readDeclaration(b)
		for _, diag := range diags {
			if diag.Severity != Error || diag.Path != DeclarationName || diag.Text == "" || strings.ContainsFunc(diag.String(), hidden) || len(diag.String()) > 2000 {
				t.Fatalf("diagnostic %q", diag.String())
			}
		}
		if n, err := strictyaml.Parse(b, MaxDeclaration); err == nil && len(diags) == 0 {
			value, err := n.JSON()
			must(t, err)
			if _, err := checker.Check(t.Context(), declarationSchema, value); errors.Is(err, schema.ErrValue) {
				t.Fatalf("what is read does not fit the schema: %v", err)
			}
		}
		for p, one := range d.scripts {
			if bundle.CheckPath(p) != nil || one.Mode == "" || one.Timeout < 0 {
				t.Fatalf("%q: %+v", p, one)
			}
			if len(diags) == 0 && len(one.Schema) > 0 && checker.Compile(one.Schema) != nil {
				t.Fatalf("%q: a schema that isn't one: %s", p, one.Schema)
			}
		}
	})
}

// B4, R13: a flags script takes the flags that are declared and no others.
func TestFlagsAreClosed(t *testing.T) {
	d, diags := readDeclaration([]byte("scripts:\n  a.py: {arguments: flags, flags: {n: {}, file: {position: 1}}}\n  b.py: {arguments: flags}\n"))
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	for script, want := range map[string]string{
		"a.py": `{"additionalProperties":false,"properties":{"file":{},"n":{}},"type":"object"}`,
		"b.py": `{"additionalProperties":false,"properties":{},"type":"object"}`,
	} {
		if got := string(d.scripts[script].Schema); got != want {
			t.Errorf("%s: schema %s, want %s", script, got, want)
		}
	}
	for _, open := range []string{"{type: object}", "{additionalProperties: true}", "{additionalProperties: {type: string}}", "true"} {
		_, diags := readDeclaration([]byte("scripts:\n  a.py:\n    arguments: flags\n    schema: " + open + "\n"))
		if len(diags) != 1 || diags[0].Line != 4 {
			t.Errorf("schema %s: diagnostics %v, want one in line 4", open, diags)
		}
	}
}
