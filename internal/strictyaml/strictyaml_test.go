package strictyaml

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
)

const kib64 = 64 << 10

// What two YAML readers could take for two things is refused, with its line.
func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name, in string
		err      error
		line     int
		text     string
	}{
		{"unclosed list", "a: 1\nb: [x\n", ErrSyntax, 2, ""},
		{"colon in a value", "a: 1\nb: c: d\n", ErrSyntax, 2, "mapping values"},
		{"tab as indent", "a:\n\tb: 1\n", ErrSyntax, 2, ""},
		{"not UTF-8", "a: 1\nb: \xe9\n", ErrSyntax, 2, "not UTF-8"},
		{"UTF-16", "\xff\xfea\x00", ErrSyntax, 1, "not UTF-8"},
		{"control character", "a: \x01\n", ErrSyntax, 0, "control"},
		{"too large", "a: " + strings.Repeat("x", kib64), ErrSize, 0, "65539 bytes, at most 65536"},
		{"duplicate key", "a: 1\nb: 2\na: 3\n", ErrDuplicate, 3, "a given twice, first in line 1"},
		{"duplicate key by quotes", "a: 1\n\"a\": 3\n", ErrDuplicate, 2, "a given twice"},
		{"duplicate key below", "x:\n  a: 1\n  a: 3\n", ErrDuplicate, 3, "a given twice"},
		{"anchor", "a: &x 1\n", ErrAlias, 1, "aliases"},
		{"alias", "a: 1\nb: &x 1\nc: *x\n", ErrAlias, 2, "aliases"},
		{"unknown alias", "a: 1\nb: *x\n", ErrSyntax, 2, "anchor"},
		{"alias of itself", "a: &x [*x]\n", ErrAlias, 1, "aliases"},
		{"merge key", "a: 1\n<<: {b: 1}\n", ErrAlias, 2, "merge"},
		{"tag of one's own", "a: 1\nb: !foo 1\n", ErrTag, 2, "!foo"},
		{"tag of an object", "a: !!python/object:os.system x\n", ErrTag, 1, "python"},
		{"binary", "a: !!binary aGk=\n", ErrTag, 1, "binary"},
		{"integer tag", "a: !!int \"3\"\n", ErrTag, 1, "int"},
		{"tag on a map", "a: !!set {x}\n", ErrTag, 1, "set"},
		{"tab as indent", "a:\n\tb: 1\n", ErrSyntax, 2, "a tab begins the line"},
		{"tab behind blanks", "a:\n  \tb: 1\n  c\n", ErrSyntax, 2, "a tab begins the line"},
		{"two documents", "a: 1\n---\nb: 1\n", ErrSyntax, 2, "second document"},
		{"key that is a list", "? [a]\n: b\n", ErrSyntax, 1, "a key is a list"},
		{"key that is nothing", "~: b\n", ErrSyntax, 1, "a key is nothing"},
		{"deep flow", "a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), ErrSyntax, 1, "nested deeper"},
		{"deep block", strings.Repeat("- ", 5000) + "x", ErrSyntax, 1, "nested deeper"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n, err := Parse([]byte(tt.in), kib64)
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, tt.err) || e.Line != tt.line || !strings.Contains(err.Error(), tt.text) {
				t.Fatalf("got %v, error %v (%+v); want line %d, %v with %q", n, err, e, tt.line, tt.err, tt.text)
			}
			var into map[string]any
			if err := Decode([]byte(tt.in), kib64, &into); err == nil {
				t.Fatal("Decode takes what Parse refuses")
			}
		})
	}
}

// Aliases that unfold to 100 million values cost nothing: none is unfolded.
func TestAliasBombIsCheap(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 10) + "]\n"
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Parse([]byte(bomb), kib64)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrAlias) {
		t.Fatalf("got error %v", err)
	}
	if mem := after.TotalAlloc - before.TotalAlloc; mem > 4<<20 {
		t.Errorf("refused with %d bytes", mem)
	}
}

