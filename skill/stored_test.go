package skill

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

// drawSchema makes a schema with all that JSON can hold in the places that take
// anything.
func drawSchema(t *rapid.T) []byte {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,20}`))
	var any func(depth int) *rapid.Generator[any_]
	any = func(depth int) *rapid.Generator[any_] {
		leaves := []*rapid.Generator[any_]{
			rapid.Map(text, func(s string) any_ { return s }),
			rapid.Map(rapid.SampledFrom([]string{"0", "-1", "1.0", "1e3", "1E-7", "9007199254740993", "0.10"}), func(s string) any_ { return json.Number(s) }),
			rapid.SampledFrom([]any_{true, false, nil, "", "null", "yes", "0x1f", "~", "2026-01-01", "&a", "*a", "<<", "- a", "a: b", "# a", "'", `"`}),
		}
		if depth > 0 {
			leaves = append(leaves,
				rapid.Map(rapid.SliceOfN(any(depth-1), 0, 3), func(l []any_) any_ { return l }),
				rapid.Map(rapid.MapOfN(text, any(depth-1), 0, 3), func(m map[string]any_) any_ { return m }))
		}
		return rapid.OneOf(leaves...)
	}
	b, err := json.MarshalIndent(map[string]any_{
		"type": "object", "additionalProperties": false, "title": text.Draw(t, "title"), "default": any(3).Draw(t, "default"),
		"properties": map[string]any_{text.Draw(t, "property"): map[string]any_{"const": any(2).Draw(t, "const")}},
	}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type any_ = any

// A stored script's declaration is read back as it was given, and one declaration
// has one text.
func TestStored(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,40}`))
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"run.py", "a", "Größe.sh", "it's.js", "-x.py", "yes", "null", "1.0", "a b.py", "{.py", "#.py", "&a.py"}).Draw(rt, "name")
		d := gate.Declaration{
			Mode:        rapid.SampledFrom(append(gate.Modes(), "")).Draw(rt, "mode"),
			Description: strings.TrimSpace(text.Draw(rt, "description")),
			Timeout:     time.Duration(rapid.Int64Range(0, int64(gate.CeilingTimeout)).Draw(rt, "timeout")),
		}
		if rapid.Bool().Draw(rt, "schema") {
			d.Schema = drawSchema(rt)
		}
		if d.Mode == gate.Flags && rapid.Bool().Draw(rt, "flags") {
			d.Flags = map[string]gate.Flag{}
			for i := range rapid.IntRange(1, 4).Draw(rt, "count") {
				d.Flags[text.Draw(rt, "property")] = rapid.SampledFrom([]gate.Flag{{}, {Flag: "-v"}, {Flag: "--long-flag"}, {Position: i + 1}}).Draw(rt, "flag")
			}
		}
		if right := gate.ModuleOf(name); right != "" && rapid.Bool().Draw(rt, "module") {
			d.Module = right
		}
		for _, p := range []string{"*.csv", "outputs/a", "outputs/outputs/a", "**/x", "[a-z]?", `a\*b`, "é"} {
			if rapid.Bool().Draw(rt, p) {
				d.Outputs = append(d.Outputs, p)
			}
		}
		content := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(rt, "content")
		b, err := Stored(name, content, d)
		if err != nil {
			rt.Fatalf("%+v: %v", d, err)
		}
		again, err := Stored(name, content, d)
		if err != nil || again.Digest() != b.Digest() {
			rt.Fatalf("one script has two digests, error %v", err)
		}
		if got, _, ok := b.Text(name); !ok || got != string(content) || !slices.Equal(b.Paths(), []string{name}) {
			rt.Fatalf("got files %q with %q", b.Paths(), got)
		}
		got, err := new(Declarations).Declare(b, name)
		if err != nil {
			rt.Fatal(err)
		}
		want := d
		if want.Mode == "" {
			want.Mode = gate.Stdin
		}
		var one, two any
		if len(want.Schema) > 0 {
			decode(rt, want.Schema, &one)
			decode(rt, got.Schema, &two)
		}
		if diff := cmp.Diff(one, two); diff != "" {
			rt.Fatal(diff)
		}
		if want.Mode == gate.Flags && len(want.Schema) == 0 {
			want.Schema = closedSchema(want.Flags)
		} else if len(want.Schema) > 0 {
			want.Schema = got.Schema // compared above
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("%s\n%s", b.Declaration(), diff)
		}
		// What was read back has the same digest again.
		if again, err := Stored(name, content, got); err != nil || again.Digest() != b.Digest() {
			rt.Fatalf("read back it has another digest, error %v", err)
		}
	})
}

func decode(t *rapid.T, b []byte, v any) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		t.Fatal(err)
	}
}

// R14: a stored script's name is a plain file name; and what tracon.yaml could
// not say is refused and not bent.
func TestStoredRefuses(t *testing.T) {
	good := gate.Declaration{}
	with := func(change func(*gate.Declaration)) gate.Declaration {
		d := good
		change(&d)
		return d
	}
	tests := []struct {
		name, script string
		d            gate.Declaration
		err          error
		text         string
	}{
		{"no name", "", good, bundle.ErrPath, "empty"},
		{"a path", "scripts/a.py", good, bundle.ErrPath, "plain file name"},
		{"leaves", "../a.py", good, bundle.ErrPath, "a.py"},
		{"absolute", "/a.py", good, bundle.ErrPath, "a.py"},
		{"backslash", `a\b.py`, good, bundle.ErrPath, "b.py"},
		{"drive", "C:a.py", good, bundle.ErrPath, "a.py"},
		{"NUL", "a.py\x00.txt", good, bundle.ErrPath, "a.py"},
		{"dot at the end", "a.py.", good, bundle.ErrPath, "a.py"},
		{"device", "nul.py", good, bundle.ErrPath, "device"},
		{"direction", "a\u202eb.py", good, bundle.ErrPath, "a"},
		{"long", strings.Repeat("x", 1000), good, bundle.ErrPath, "1000 bytes"},
		{"ours", "tracon.yaml", good, bundle.ErrPath, "no script"},
		{"ours in another case", "Skill.md", good, bundle.ErrPath, "no script"},
		{"ignored", ".git", good, bundle.ErrPath, "no script"},
		{"unknown mode", "a.py", with(func(d *gate.Declaration) { d.Mode = "args" }), bundle.ErrContent, "no way to take them"},
		{"a bad schema", "a.py", with(func(d *gate.Declaration) { d.Schema = []byte(`{"type":"strnig"}`) }), bundle.ErrContent, "/type"},
		{"a name twice in the schema", "a.py", with(func(d *gate.Declaration) { d.Schema = []byte(`{"type":"object","type":"array"}`) }), bundle.ErrContent, "twice"},
		{"two schemas", "a.py", with(func(d *gate.Declaration) { d.Schema = []byte(`{} {}`) }), bundle.ErrContent, "more than one"},
		{"a hostile schema", "a.py", with(func(d *gate.Declaration) { d.Schema = []byte(`{"$ref":"#"}`) }), bundle.ErrContent, "ring"},
		{"a negative timeout", "a.py", with(func(d *gate.Declaration) { d.Timeout = -1 }), bundle.ErrContent, "timeout"},
		{"a long timeout", "a.py", with(func(d *gate.Declaration) { d.Timeout = 25 * time.Hour }), bundle.ErrContent, "timeout"},
		{"another module", "a.py", with(func(d *gate.Declaration) { d.Module = "os" }), bundle.ErrContent, "write module: a"},
		{"flags without the mode", "a.py", with(func(d *gate.Declaration) { d.Flags = map[string]gate.Flag{"a": {}} }), bundle.ErrContent, "arguments: flags"},
		{"flag and position", "a.py", with(func(d *gate.Declaration) {
			d.Mode, d.Flags = gate.Flags, map[string]gate.Flag{"a": {Flag: "--a", Position: 1}}
		}), bundle.ErrContent, "a flag and a position"},
		{"no flag", "a.py", with(func(d *gate.Declaration) { d.Mode, d.Flags = gate.Flags, map[string]gate.Flag{"a": {Flag: "a"}} }), bundle.ErrContent, "no flag"},
		{"an output that leaves", "a.py", with(func(d *gate.Declaration) { d.Outputs = []string{"../x"} }), bundle.ErrContent, "no pattern"},
		{"a description that would be trimmed", "a.py", with(func(d *gate.Declaration) { d.Description = " a" }), bundle.ErrContent, "cannot say"},
		{"a description that is not UTF-8", "a.py", with(func(d *gate.Declaration) { d.Description = "a\xff" }), bundle.ErrContent, "cannot say"},
		{"a long description", "a.py", with(func(d *gate.Declaration) { d.Description = strings.Repeat("x", 1025) }), bundle.ErrContent, "longer than 1024"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := Stored(tt.script, []byte("x"), tt.d)
			if !errors.Is(err, tt.err) || !errors.Is(err, bundle.ErrContent) || !strings.Contains(err.Error(), tt.text) || !b.IsZero() {
				t.Errorf("got error %v, want %q", err, tt.text)
			}
		})
	}
	if _, err := Stored("a.py", make([]byte, bundle.DefaultFileBytes+1), good); !errors.Is(err, bundle.ErrLimit) {
		t.Errorf("too large: error %v", err)
	}
}

// The declaration of a stored script is under its pin for good: its text is frozen.
func TestStoredIsFrozen(t *testing.T) {
	b, err := Stored("run.py", []byte("print(1)\n"), gate.Declaration{
		Description: "Adds \"all\".", Mode: gate.Flags, Timeout: 90 * time.Second, Module: "run", Outputs: []string{"*.csv"},
		Schema: []byte("{\n \"type\": \"object\", \"properties\": {\"n\": {\"type\": \"number\", \"maximum\": 1.0}, \"f\": {\"const\": [null, true, \"a\\u0007\"]}}, \"additionalProperties\":false}"),
		Flags:  map[string]gate.Flag{"n": {Flag: "-n"}, "f": {Position: 1}},
	})
	must(t, err)
	const want = `scripts:
  "run.py":
    description: "Adds \"all\"."
    arguments: "flags"
    schema: {"type": "object", "properties": {"n": {"type": "number", "maximum": 1.0}, "f": {"const": [null, true, "a\u0007"]}}, "additionalProperties": false}
    flags:
      "f": {position: 1}
      "n": {flag: "-n"}
    timeout: 1m30s
    module: "run"
    outputs:
      - "*.csv"
`
	if diff := cmp.Diff(want, string(b.Declaration())); diff != "" {
		t.Error(diff)
	}
	if b, err = Stored("a.sh", nil, gate.Declaration{}); err != nil || string(b.Declaration()) != "scripts:\n  \"a.sh\":\n    arguments: \"stdin\"\n" {
		t.Errorf("got %q, error %v", b.Declaration(), err)
	}
}
