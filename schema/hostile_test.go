package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// doubling is a chain of definitions, each of which refers to the next one twice.
func doubling(n int, keyword string) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"%s":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, keyword, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"type":"number"}}}`, n)
	return b.String()
}

func nest(open, inner, end string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
}

func many(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(format, "%d", fmt.Sprint(i))
	}
	return strings.Join(parts, ",")
}

// hostileSchemas are refused before a value is looked at.
func hostileSchemas() map[string]string {
	return map[string]string{
		"doubling chain, allOf":    doubling(25, "allOf"),
		"doubling chain, anyOf":    doubling(40, "anyOf"),
		"doubling chain, oneOf":    doubling(100, "oneOf"),
		"chain of conditions":      nest(`{"if":true,"then":`, `true`, `}`, 70),
		"long chain of references": `{"$ref":"#/$defs/0","$defs":{` + many(400, `"%d":{"$ref":"#/$defs/`) + `}}`,
		"deep":                     nest(`{"items":`, `true`, `}`, 10_000),
		"very deep":                nest(`{"allOf":[`, `true`, `]}`, 5_000),
		"large":                    `{"enum":[` + many(20_000, `"v%d"`) + `]}`,
		"too many schemas":         `{"properties":{` + many(1001, `"p%d":{}`) + `}}`,
		"too many patterns":        `{"patternProperties":{` + many(101, `"^p%d$":{}`) + `}}`,
		"long pattern":             `{"pattern":"` + strings.Repeat("a", 1025) + `"}`,
		"repeated pattern":         `{"pattern":"` + strings.Repeat("[a-z]{1000}", 90) + `"}`,
		"nested repeats":           `{"pattern":"((a{30}){30}){30}"}`,
		"wide repeats":             `{"pattern":"(` + strings.Repeat("ab", 400) + `){900}"}`,
		"unclosed groups":          `{"pattern":"` + strings.Repeat("(", 1000) + `"}`,
		"huge exponent":            `{"maximum":1e1000000000}`,
		"huge negative exponent":   `{"multipleOf":1e-1000000000}`,
		"long number":              `{"const":` + strings.Repeat("9", 60_000) + `}`,
		"many numbers":             `{"enum":[` + strings.Repeat("1e1000000,", 5000) + `1]}`,
		"web":                      `{"$ref":"http://169.254.169.254/latest/meta-data"}`,
		"file":                     `{"$ref":"file:///proc/self/environ"}`,
		"ring":                     `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`,
		"ring by anchor":           `{"$anchor":"a","anyOf":[{"$ref":"#a"}]}`,
		"ring by condition":        `{"if":{"$ref":"#"}}`,
		"ring by dependent":        `{"dependentSchemas":{"a":{"$ref":"#"}}}`,
		"many resources":           `{"$defs":{` + many(900, `"%d":{"$id":"r%d"}`) + `}}`,
		"references to values":     `{"x":` + nest(`{"x":`, `{}`, `}`, 60) + `,"allOf":[` + many(900, `{"$ref":"#/x/x/x"}`) + `]}`,
		"many errors":              `{"properties":{` + many(900, `"%d":{"type":3}`) + `}}`,
		"long id":                  `{"$id":"` + strings.Repeat("a/", 20_000) + `","$ref":"x"}`,
	}
}

// B6, G14: each hostile schema is refused within 50 ms and little memory.
func TestHostileSchemas(t *testing.T) {
	for name, schema := range hostileSchemas() {
		t.Run(name, func(t *testing.T) {
			if err := New(Options{}).Compile([]byte(schema)); !errors.Is(err, ErrSchema) {
				t.Errorf("got error %v, want it refused", err)
			}
		})
	}
}

// BenchmarkHostileSchemas is to be read for its slowest row: under 50 ms, and
// little memory.
func BenchmarkHostileSchemas(b *testing.B) {
	for name, schema := range hostileSchemas() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = New(Options{}).Compile([]byte(schema))
			}
		})
	}
}

