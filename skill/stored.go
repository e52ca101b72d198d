package skill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// Stored returns the bundle of a single script that is kept in a store: the one
// file name with content, and under the pin a declaration that is made of d, in
// the form of tracon.yaml. One script and one declaration give one digest.
// [Declarations] reads d back: with the schema in its shortest form, with mode
// stdin where d has none, and for flags without a schema with one that takes the
// named flags alone.
//
// # Errors
//
// One that wraps bundle.ErrPath when name is not a plain file name or is that of
// a file with a meaning of its own; bundle.ErrContent when tracon.yaml could not
// say what d says; bundle.ErrLimit when the content is too large.
func Stored(name string, content []byte, d gate.Declaration) (bundle.Bundle, error) {
	if err := checkStoredName(name); err != nil {
		return bundle.Bundle{}, err
	}
	if d.Mode == "" {
		d.Mode = gate.Stdin
	}
	if d.Mode == gate.Flags && len(bytes.TrimSpace(d.Schema)) == 0 {
		d.Schema = closedSchema(d.Flags) // what reading would take it for
	}
	text, schema, err := synthesise(name, d)
	if err != nil {
		return bundle.Bundle{}, fmt.Errorf("%w: the declaration of %s: %w", bundle.ErrContent, short(name), err)
	}
	b, err := bundle.New([]bundle.File{{Path: name, Data: content}}, text, bundle.Limits{})
	if err != nil {
		return bundle.Bundle{}, err
	}
	// What the gates will read must be what was asked for; this also says all that
	// is wrong with it.
	decl, diags := readDeclaration(text)
	if errs := errorsOf(diags); len(errs) > 0 {
		return bundle.Bundle{}, &BrokenError{Diagnostics: errs}
	}
	d.Schema = schema
	if got := decl.scripts[name]; !same(got, d) {
		return bundle.Bundle{}, fmt.Errorf("%w: the declaration of %s holds what %s cannot say", bundle.ErrContent, short(name), DeclarationName)
	}
	return b, nil
}

// checkStoredName keeps to R14: a stored script's name is a plain file name.
func checkStoredName(name string) error {
	if err := bundle.CheckPath(name); err != nil {
		return err
	}
	if err := grant.CheckName("script", name); err != nil {
		return fmt.Errorf("%w: %w", bundle.ErrPath, err)
	}
	switch {
	case strings.Contains(name, "/"):
		return fmt.Errorf("%w: stored script %s is not a plain file name", bundle.ErrPath, short(name))
	case bundle.Ignored(name) || strings.EqualFold(name, markdown) || strings.EqualFold(name, DeclarationName):
		return fmt.Errorf("%w: no script can be called %s", bundle.ErrPath, short(name))
	}
	return nil
}

// same compares declarations; nothing and an empty list or map are the same.
func same(a, b gate.Declaration) bool {
	ok := bytes.Equal(a.Schema, b.Schema) && maps.Equal(a.Flags, b.Flags) && slices.Equal(a.Outputs, b.Outputs)
	a.Schema, a.Flags, a.Outputs = nil, nil, nil
	b.Schema, b.Flags, b.Outputs = nil, nil, nil
	return ok && reflect.DeepEqual(a, b)
}

// synthesise writes d as tracon.yaml has it, one key a line in the order of
// scriptKeys, and returns the schema as reading will give it.
func synthesise(name string, d gate.Declaration) (text, schema []byte, err error) {
	b := appendYAMLText([]byte("scripts:\n  "), name)
	b = append(b, ":\n"...)
	key := func(k string) { b = append(b, "    "+k+": "...) }
	if d.Description != "" {
		key("description")
		b = append(appendYAMLText(b, d.Description), '\n')
	}
	key("arguments")
	b = append(appendYAMLText(b, string(d.Mode)), '\n')
	if len(bytes.TrimSpace(d.Schema)) > 0 {
		// The checker refuses what is no strict JSON, so the reading below, which is
		// lenient, sees nothing that two readers take in two ways.
		if err := checker.Compile(d.Schema); err != nil {
			return nil, nil, err
		}
		key("schema")
		v := &schemaWriter{in: json.NewDecoder(bytes.NewReader(d.Schema)), yaml: b}
		v.in.UseNumber()
		if err := v.value(); err != nil {
			return nil, nil, err
		}
		b, schema = append(v.yaml, '\n'), v.json
	}
	if len(d.Flags) > 0 {
		b = append(b, "    flags:\n"...)
		for _, name := range slices.Sorted(maps.Keys(d.Flags)) {
			b = append(appendYAMLText(append(b, "      "...), name), ": {"...)
			f := d.Flags[name]
			if f.Flag != "" {
				b = appendYAMLText(append(b, "flag: "...), f.Flag)
			}
			if f.Flag != "" && f.Position != 0 {
				b = append(b, ", "...) // refused when it is read
			}
			if f.Position != 0 {
				b = strconv.AppendInt(append(b, "position: "...), int64(f.Position), 10)
			}
			b = append(b, "}\n"...)
		}
	}
	if d.Timeout != 0 {
		key("timeout")
		b = append(b, d.Timeout.String()+"\n"...)
	}
	if d.Module != "" {
		key("module")
		b = append(appendYAMLText(b, d.Module), '\n')
	}
	if len(d.Outputs) > 0 {
		b = append(b, "    outputs:\n"...)
		for _, pattern := range d.Outputs {
			if strings.HasPrefix(pattern, outputsFolder) {
				pattern = outputsFolder + pattern // reading takes the first one off
			}
			b = append(appendYAMLText(append(b, "      - "...), pattern), '\n')
		}
	}
	return b, schema, nil
}

// A schemaWriter writes a schema as flow YAML, which people can read, and as the
// JSON that reading makes of it.
type schemaWriter struct {
	in         *json.Decoder
	yaml, json []byte
}

func (w *schemaWriter) both(s string) {
	w.yaml, w.json = append(w.yaml, s...), append(w.json, s...)
}

func (w *schemaWriter) value() error {
	tok, err := w.in.Token()
	if err != nil {
		return err
	}
	switch tok := tok.(type) {
	case json.Delim:
		return w.container(tok == '{')
	case string:
		return w.text(tok)
	case json.Number:
		w.both(tok.String())
	case bool:
		w.both(strconv.FormatBool(tok))
	case nil:
		w.both("null")
	}
	return nil
}

func (w *schemaWriter) container(object bool) error {
	open, end := "[", "]"
	if object {
		open, end = "{", "}"
	}
	w.both(open)
	for first := true; w.in.More(); first = false {
		if !first {
			w.both(",")
			w.yaml = append(w.yaml, ' ')
		}
		if object {
			if err := w.value(); err != nil {
				return err
			}
			w.both(":")
			w.yaml = append(w.yaml, ' ')
		}
		if err := w.value(); err != nil {
			return err
		}
	}
	w.both(end)
	if _, err := w.in.Token(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func (w *schemaWriter) text(s string) error {
	q, err := json.Marshal(s)
	w.yaml, w.json = appendYAMLText(w.yaml, s), append(w.json, q...)
	return err
}

// appendYAMLText writes s in double quotes, with an escape for all that does not
// show itself: people read it, and YAML takes no control characters.
func appendYAMLText(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == ' ' || unicode.IsPrint(r) && r != '\uFEFF':
			b = append(b, string(r)...)
		case r > 0xFFFF:
			b = fmt.Appendf(b, `\U%08X`, r)
		default:
			b = fmt.Appendf(b, `\u%04X`, r)
		}
	}
	return append(b, '"')
}
