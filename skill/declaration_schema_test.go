package skill

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/internal/strictyaml"
	"github.com/tracon-go/tracon/schema"
)

// Reading and the published schema say the same of every declaration that a
// schema can judge, and the schema never refuses what is read.
func TestDeclarationSchemaAgrees(t *testing.T) {
	type verdict int
	const (
		good   verdict = iota
		bad            // reading and the schema refuse it
		beyond         // reading alone refuses it: no schema can say it
	)
	one := func(body string) string {
		return "scripts:\n  pkg/a.py:\n    " + strings.ReplaceAll(body, "\n", "\n    ") + "\n"
	}
	tests := []struct {
		name, in string
		want     verdict
	}{
		{"nothing", "", good},
		{"a comment", "# none\n", good},
		{"no scripts", "scripts: {}", good},
		{"an empty entry", "scripts: {a.py: {}}", good},
		{"all keys", one("description: d\narguments: flags\nschema: {type: object, additionalProperties: false}\nflags: {n: {flag: -n}, f: {position: 1}, m: {}}\ntimeout: 1m30.5s\nmodule: pkg.a\noutputs: ['*.csv', outputs/**, 'a/[a-z]?.txt']"), good},
		{"stdin", one("arguments: stdin"), good},
		{"none", one("arguments: none\nschema: false"), good},
		{"a path of other letters", "scripts: {'Größe/ä b.py': {}}", good},
		{"a dot file", "scripts: {.a/.b: {}}", good},
		{"timeout in parts", one("timeout: .5h"), good},
		{"timeout in microseconds", one("timeout: 5µs"), good},
		{"description of 1024", one("description: " + strings.Repeat("ä", 1024)), good},
		{"64 outputs", one("outputs: [" + many(64) + "]"), good},
		{"position of 100", one("arguments: flags\nflags: {a: {position: 100}}"), good},

		{"flags that say unevaluated", one("arguments: flags\nschema: {unevaluatedProperties: false}"), good},
		{"an open schema for another mode", one("arguments: stdin\nschema: {type: object}"), good},

		{"a list", "- a", bad},
		{"a text", "a", bad},
		{"unknown key", "script: {}", bad},
		{"key of another case", "Scripts: {}", bad},
		{"scripts is nothing", "scripts:", bad},
		{"scripts is a list", "scripts: [a.py]", bad},
		{"entry is nothing", "scripts: {a.py: }", bad},
		{"entry is a text", "scripts: {a.py: argv}", bad},
		{"no path", "scripts: {'': {}}", bad},
		{"absolute path", "scripts: {/a.py: {}}", bad},
		{"path that leaves", "scripts: {../a.py: {}}", bad},
		{"path with a dot", "scripts: {./a.py: {}}", bad},
		{"path with two slashes", "scripts: {a//b.py: {}}", bad},
		{"folder", "scripts: {a/: {}}", bad},
		{"backslash", "scripts: {'a\\b.py': {}}", bad},
		{"drive", "scripts: {'C:a.py': {}}", bad},
		{"control character", "scripts: {\"a\\tb.py\": {}}", bad},
		{"blank at the end", "scripts: {'a.py ': {}}", bad},
		{"blank at the beginning", "scripts: {' a.py': {}}", bad},
		{"dot at the end", "scripts: {a./b.py: {}}", bad},
		{"unknown key of a script", one("args: argv"), bad},
		{"unknown mode", one("arguments: args"), bad},
		{"mode is a list", one("arguments: [argv]"), bad},
		{"description is a number", one("description: 1"), bad},
		{"description of 1025", one("description: " + strings.Repeat("ä", 1025)), bad},
		{"schema is a text", one("schema: object"), bad},
		{"schema is nothing", one("schema:"), bad},
		{"timeout without a unit", one("timeout: 10"), bad},
		{"timeout as a text without a unit", one("timeout: '10'"), bad},
		{"negative timeout", one("timeout: -1s"), bad},
		{"timeout in days", one("timeout: 1d"), bad},
		{"flags without a mode", one("flags: {a: {}}"), bad},
		{"flags with another mode", one("arguments: argv\nflags: {a: {}}"), bad},
		{"flags is a list", one("arguments: flags\nflags: [a]"), bad},
		{"flag is a text", one("arguments: flags\nflags: {a: --a}"), bad},
		{"no flag", one("arguments: flags\nflags: {a: {flag: a}}"), bad},
		{"flag with a value", one("arguments: flags\nflags: {a: {flag: '--a=b'}}"), bad},
		{"flag that is nothing", one("arguments: flags\nflags: {a: {flag: ''}}"), bad},
		{"position of zero", one("arguments: flags\nflags: {a: {position: 0}}"), bad},
		{"position of 101", one("arguments: flags\nflags: {a: {position: 101}}"), bad},
		{"position as a text", one("arguments: flags\nflags: {a: {position: '1'}}"), bad},
		{"flag and position", one("arguments: flags\nflags: {a: {flag: --a, position: 1}}"), bad},
		{"unknown key of a flag", one("arguments: flags\nflags: {a: {name: --a}}"), bad},
		{"flags with an open schema", one("arguments: flags\nschema: {type: object}"), bad},
		{"flags with additional properties of a kind", one("arguments: flags\nschema: {additionalProperties: {type: string}}"), bad},
		{"flags with a schema of true", one("arguments: flags\nschema: true"), bad},
		{"module is a path", one("module: pkg/a.py"), bad},
		{"module is nothing", one("module:"), bad},
		{"module is a list", one("module: [pkg, a]"), bad},
		{"outputs is a text", one("outputs: '*'"), bad},
		{"outputs is empty", one("outputs: []"), bad},
		{"output is a number", one("outputs: [1]"), bad},
		{"output is empty", one("outputs: ['']"), bad},
		{"absolute output", one("outputs: [/a]"), bad},
		{"output that leaves", one("outputs: [a/../../b]"), bad},
		{"a folder as output", one("outputs: [a/]"), bad},
		{"65 outputs", one("outputs: [" + many(65) + "]"), bad},
		{"an output twice", one("outputs: [a, a]"), bad},

		{"another module", one("module: pkg.b"), beyond},
		{"module of a shell script", "scripts: {a.sh: {module: a}}", beyond},
		{"timeout of zero", one("timeout: 0s"), beyond},
		{"timeout of 25 hours", one("timeout: 25h"), beyond},
		{"one position twice", one("arguments: flags\nflags: {a: {position: 1}, b: {position: 1}}"), beyond},
		{"position 1.0", one("arguments: flags\nflags: {a: {position: 1.0}}"), beyond},
		{"an output in two forms", one("outputs: [a, outputs/a]"), beyond},
		{"output with an open bracket", one("outputs: ['[a']"), beyond},
		{"a device", "scripts: {nul.py: {}}", beyond},
		{"a schema that is none", one("schema: {type: strnig}"), beyond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := readDeclaration([]byte(tt.in))
			if read := len(diags) == 0; read != (tt.want == good) {
				t.Errorf("reading says %v", diags)
			}
			for _, d := range diags {
				if d.Line == 0 || d.Code == "" || d.Remedy == "" {
					t.Errorf("no line, code or remedy: %+v", d)
				}
			}
			n, err := strictyaml.Parse([]byte(tt.in), MaxDeclaration)
			must(t, err)
			value, err := n.JSON()
			must(t, err)
			_, err = checker.Check(t.Context(), DeclarationSchema(), value)
			if err != nil && !errors.Is(err, schema.ErrValue) {
				t.Fatal(err)
			}
			if fits := err == nil; fits != (tt.want != bad) {
				t.Errorf("the schema says %v of %s", err, value)
			}
		})
	}
}

func many(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = "f" + strings.Repeat("x", i)
	}
	return strings.Join(all, ", ")
}

// Every example of a declaration that we publish fits the schema.
func TestExamplesFitTheDeclarationSchema(t *testing.T) {
	files, err := filepath.Glob("../examples/skills/*/" + DeclarationName)
	if err != nil || len(files) < 2 {
		t.Fatalf("%d examples, error %v", len(files), err)
	}
	for _, p := range files {
		b, err := os.ReadFile(p)
		must(t, err)
		n, err := strictyaml.Parse(b, MaxDeclaration)
		must(t, err)
		value, err := n.JSON()
		must(t, err)
		if _, err := checker.Check(t.Context(), DeclarationSchema(), value); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}