// hostileValues are schemas that may stand, with values that would make them work
// long.
func hostileValues() map[string][2]string {
	return map[string][2]string{
		"doubling at each level": {
			`{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"a":{"allOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}}}}}`,
			nest(`{"a":`, `1`, `}`, 60)},
		"doubling at each level, not": {
			`{"$ref":"#/$defs/n","$defs":{"n":{"not":{"properties":{"a":{"anyOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}},"required":["x"]}}}}`,
			nest(`{"a":`, `1`, `}`, 60)},
		"doubling by two patterns": {
			`{"patternProperties":{"a":{"$ref":"#"},"^a":{"$ref":"#"},"a$":{"$ref":"#"}}}`,
			nest(`{"a":`, `1`, `}`, 60)},
		"doubling by items and contains": {
			`{"items":{"$ref":"#"},"contains":{"$ref":"#"},"unevaluatedItems":{"$ref":"#"}}`,
			nest(`[`, ``, `]`, 60)},
		"doubling by dynamic anchors": {
			`{"$dynamicAnchor":"n","properties":{"a":{"allOf":[{"$dynamicRef":"#n"},{"$dynamicRef":"#n"}]}}}`,
			nest(`{"a":`, `1`, `}`, 60)},
		"nested unevaluated": {
			nest(`{"unevaluatedProperties":{"type":"object"},"allOf":[`, `true`, `]}`, 30),
			`{` + many(6000, `"p%d":{}`) + `}`},
		"many forms": {
			`{"items":{"oneOf":[` + many(400, `{"properties":{"a":{"const":%d}}}`) + `]}}`,
			`[` + strings.Repeat(`{"a":1000},`, 5000) + `{}]`},
		"large pattern and text": {
			`{"items":{"pattern":"(a|b|ab)*[a-z]{900}c$"}}`,
			`["` + strings.Repeat("ab", 30_000) + `"]`},
		"large enum": {
			`{"items":{"enum":[` + many(5000, `%d.5`) + `]}}`,
			`[` + strings.Repeat("1e999,", 9000) + `1]`},
	}
}

// colliding makes n distinct lists that the library's hash takes for one: it
// writes a mark before each text and no length.
func colliding(n int) string {
	const parts = 13
	list := make([]string, n)
	for i := range list {
		item := "[\"x"
		for bit := range parts {
			if i>>bit&1 == 1 {
				item += `","x`
			} else {
				item += `\u0004x`
			}
		}
		list[i] = item + `"]`
	}
	return strings.Join(list, ",")
}