func TestParseValues(t *testing.T) {
	const in = "\uFEFFa: 1.0\nb: 2024-01-01\nc: yes\nd: ~\ne:\nf: !!str 3\ng: '4'\nh: |\n  x\n  y\ni: >\n  x\n  y\nj: [1, {k: true}]\n5: 9007199254740993\n\"<\": 1e400\n"
	const want = `{"a":1.0,"b":"2024-01-01","c":"yes","d":null,"e":null,"f":"3","g":"4","h":"x\ny\n","i":"x y\n","j":[1,{"k":true}],"5":9007199254740993,"\u003c":1e400}`
	n, err := Parse([]byte(in), kib64)
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.JSON()
	if err != nil || string(got) != want {
		t.Fatalf("got %s, error %v; want %s", got, err, want)
	}
	crlf, err := Parse([]byte(strings.ReplaceAll(in, "\n", "\r\n")), kib64)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := crlf.JSON(); err != nil || string(got) != want {
		t.Fatalf("with CR LF: got %s, error %v", got, err)
	}
	if v := n.Member("j").Items[1].Member("k"); v.Kind != Bool || v.Line != 14 {
		t.Errorf("got %v in line %d", v.Kind, v.Line)
	}
	if n.Member("no") != nil {
		t.Error("a key that is not there")
	}
	for _, empty := range []string{"", "# only a remark\n", "---\n"} {
		if n, err := Parse([]byte(empty), kib64); err != nil || n.Kind != Null {
			t.Errorf("%q: got %+v, error %v", empty, n, err)
		}
	}
}

// Numbers are handed on as written or not at all.
func TestJSONComputesNothing(t *testing.T) {
	for _, in := range []string{"0x1f", "0o17", "017", "1_000", ".5", "+1", ".inf", "-.inf", ".nan", "1."} {
		n, err := Parse([]byte("- x\n- "+in+"\n"), kib64)
		if err != nil {
			t.Fatal(err)
		}
		b, err := n.JSON()
		if e, ok := errors.AsType[*Error](err); !ok || e.Line != 2 || !errors.Is(err, ErrValue) {
			t.Errorf("%s: got %s, error %v", in, b, err)
		}
	}
}

func TestDecode(t *testing.T) {
	type inner struct {
		Port int `yaml:"port"`
	}
	type settings struct {
		Name   string           `yaml:"name"`
		Listen map[string]inner `yaml:"listen"`
		Roots  []string         `yaml:"roots"`
	}
	tests := []struct {
		name, in string
		err      error
		line     int
		text     string
	}{
		{"good", "name: a\nlisten:\n  x: {port: 3}\nroots: [a, b]\n", nil, 0, ""},
		{"nothing", "# a remark\n", nil, 0, ""},
		{"unknown key", "name: a\nnmae: b\n", ErrUnknown, 2, "unknown key nmae"},
		{"unknown key below", "listen:\n  x:\n    prot: 3\n", ErrUnknown, 3, "unknown key prot"},
		{"other case", "Name: a\n", ErrUnknown, 1, "unknown key Name"},
		{"wrong type", "listen:\n  x: {port: many}\n", ErrValue, 2, "want int"},
		{"a text for a list", "roots: a\n", ErrValue, 1, "want []string"},
		{"a list", "- a\n", ErrValue, 1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s settings
			err := Decode([]byte(tt.in), kib64, &s)
			if tt.err == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, tt.err) || e.Line != tt.line || !strings.Contains(err.Error(), tt.text) {
				t.Fatalf("got error %v, want line %d, %v with %q", err, tt.line, tt.err, tt.text)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: 1\nb: [x, {y: z}]\n", "a: &x [*x]\n", "? a\n: b\n", "|\n x\n", "a: !!str 3\n<<: b", "%TAG ! x\n--- a\n", "\"\\ud800\"", "- - - x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := Parse(b, kib64)
		var into any
		derr := Decode(b, kib64, &into)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok || derr == nil {
				t.Fatalf("Parse: %v; Decode: %v", err, derr)
			}
			return
		}
		if j, err := n.JSON(); err == nil && !json.Valid(j) {
			t.Fatalf("%q became %q", b, j)
		}
	})
}
