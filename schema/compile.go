package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tracon-go/tracon/internal/strictjson"
)

// A program is a compiled schema with the plan of what it costs.
type program struct {
	schema *jsonschema.Schema
	root   *node
}

// compile bounds, compiles and weighs a schema. It never panics: what makes the
// library panic is a bad schema.
func (c *Checker) compile(text []byte) (p *program, err error) {
	defer func() {
		if v := recover(); v != nil {
			p, err = nil, &SchemaError{Text: "it cannot be compiled", Remedy: "make it simpler"}
		}
	}()
	if len(text) > c.o.SchemaBytes {
		return nil, &SchemaError{Text: fmt.Sprintf("it has %d bytes, at most %d", len(text), c.o.SchemaBytes), Remedy: "make it smaller"}
	}
	_, doc, err := strictjson.Decode(text, strictjson.Limits{NumberBytes: 64})
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return nil, &SchemaError{e.Pointer, (&strictjson.Error{Offset: e.Offset, Text: e.Text}).Error(), "write strict JSON"}
	}
	s := newScan(c.o)
	if err := s.document(doc); err != nil {
		return nil, err
	}
	lib := jsonschema.NewCompiler()
	lib.DefaultDraft(jsonschema.Draft2020)
	lib.UseLoader(noLoader{})
	lib.UseRegexpEngine(c.o.compilePattern)
	if !c.o.FormatsAsNotes {
		lib.AssertFormat()
	}
	if err := lib.AddResource(baseURL, doc); err != nil {
		return nil, &SchemaError{Text: "it cannot be read"}
	}
	compiled, err := lib.Compile(baseURL)
	if err != nil {
		return nil, compileError(err)
	}
	var dynamic []*jsonschema.Schema
	for _, at := range s.dynamic {
		d, err := lib.Compile(baseURL + "#" + encodeFragment(at))
		if err != nil {
			return nil, compileError(err)
		}
		dynamic = append(dynamic, d)
	}
	root, err := weigh(compiled, dynamic)
	if err != nil {
		return nil, err
	}
	return &program{compiled, root}, nil
}

// encodeFragment escapes what would end a fragment or be unescaped in it.
func encodeFragment(pointer string) string { return strings.ReplaceAll(pointer, "%", "%25") }

// noLoader fetches nothing. The scan has refused every reference outwards
// before; this stands behind it.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("nothing is fetched") }

// compileError says which part of the schema is wrong, in our words: the
// library's hold URLs of its own.
func compileError(err error) error {
	bad, ok := errors.AsType[*jsonschema.SchemaValidationError](err)
	if !ok {
		return &SchemaError{Text: "it cannot be compiled", Remedy: "check it against JSON Schema 2020-12"}
	}
	e := &SchemaError{Remedy: "see JSON Schema 2020-12"}
	_, e.Pointer, _ = strings.Cut(bad.URL, "#")
	e.Text = "it is not valid"
	if v, ok := errors.AsType[*jsonschema.ValidationError](bad.Err); ok {
		if all := causes(v); len(all) > 0 {
			e.Pointer += all[0].at
			e.Text = all[0].text
		}
	}
	return e
}