// B6: a schema that may stand cannot be made to work long by a value.
func TestHostileValues(t *testing.T) {
	for name, tt := range hostileValues() {
		t.Run(name, func(t *testing.T) {
			c := New(Options{})
			if err := c.Compile([]byte(tt[0])); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Check(t.Context(), []byte(tt[0]), []byte(tt[1])); !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), "too long") {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// expensive are the most expensive checks that are let through.
func expensive() map[string][2]string {
	return map[string][2]string{
		"levels":   {`{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"a":{"allOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}}}}}`, nest(`{"a":`, `1`, `}`, 12)},
		"failing":  {`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}}}}}`, nest(`{"a":`, `1`, `}`, 12)},
		"numbers":  {`{"items":{"type":"integer","multipleOf":1e-999}}`, `[` + strings.Repeat("1e999,", 9000) + `1]`},
		"errors":   {`{"items":{"type":"string"}}`, `[` + strings.Repeat("1,", 32_000) + `1]`},
		"patterns": {`{"items":{"pattern":"(a|b|ab)*[a-z]{300}c$"}}`, `["` + strings.Repeat("ab", 3_000) + `"]`},
		"unique":   {`{"uniqueItems":true}`, `[` + colliding(4000) + `]`},
		"enum":     {`{"items":{"enum":[` + many(5000, `%d.5`) + `]}}`, `[` + strings.Repeat("1,", 18) + `1]`},
		"format":   {`{"items":{"format":"regex"}}`, `[` + strings.Repeat(`"([a-z]{9}){100}",`, 3000) + `"a"]`},
	}
}

// What is let through is checked to its end: the budget refuses none of it.
func TestBudgetLetsThrough(t *testing.T) {
	for name, tt := range expensive() {
		t.Run(name, func(t *testing.T) {
			if _, err := New(Options{}).Check(t.Context(), []byte(tt[0]), []byte(tt[1])); errors.Is(err, ErrSchema) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// BenchmarkBudget says what the budget admits at the most, and BenchmarkHostileValues
// what a refusal by it costs.
func BenchmarkBudget(b *testing.B) { benchmarkChecks(b, expensive()) }

func BenchmarkHostileValues(b *testing.B) { benchmarkChecks(b, hostileValues()) }

func benchmarkChecks(b *testing.B, pairs map[string][2]string) {
	for name, tt := range pairs {
		b.Run(name, func(b *testing.B) {
			c := New(Options{})
			b.ReportAllocs()
			for b.Loop() {
				_, _ = c.Check(b.Context(), []byte(tt[0]), []byte(tt[1]))
			}
		})
	}
}

func large() string {
	return `{"type":"object","$defs":{` + many(45, `"d%d":{"type":"object","properties":{"a":{"type":"string","pattern":"^[a-z]{1,40}$"},"b":{"enum":["x","y",1.5]},"c":{"items":{"$ref":"#/$defs/d%d"}}},"required":["a"],"additionalProperties":false}`) +
		`},"properties":{` + many(700, `"p%d":{"type":["string","null"],"maxLength":100,"description":"a property"}`) + `}}`
}

func BenchmarkCompile(b *testing.B) {
	schemas := hostileSchemas()
	schemas["small"] = `{"type":"object","properties":{"value":{"type":"number"},"unit":{"enum":["km","mi"]}},"required":["value"],"additionalProperties":false}`
	schemas["large"] = large()
	for name, schema := range schemas {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = New(Options{}).Compile([]byte(schema))
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	tests := hostileValues()
	tests["small"] = [2]string{`{"type":"object","properties":{"value":{"type":"number"},"unit":{"enum":["km","mi"]}},"required":["value"],"additionalProperties":false}`, `{"value":26.2,"unit":"mi"}`}
	tests["no schema"] = [2]string{``, `{"value":26.2,"unit":"mi"}`}
	for name, tt := range tests {
		b.Run(name, func(b *testing.B) {
			c := New(Options{})
			b.ReportAllocs()
			for b.Loop() {
				_, _ = c.Check(b.Context(), []byte(tt[0]), []byte(tt[1]))
			}
		})
	}
}

// A schema and a value from anywhere neither panic nor take long.
func FuzzCheck(f *testing.F) {
	for _, s := range hostileValues() {
		if len(s[0])+len(s[1]) < 2000 {
			f.Add([]byte(s[0]), []byte(s[1]))
		}
	}
	f.Add([]byte(`{"$id":"https://a.b/c","$ref":"d#e","$defs":{"x":{"$id":"d","$anchor":"e","type":["integer","null"]}}}`), []byte(`1e400`))
	f.Add([]byte(`{"if":{"required":["a"]},"then":{"dependentRequired":{"a":["b"]}},"unevaluatedProperties":{"multipleOf":0.01}}`), []byte(`{"a":1.005}`))
	c := New(Options{Cached: 8})
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		got, err := c.Check(t.Context(), schema, value)
		switch {
		case err == nil && len(got) == 0:
			t.Fatal("neither a value nor an error")
		case err != nil && (got != nil || len(err.Error()) > 1000 || strings.Contains(err.Error(), "schema.invalid")):
			t.Fatalf("got %q, error %q", got, err)
		}
	})
}
