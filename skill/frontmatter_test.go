package skill

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
)

// Each folder of testdata/skill-md loads, or doesn't, and says what expect.json
// says, alone and in a scanned root.
func TestCases(t *testing.T) {
	const root = "testdata/skill-md"
	data, err := os.ReadFile(filepath.Join(root, "expect.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Dir        string
		Load       bool
		Diagnostic *string
		Fields     map[string]any
		Why        string
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < 26 {
		t.Fatalf("%d cases, error %v", len(cases), err)
	}
	l := NewLibrary(bundle.Limits{})
	if err := l.AddRoot(root); err != nil {
		t.Fatal(err)
	}
	listed := map[string]Summary{}
	for _, s := range l.List() {
		listed[filepath.Base(s.Folder)] = s
	}
	for _, tt := range cases {
		t.Run(tt.Dir, func(t *testing.T) {
			md, err := os.ReadFile(filepath.Join(root, tt.Dir, "SKILL.md"))
			if err != nil {
				t.Fatal(err)
			}
			m, _, diags := readMarkdown(md, tt.Dir)
			if got := len(errorsOf(diags)) == 0; got != tt.Load {
				t.Fatalf("loads: %v, want %v, for %s: %v", got, tt.Load, tt.Why, diags)
			}
			if tt.Diagnostic == nil && len(diags) > 0 {
				t.Errorf("got %v, want nothing", diags)
			}
			if tt.Diagnostic != nil && !said(diags, *tt.Diagnostic) {
				t.Errorf("got %v, want %q", diags, *tt.Diagnostic)
			}
			b, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			var fields map[string]any
			if err := json.Unmarshal(b, &fields); err != nil {
				t.Fatal(err)
			}
			fields["allowed-tools"] = fields["allowedTools"]
			for name, want := range tt.Fields {
				if !reflect.DeepEqual(fields[name], want) {
					t.Errorf("%s: got %v, want %v", name, fields[name], want)
				}
			}

			s, err := Read(filepath.Join(root, tt.Dir), bundle.Limits{})
			if (err == nil) != tt.Load || tt.Load && !reflect.DeepEqual(s.Meta, m) {
				t.Errorf("Read: got %+v, error %v", s.Meta, err)
			}
			sum, ok := listed[tt.Dir]
			if ok != tt.Load || tt.Load && !reflect.DeepEqual(sum.Meta, m) {
				t.Errorf("listed: %v", ok)
			}
			if !tt.Load && !slices.ContainsFunc(l.Problems(), func(d Diagnostic) bool {
				return d.Severity == Error && strings.HasSuffix(d.Path, filepath.Join(tt.Dir, "SKILL.md"))
			}) {
				t.Errorf("no problem names it: %v", l.Problems())
			}
			for _, d := range diags {
				if strings.ContainsFunc(d.String(), hidden) {
					t.Errorf("%q steers a terminal", d.String())
				}
			}
		})
	}
}

func said(diags []Diagnostic, want string) bool {
	for _, d := range diags {
		if strings.HasPrefix(string(d.Severity)+": "+d.Text, want) {
			return true
		}
	}
	return false
}

func TestMarkdown(t *testing.T) {
	tests := []struct {
		name, in, want string // want: a diagnostic; "" for none
		line           int
		description    string // of what loads
	}{
		{"body is kept", "---\nname: x\ndescription: d\n---\nBody\n", "", 0, "d"},
		{"blank lines first", "\n\n---\nname: x\ndescription: d\n---\n", "note: blank lines", 1, "d"},
		{"blanks behind the fence", "--- \nname: x\ndescription: d\n---\t\r\n", "", 0, "d"},
		{"no name", "---\ndescription: d\n---\n", "warning: name is missing; the folder's is taken", 1, "d"},
		{"empty description", "---\nname: x\ndescription: \"  \"\n---\n", "error: description is missing (line 1-4)", 1, ""},
		{"description is a list", "---\nname: x\ndescription: [a]\n---\n", "error: description is a list, not a text", 3, ""},
		{"description is a number", "---\nname: x\ndescription: 12\n---\n", "", 0, "12"},
		{"colon over two lines", "---\nname: x\ndescription: Use when: a\n  and b: c\n---\n", "warning: description has an unquoted ': '", 3, "Use when: a and b: c"},
		{"colon and quotes", "---\nname: x\ndescription: It's: \"so\"\n---\n", "warning: description has an unquoted ': '", 3, `It's: "so"`},
		{"colon at the end", "---\nname: x\ndescription: As follows: a:\n---\n", "warning: description has", 3, "As follows: a:"},
		{"begins with an at sign", "---\nname: x\ndescription: @Observable state: how to\n---\n", "warning: description begins with a character", 3, "@Observable state: how to"},
		{"begins with a backquote", "---\nname: x\ndescription: `git commit` helper\n---\n", "warning: description begins with", 3, "`git commit` helper"},
		{"begins with a percent sign", "---\nname: x\ndescription: %s is filled in\n---\n", "warning: description begins with", 3, "%s is filled in"},
		{"begins in bold", "---\nname: x\ndescription: **Use** it\n---\n", "warning: description begins with", 3, "**Use** it"},
		{"goes on behind a quote", "---\nname: x\ndescription: \"Smart\" commits: how to\n---\n", "warning: description goes on behind", 3, `"Smart" commits: how to`},
		{"goes on behind a bracket", "---\nname: x\ndescription: [Beta] Makes charts\n---\n", "warning: description goes on behind", 3, "[Beta] Makes charts"},
		{"goes on behind a template", "---\nname: x\ndescription: {{NAME}} does it\n---\n", "error: line 3", 3, ""},
		{"two quotes", "---\nname: x\ndescription: \"a\" \"b\"\n---\n", "error: line 3", 3, ""},
		{"an alias", "---\nname: x\ndescription: *a\n---\n", "error: line 3", 3, ""},
		{"an apostrophe in quotes", "---\nname: x\ndescription: 'It's great'\n---\n", "error: line 3", 3, ""},
		{"an unknown field is not YAML", "---\nname: x\nargument-hint: [path] [name]\ndescription: d\n---\n", "note: unknown fields argument-hint", 3, "d"},
		{"a block scalar stays", "---\nname: x\nhint: [a] b\ndescription: |\n  a: b: c\n  d\n---\n", "note: unknown fields hint", 3, "a: b: c\nd"},
		{"unknown twice", "---\nname: x\ndescription: d\nx: 1\nx: 2\n---\n", "error: x given twice", 5, ""},
		{"twice beside a colon", "---\nname: x\ndescription: a: b\ndescription: c\n---\n", "error: description given twice", 4, ""},
		{"merge key", "---\nname: x\ndescription: d\n<<: {a: b}\n---\n", "error: aliases", 4, ""},
		{"tag", "---\nname: x\ndescription: !!python/object:x d\n---\n", "error: line 3", 3, ""},
		{"a list", "---\n- a\n---\n", "error: the frontmatter is a list", 2, ""},
		{"nothing in it", "---\n---\n", "error: description is missing (line 1-2)", 1, ""},
		{"tab as indent", "---\nname: x\ndescription: d\nmetadata:\n\ta: b\n---\n", "error: line 5", 5, ""},
		{"name with a direction mark", "---\nname: \"a\u202eb\"\ndescription: d\n---\n", "error: name cannot be used", 2, ""},
		{"name of 65", "---\nname: " + strings.Repeat("a", 65) + "\ndescription: d\n---\n", "warning: name longer than 64", 2, "d"},
		{"double hyphen", "---\nname: a--b\ndescription: d\n---\n", "warning: name is not lower case", 2, "d"},
		{"escape in the description", "---\nname: x\ndescription: \"a\\eb\"\n---\n", "warning: control character in description", 3, "a\x1bb"},
		{"compatibility", "---\nname: x\ndescription: d\ncompatibility: " + strings.Repeat("x", 501) + "\n---\n", "warning: compatibility longer than 500", 4, "d"},
		{"metadata is a text", "---\nname: x\ndescription: d\nmetadata: x\n---\n", "note: metadata is a text", 4, "d"},
		{"license is a map", "---\nname: x\ndescription: d\nlicense: {a: b}\n---\n", "note: license is a map", 4, "d"},
		{"too large", "---\nname: x\ndescription: d\n---\n" + strings.Repeat("x", MaxMarkdown), "error: it has 262175 bytes, at most 262144", 0, ""},
		{"four dashes", "----\nname: x\n----\n", "error: no frontmatter", 1, ""},
		{"blanks alone", "\uFEFF \n\n", "error: empty", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			folder := "x"
			if tt.name == "name of 65" {
				folder = strings.Repeat("a", 65)
			}
			m, body, diags := readMarkdown([]byte(tt.in), folder)
			if tt.want == "" && len(diags) > 0 || tt.want != "" && !said(diags, tt.want) {
				t.Fatalf("got %v, want %q", diags, tt.want)
			}
			for _, d := range diags {
				if said([]Diagnostic{d}, tt.want) && tt.want != "" && d.Line != tt.line {
					t.Errorf("got line %d, want %d", d.Line, tt.line)
				}
			}
			if len(errorsOf(diags)) == 0 && m.Description != tt.description {
				t.Errorf("got description %q, want %q", m.Description, tt.description)
			}
			if tt.name == "body is kept" && body != "Body\n" {
				t.Errorf("got body %q", body)
			}
		})
	}
}

// Names count by their exact case; an author is told so.
func TestKeysInAnotherCase(t *testing.T) {
	_, _, diags := readMarkdown([]byte("---\nname: x\nDescription: d\n---\n"), "x")
	if d := find(diags, Error, markdown, "description is missing"); d == nil || d.Remedy != "write description in place of Description: case counts" {
		t.Errorf("got %v", diags)
	}
}

func TestTools(t *testing.T) {
	for in, want := range map[string][]string{
		"":                                   nil,
		"Read":                               {"Read"},
		"Bash(git add:*) Read":               {"Bash(git add:*)", "Read"},
		"Read, Grep,Glob":                    {"Read", "Grep", "Glob"},
		" Bash(a (b) c:*)\tRead ":            {"Bash(a (b) c:*)", "Read"},
		"Bash(unclosed Read":                 {"Bash(unclosed Read"},
		"closed) Read":                       {"closed)", "Read"},
		"Bash(git:*)  Bash(jq:*) Write(a,b)": {"Bash(git:*)", "Bash(jq:*)", "Write(a,b)"},
	} {
		if got := splitTools(in); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// A bomb of aliases costs nothing: B09, and case alias-bomb.
func TestAliasBombIsCheap(t *testing.T) {
	md, err := os.ReadFile("testdata/skill-md/alias-bomb/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, diags := readMarkdown(md, "alias-bomb")
	runtime.ReadMemStats(&after)
	if !said(diags, "error: aliases") || after.TotalAlloc-before.TotalAlloc > 4<<20 {
		t.Errorf("got %v after %d bytes", diags, after.TotalAlloc-before.TotalAlloc)
	}
}

func FuzzMarkdown(f *testing.F) {
	dirs, err := filepath.Glob("testdata/skill-md/*/SKILL.md")
	if err != nil || len(dirs) == 0 {
		f.Fatal("no cases")
	}
	for _, p := range dirs {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("---\nname: x\nhint: [a] b\ndescription: a: b\n  c: d\nmetadata:\n  a: [1, {b: c}]\n---\nBody"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, body, diags := readMarkdown(b, "x")
		for _, d := range diags {
			if d.Text == "" || d.Path == "" || strings.ContainsFunc(d.String(), hidden) || len(d.String()) > 2000 {
				t.Fatalf("diagnostic %q", d.String())
			}
		}
		if len(errorsOf(diags)) == 0 && (m.Name == "" || m.Description == "") {
			t.Fatalf("loads without name or description: %+v", m)
		}
		if len(body) > len(b) {
			t.Fatal("a body larger than the file")
		}
		m2, body2, diags2 := readMarkdown(b, "x")
		if fmt.Sprint(m, body, diags) != fmt.Sprint(m2, body2, diags2) {
			t.Fatal("two readings differ")
		}
	})
}
