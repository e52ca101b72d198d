package tracon_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/schema"
	"github.com/tracon-go/tracon/skill"
	"github.com/tracon-go/tracon/store/memstore"
)

// keyword is one row: a schema, and values that fit and do not. Values stand
// below {"v": …}, since a script that reads standard input takes an object.
type keyword struct {
	keywords string // that the row shows, separated by blanks
	schema   string // of v
	good     string // values, one a line
	bad      string
}

// Every keyword of JSON Schema 2020-12 that asserts or applies, and those that
// only speak of others.
var keywords = []keyword{
	{"true", `true`, "1\nnull\n{}", ""},
	{"false", `false`, "", "1\nnull"},
	{"type", `{"type":"integer"}`, "1\n-3\n1.0\n9007199254740993", "1.5\n\"1\"\nnull"},
	{"type", `{"type":["string","null"]}`, "\"a\"\nnull", "1\n[]"},
	{"enum", `{"enum":["a",1,null,[1,{"b":2}]]}`, "\"a\"\n1\n1.0\nnull\n[1,{\"b\":2}]", "\"b\"\n2\n[1,{\"b\":3}]"},
	{"const", `{"const":{"a":[1]}}`, `{"a":[1]}`, "{\"a\":[2]}\n1"},
	{"multipleOf", `{"multipleOf":0.01}`, "1.23\n0", "1.234"},
	{"maximum", `{"maximum":3}`, "3\n\"x\"", "3.0001"},
	{"exclusiveMaximum", `{"exclusiveMaximum":3}`, "2.9", "3\n1e400"},
	{"minimum", `{"minimum":9007199254740993}`, "9007199254740993", "9007199254740992"},
	{"exclusiveMinimum", `{"exclusiveMinimum":0}`, "0.1", "0\n-1"},
	{"maxLength", `{"maxLength":2}`, "\"ab\"\n\"😀😀\"\n5", "\"abc\""},
	{"minLength", `{"minLength":2}`, "\"ab\"", "\"a\"\n\"😀\""},
	{"pattern", `{"pattern":"^[a-z]+$"}`, "\"abc\"\n5", "\"aB\"\n\"\""},
	{"maxItems", `{"maxItems":1}`, "[1]\n{}", "[1,2]"},
	{"minItems", `{"minItems":1}`, "[1]", "[]"},
	{"uniqueItems", `{"uniqueItems":true}`, "[1,2,\"1\"]", "[1,1]\n[1,1.0]\n[{\"a\":1},{\"a\":1}]"},
	{"maxContains minContains contains", `{"contains":{"const":1},"minContains":2,"maxContains":3}`, "[1,1]\n[1,1,1,2]", "[1]\n[1,1,1,1]\n[]"},
	{"contains", `{"contains":{"type":"string"}}`, "[1,\"a\"]", "[1]\n[]"},
	{"maxProperties", `{"maxProperties":1}`, "{}\n{\"a\":1}", "{\"a\":1,\"b\":2}"},
	{"minProperties", `{"minProperties":1}`, "{\"a\":1}", "{}"},
	{"required", `{"required":["a"]}`, "{\"a\":null}\n1", "{}\n{\"A\":1}"},
	{"dependentRequired", `{"dependentRequired":{"a":["b"]}}`, "{}\n{\"b\":1}\n{\"a\":1,\"b\":2}", "{\"a\":1}"},
	{"properties", `{"properties":{"a":{"type":"string"}}}`, "{}\n{\"a\":\"x\",\"b\":1}", "{\"a\":1}"},
	{"patternProperties", `{"patternProperties":{"^s_":{"type":"string"}}}`, "{\"s_a\":\"x\",\"t\":1}", "{\"s_a\":1}"},
	{"additionalProperties", `{"properties":{"a":true},"patternProperties":{"^b":true},"additionalProperties":false}`, "{\"a\":1,\"bb\":2}", "{\"c\":1}"},
	{"propertyNames", `{"propertyNames":{"maxLength":2}}`, "{\"ab\":1}", "{\"abc\":1}"},
	{"prefixItems items", `{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, "[]\n[\"a\"]\n[\"a\",1,2]", "[1]\n[\"a\",\"b\"]"},
	{"items", `{"prefixItems":[true],"items":false}`, "[1]", "[1,2]"},
	{"allOf", `{"allOf":[{"minimum":1},{"maximum":3}]}`, "2", "0\n4"},
	{"anyOf", `{"anyOf":[{"type":"string"},{"minimum":3}]}`, "\"a\"\n3", "2"},
	{"oneOf", `{"oneOf":[{"multipleOf":2},{"multipleOf":3}]}`, "2\n3", "6\n5"},
	{"not", `{"not":{"type":"string"}}`, "1", "\"a\""},
	{"if then else", `{"if":{"type":"string"},"then":{"minLength":2},"else":{"minimum":2}}`, "\"ab\"\n2", "\"a\"\n1"},
	{"dependentSchemas", `{"dependentSchemas":{"a":{"required":["b"]}}}`, "{\"b\":1}\n{\"a\":1,\"b\":1}", "{\"a\":1}"},
	{"unevaluatedItems", `{"prefixItems":[true],"anyOf":[{"prefixItems":[true,{"const":2}]},true],"unevaluatedItems":false}`, "[1]\n[1,2]", "[1,3]\n[1,2,3]"},
	{"unevaluatedProperties", `{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, "{\"a\":1}\n{}", "{\"b\":1}"},
	{"$ref $defs", `{"$ref":"#/properties/v/$defs/n","$defs":{"n":{"type":"number"}}}`, "1", "\"a\""},
	{"$anchor", `{"$ref":"#n","$defs":{"n":{"$anchor":"n","type":"number"}}}`, "1", "\"a\""},
	{"$id", `{"$id":"https://tracon.example/v","$ref":"n","$defs":{"n":{"$id":"n","type":"number"}}}`, "1", "\"a\""},
	{"$dynamicRef $dynamicAnchor", `{"$id":"https://tracon.example/tree","$dynamicAnchor":"node","type":"object","properties":{"children":{"items":{"$dynamicRef":"#node"}}},"additionalProperties":false}`,
		"{}\n{\"children\":[{\"children\":[]}]}", "{\"children\":[{\"x\":1}]}\n{\"children\":[1]}"},
	{"format", `{"format":"date"}`, "\"2026-11-29\"\n5", "\"2026-13-01\""},
	{"contentEncoding contentMediaType contentSchema", `{"contentEncoding":"base64","contentMediaType":"application/json","contentSchema":{"type":"object"}}`, "\"e30=\"\n\"not base64\"", ""},
	{"title description default examples deprecated readOnly writeOnly $comment",
		`{"title":"t","description":"d","default":1,"examples":[1],"deprecated":true,"readOnly":true,"writeOnly":false,"$comment":"c"}`, "1\n\"a\"", ""},
	{"$schema", `{"$comment":"the dialect stands at the root, see below"}`, "1", ""},
	{"$vocabulary", `true`, "1", ""}, // of meta-schemas alone
}

// all are the keywords of the seven vocabularies of the 2020-12 dialect.
var all = strings.Fields(`$schema $id $ref $anchor $dynamicRef $dynamicAnchor $vocabulary $comment $defs
	prefixItems items contains additionalProperties properties patternProperties dependentSchemas propertyNames if then else allOf anyOf oneOf not
	unevaluatedItems unevaluatedProperties
	type const enum multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern maxItems minItems uniqueItems
	maxContains minContains maxProperties minProperties required dependentRequired
	title description default deprecated readOnly writeOnly examples
	format contentEncoding contentMediaType contentSchema`)

// one is a gate.Contents of the skill "s" with a stored script.
type one struct{ b bundle.Bundle }

func (one) Find(context.Context, string, string, string) (gate.Origin, error) {
	return gate.StoredScript, nil
}

func (o one) Read(context.Context, string, string, bundle.Limits) (bundle.Bundle, error) {
	return o.b, nil
}

// B6: every keyword of JSON Schema 2020-12, with values that fit and values that
// do not, through the gates with the real readers.
func TestKeywords(t *testing.T) {
	shown := map[string]bool{}
	for _, k := range keywords {
		for _, name := range strings.Fields(k.keywords) {
			shown[name] = true
		}
		t.Run(k.keywords, func(t *testing.T) {
			admit := scriptWith(t, `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["v"],"properties":{"v":`+k.schema+`}}`)
			for v := range strings.SplitSeq(k.good, "\n") {
				if v == "" {
					continue
				}
				if req, err := admit(v); err != nil || string(req.Arguments()) != `{"v":`+v+`}` {
					t.Errorf("%s: %v; want it admitted as it was written", v, err)
				}
			}
			for v := range strings.SplitSeq(k.bad, "\n") {
				if v == "" {
					continue
				}
				_, err := admit(v)
				if d, ok := errors.AsType[*gate.Denial](err); !ok || d.Gate != gate.ArgumentsGate {
					t.Errorf("%s: %v; want a refusal by the gate arguments", v, err)
				} else if !strings.Contains(d.ModelText(), "/v") {
					t.Errorf("%s: the model is not told where: %q", v, d.ModelText())
				}
			}
		})
	}
	for _, name := range all {
		if !shown[name] {
			t.Errorf("no row shows the keyword %s", name)
		}
	}
	for name := range shown {
		if name != "true" && name != "false" && !slices.Contains(all, name) {
			t.Errorf("%s is no keyword", name)
		}
	}
}

// scriptWith returns what takes a value through the gates to a script with the schema.
func scriptWith(t *testing.T, text string) func(value string) (gate.Request, error) {
	t.Helper()
	b, err := skill.Stored("a.py", []byte("print(1)\n"), gate.Declaration{Mode: gate.Stdin, Schema: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	st := memstore.New()
	log := audit.NewLog(st)
	g := gate.New(gate.Config{
		Hosts:    gate.Static{Enabled: true, Interpreters: map[string]gate.Interpreter{"py": {Name: "python-3.12"}}},
		Policies: st, Contents: one{b}, Declarer: new(skill.Declarations), Schemas: schema.New(schema.Options{}), Grants: st, Log: log,
	})
	commit := func(kind audit.Kind, change func(context.Context, audit.Pending) error) {
		t.Helper()
		if _, err := log.Commit(t.Context(), audit.Entry{Tenant: "t", Kind: kind}, change); err != nil {
			t.Fatal(err)
		}
	}
	commit(audit.Policy, func(ctx context.Context, p audit.Pending) error {
		return st.SetPolicy(ctx, "t", gate.Policy{Enabled: true, Interpreters: []string{"py"}}, 0, p)
	})
	commit(audit.Granted, func(ctx context.Context, p audit.Pending) error {
		return st.AddGrant(ctx, grant.Grant{ID: id.New(), Ref: grant.Ref{Tenant: "t", Skill: "s", Script: "a.py"}, Pin: b.Digest(),
			GrantedBy: "op", Granted: time.Now(), MinTier: grant.Process}, b, "", p)
	})
	return func(value string) (gate.Request, error) {
		return g.Admit(t.Context(), gate.Call{Tenant: "t", Skill: "s", Script: "a.py", Arguments: json.RawMessage(`{"v":` + value + `}`)},
			gate.Standing{Executor: "none", Tier: grant.Process})
	}
}
