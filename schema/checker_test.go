package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/strictjson"
)

var _ gate.Schemas = (*Checker)(nil)

// R13, B6: a value is taken or refused as draft 2020-12 says, and a refusal
// names the place and what is wanted.
func TestCheck(t *testing.T) {
	tests := []struct {
		name, schema, value, want string // want: "" where it fits, else the whole error
	}{
		{"no schema", ``, ` {"b":1.0} `, ""},
		{"blank schema", " \n", `1`, ""},
		{"true", `true`, `[1]`, ""},
		{"false", `false`, `1`, "nothing is allowed here"},
		{"type", `{"properties":{"value":{"type":"number"}}}`, `{"value":"x"}`, "/value: got string, want number"},
		{"two types", `{"type":["number","null"]}`, `"x"`, "got string, want null or number"},
		{"integer takes 1.0 (case 17)", `{"type":"integer"}`, `1.0`, ""},
		{"integer takes 1e400 (case 17)", `{"type":"integer"}`, `1e400`, ""},
		{"integer refuses 1.5", `{"type":"integer"}`, `1.5`, "got number, want integer"},
		{"beyond double (case 17)", `{"maximum":9007199254740992}`, `9007199254740993`, "want at most 9007199254740992"},
		{"beyond double, const (case 17)", `{"const":9007199254740993}`, `9007199254740992`, "want 9007199254740993"},
		{"required", `{"required":["a","b/c"]}`, `{}`, "/a: missing; /b~1c: missing"},
		{"additional", `{"properties":{"a":{}},"additionalProperties":false}`, `{"env":1,"cwd":2}`, "/cwd: not known here; /env: not known here"},
		{"enum", `{"enum":["a",1,null]}`, `"x"`, `want one of "a", 1, null`},
		{"exclusive", `{"exclusiveMinimum":0.1}`, `0.1`, "want more than 0.1"},
		{"multiple", `{"multipleOf":0.1}`, `0.25`, "want a multiple of 0.1"},
		{"multiple of a tenth", `{"multipleOf":0.1}`, `0.3`, ""},
		{"length in characters", `{"maxLength":2}`, `"äöü"`, "got 3 characters, want at most 2"},
		{"pattern", `{"pattern":"^[a-z]+$"}`, `"A"`, "want text that matches ^[a-z]+$"},
		{"format is asserted", `{"format":"date"}`, `"2024-13-01"`, "want the format date"},
		{"unknown format", `{"format":"double"}`, `1`, ""},
		{"unique", `{"uniqueItems":true}`, `[1,2,1.0]`, "items 0 and 2 are equal"},
		{"unevaluated", `{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, `{"a":1,"b":2}`, "/b: nothing is allowed here"},
		{"any of types", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`, "got number, want null or string"},
		{"any of forms", `{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, "/a: missing"},
		{"closest form", `{"oneOf":[{"type":"string"},{"properties":{"a":{"type":"number"}},"required":["a"]}]}`, `{"a":"x"}`, "/a: got string, want number"},
		{"two forms", `{"oneOf":[true,{"type":"number"}]}`, `1`, "fits two of the forms (1 and 2), want exactly one"},
		{"not", `{"not":{"type":"string"}}`, `"x"`, "it has a form that is not allowed here"},
		{"contains", `{"contains":{"type":"string"}}`, `[1]`, "none of the items is of the form that one must have"},
		{"contains, zero", `{"contains":{"type":"string"},"minContains":0}`, `[1]`, ""},
		{"prefix", `{"prefixItems":[{"type":"string"}],"items":{"type":"number"}}`, `["a",1,"b"]`, "/2: got string, want number"},
		{"property names", `{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `the name "ab" is not allowed`},
		{"dependent", `{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `with "a" it needs "b"`},
		{"condition", `{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, "/b: missing"},
		{"recursion", `{"properties":{"next":{"$ref":"#"},"v":{"type":"number"}}}`, `{"next":{"next":{"v":"x"}}}`, "/next/next/v: got string, want number"},
		{"definition", `{"$ref":"#/$defs/a%25b~1","$defs":{"a%b/":{"type":"number"}}}`, `"x"`, "got string, want number"},
		{"anchor", `{"$ref":"#x","$defs":{"a":{"$anchor":"x","type":"number"}}}`, `"x"`, "got string, want number"},
		{"embedded resource", `{"$id":"https://example.com/a","$ref":"b#/$defs/n","$defs":{"x":{"$id":"b","$defs":{"n":{"type":"number"}}}}}`, `"x"`, "got string, want number"},
		{"dynamic", `{"$id":"https://example.com/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,"$defs":{"t":{"$id":"tree","$dynamicAnchor":"node","properties":{"kids":{"items":{"$dynamicRef":"#node"}}}}}}`,
			`{"kids":[{"kid":1}]}`, "/kids/0/kid: nothing is allowed here"},
		{"the list sent as a text (case 12)", `{"type":"array","items":{"type":"string"}}`, `"[\"--value\",\"3\"]"`, "got string, want array"},
		{"an object for a list (case 13)", `{"type":"array"}`, `{}`, "got object, want array"},
		{"strict JSON (case 16)", `true`, `{"a":1,"a":2}`, "/a: this name stands twice in its object"},
	}
	c := New(Options{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 3 { // the library goes through maps: the text must not depend on it
				got, err := c.Check(t.Context(), []byte(tt.schema), []byte(tt.value))
				if tt.want == "" {
					if err != nil || string(got) != strings.TrimSpace(tt.value) {
						t.Fatalf("got %s, error %v", got, err)
					}
					continue
				}
				if err == nil || err.Error() != tt.want || got != nil {
					t.Fatalf("got %s, error %v; want %s", got, err, tt.want)
				}
				if !errors.Is(err, ErrValue) && !errors.Is(err, strictjson.ErrJSON) {
					t.Fatalf("%v is of no family", err)
				}
			}
		})
	}
}

// An error repeats nothing long of the value, and stays short.
func TestErrorIsShort(t *testing.T) {
	c := New(Options{})
	secret := strings.Repeat("secret", 1000)
	for _, tt := range []struct{ schema, value string }{
		{`{"type":"number"}`, `"` + secret + `"`},
		{`{"pattern":"^x"}`, `"` + secret + `"`},
		{`{"enum":["` + secret + `","b"]}`, `"x` + secret + `"`},
		{`{"additionalProperties":false}`, `{"` + secret + `":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}`},
		{`{"items":{"type":"number"}}`, `[` + strings.Repeat(`"x",`, 5000) + `1]`},
		{`{"required":["` + strings.Repeat(`a","b`, 1) + secret + `"]}`, `{}`},
		{`{"additionalProperties":{"additionalProperties":{"type":"null"}}}`, `{"` + secret + `":{"` + secret + `":1}}`},
	} {
		_, err := c.Check(t.Context(), []byte(tt.schema), []byte(tt.value))
		if err == nil || len(err.Error()) > 500 || strings.Contains(err.Error(), "schema.invalid") || strings.Count(err.Error(), "secret") > 80 {
			t.Errorf("%.60s: error of %d bytes: %v", tt.schema, len(fmt.Sprint(err)), err)
		}
	}
}

// A bad schema is named with its place and what to do.
func TestCompile(t *testing.T) {
	tests := []struct{ name, schema, place, text string }{
		{"good", `{"type":"object"}`, "", ""},
		{"not JSON", `{"type":`, "", "write strict JSON"},
		{"a name twice", `{"properties":{"a":true,"a":false}}`, "/properties/a", "stands twice"},
		{"a text", `"object"`, "", "it is a text; a schema is an object, true or false"},
		{"no such type", `{"properties":{"a":{"type":"strnig"}}}`, "/properties/a/type", "want one of"},
		{"a number for a schema", `{"properties":{"a":3}}`, "/properties/a", "it is a number"},
		{"required is a text", `{"required":"a"}`, "/required", "got string, want array"},
		{"negative length", `{"minLength":-1}`, "/minLength", "write a number from 0"},
		{"a length that wraps", `{"maxLength":18446744073709551617}`, "/maxLength", "write a number from 0"},
		{"a length as power", `{"maxLength":1e2}`, "/maxLength", "in digits"},
		{"older draft", `{"$schema":"http://json-schema.org/draft-07/schema#"}`, "/$schema", "2020-12"},
		{"older draft below", `{"$defs":{"a":{"$schema":"http://json-schema.org/draft-04/schema"}}}`, "/$defs/a/$schema", "2020-12"},
		{"this draft", `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, "", ""},
		{"list of items", `{"items":[{"type":"string"}]}`, "/items", "prefixItems"},
		{"recursiveRef", `{"properties":{"a":{"$recursiveRef":"#"}}}`, "/properties/a/$recursiveRef", "$dynamicRef"},
		{"look-around", `{"pattern":"^(?=a)b"}`, "/pattern", "RE2"},
		{"pattern of names", `{"patternProperties":{"(":true}}`, "/patternProperties", "bad pattern"},
		{"reference to nowhere", `{"$ref":"#/$defs/a"}`, "/$ref", "there is no schema at #/$defs/a"},
		{"no such anchor", `{"$ref":"#a"}`, "/$ref", "there is no anchor a"},
		{"reference to a value", `{"$ref":"#/enum/0","enum":[{}]}`, "/$ref", "there is no schema"},
		{"web", `{"items":{"$ref":"https://example.com/a.json"}}`, "/items/$ref", "nothing is fetched"},
		{"file", `{"$ref":"file:///etc/passwd"}`, "/$ref", "leads out"},
		{"relative file", `{"$ref":"other.json#/a"}`, "/$ref", "leads out"},
		{"file by id", `{"$id":"file:///etc/","$ref":"passwd"}`, "/$ref", "leads out"},
		{"dynamic outwards", `{"$dynamicRef":"https://example.com/a#x"}`, "/$dynamicRef", "leads out"},
		{"the dialect's own", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, "/$ref", "leads out"},
		{"ring", `{"$ref":"#"}`, "", "round in a ring"},
		{"ring of two", `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}}`, "", "round in a ring"},
		{"id twice", `{"$defs":{"a":{"$id":"x"},"b":{"$id":"x"}}}`, "/$defs/b/$id", "same one"},
	}
	c := New(Options{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := c.Compile([]byte(tt.schema))
			if tt.text == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			e, ok := errors.AsType[*SchemaError](err)
			if !ok || !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), tt.text) || tt.place != "" && e.Pointer != tt.place {
				t.Fatalf("got error %v at %+v; want %q at %s", err, e, tt.text, tt.place)
			}
			if strings.Contains(err.Error(), "schema.invalid") {
				t.Errorf("the error shows a URL of ours: %v", err)
			}
			if _, err := c.Check(t.Context(), []byte(tt.schema), []byte(`{}`)); err == nil {
				t.Error("a bad schema takes a value")
			}
		})
	}
}

func TestFormatsAsNotes(t *testing.T) {
	if _, err := New(Options{FormatsAsNotes: true}).Check(t.Context(), []byte(`{"format":"date"}`), []byte(`"x"`)); err != nil {
		t.Error(err)
	}
}

func TestCancelled(t *testing.T) {
	why := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := New(Options{}).Check(ctx, []byte(`true`), []byte(`1`)); !errors.Is(err, why) {
		t.Errorf("got error %v, want the cause", err)
	}
}

// One schema is compiled once, however many ask; more schemas than are kept are
// checked all the same.
func TestCache(t *testing.T) {
	c := New(Options{Cached: 4})
	compiled := 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, _ = c.cache.get(t.Context(), []byte(`{"type":"string"}`), func(b []byte) (*program, error) {
				mu.Lock()
				defer mu.Unlock()
				compiled++
				return c.compile(b)
			})
		})
	}
	wg.Wait()
	if compiled != 1 {
		t.Errorf("compiled %d times", compiled)
	}
	for i := range 64 {
		wg.Go(func() {
			schema := fmt.Appendf(nil, `{"const":%d}`, i%9)
			if _, err := c.Check(t.Context(), schema, fmt.Append(nil, i%9)); err != nil {
				t.Error(err)
			}
			if _, err := c.Check(t.Context(), schema, []byte(`"x"`)); err == nil {
				t.Error("another value is taken")
			}
		})
	}
	wg.Wait()
	if n := c.cache.order.Len(); n > 4 || n != len(c.cache.byKey) {
		t.Errorf("%d schemas are kept, %d by key", n, len(c.cache.byKey))
	}
	big := New(Options{})
	for i := range 80 {
		_ = big.Compile(fmt.Appendf(nil, `{"const":%d,"$comment":"%s"}`, i, strings.Repeat("x", 60<<10)))
	}
	if big.cache.bytes > maxCachedBytes {
		t.Errorf("%d bytes of schemas are kept", big.cache.bytes)
	}
}
