package gatecase

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tracon-go/tracon/gate"
)

// Strict is a gate.Schemas that knows a small part of JSON Schema and decodes
// strictly (case 16). It is here so that gate is tested without a library.
type Strict struct{}

var _ gate.Schemas = Strict{}

// Check implements [gate.Schemas].
func (Strict) Check(ctx context.Context, schema, value []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	v, err := decode(value)
	if err != nil {
		return nil, err
	}
	if len(schema) > 0 {
		s, err := decode(schema)
		if err != nil {
			return nil, fmt.Errorf("the schema: %w", err)
		}
		if err := valid(s, v, "the value"); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	err = json.Compact(&out, value)
	return out.Bytes(), err
}

const maxDepth = 64

// decode reads one JSON value: exact names, none twice, valid UTF-8, whole
// surrogates, numbers as they were written.
func decode(text []byte) (any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	if err := surrogates(string(text)); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, err := next(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is more than one value")
	}
	return v, nil
}

func next(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	token, err := dec.Token()
	if err != nil {
		return nil, errors.New("it is not JSON")
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := next(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	case json.Delim('{'):
		object := map[string]any{}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return nil, errors.New("it is not JSON")
			}
			if _, ok := object[name.(string)]; ok {
				return nil, fmt.Errorf("the name %q stands twice", name)
			}
			if object[name.(string)], err = next(dec, depth+1); err != nil {
				return nil, err
			}
		}
		_, err := dec.Token()
		return object, err
	}
	return token, nil
}

// surrogates refuses a \u escape that is half a character.
func surrogates(s string) error {
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+6 > len(s) {
			return nil
		}
		if s[i+1] != 'u' {
			s = s[i+2:]
			continue
		}
		n, err := strconv.ParseUint(s[i+2:i+6], 16, 16)
		s = s[i+6:]
		if err != nil || !utf16.IsSurrogate(rune(n)) {
			continue
		}
		if len(s) >= 6 && s[:2] == `\u` {
			low, err := strconv.ParseUint(s[2:6], 16, 16)
			if err == nil && utf16.DecodeRune(rune(n), rune(low)) != utf8.RuneError {
				s = s[6:]
				continue
			}
		}
		return errors.New("it holds half a surrogate pair")
	}
}

func valid(schema, v any, where string) error {
	s, ok := schema.(map[string]any)
	if !ok {
		return errors.New("the schema is no object")
	}
	for keyword, want := range s {
		switch keyword {
		case "type":
			if !is(want.(string), v) {
				return fmt.Errorf("%s must be of type %s", where, want)
			}
		case "enum":
			if !slices.Contains(want.([]any), v) {
				return fmt.Errorf("%s is not one of %v", where, want)
			}
		case "items":
			list, _ := v.([]any)
			for i, item := range list {
				if err := valid(want, item, fmt.Sprintf("item %d of %s", i+1, where)); err != nil {
					return err
				}
			}
		case "required":
			object, ok := v.(map[string]any)
			for _, name := range want.([]any) {
				if _, has := object[name.(string)]; ok && !has {
					return fmt.Errorf("%s lacks %q", where, name)
				}
			}
		case "properties":
			object, _ := v.(map[string]any)
			for name, sub := range want.(map[string]any) {
				if p, ok := object[name]; ok {
					if err := valid(sub, p, fmt.Sprintf("property %q", name)); err != nil {
						return err
					}
				}
			}
		case "additionalProperties":
			object, _ := v.(map[string]any)
			known, _ := s["properties"].(map[string]any)
			for name := range object {
				if _, ok := known[name]; !ok {
					return fmt.Errorf("property %q is not known", name)
				}
			}
		default:
			return fmt.Errorf("the schema's keyword %q is not known", keyword)
		}
	}
	return nil
}

// is reports whether v is of the JSON Schema type name; an integer is any number
// without a fraction, however it is written.
func is(name string, v any) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	case json.Number:
		if name == "number" {
			return true
		}
		if _, exp, _ := strings.Cut(strings.ToLower(v.String()), "e"); len(exp) > 4 {
			return false // would make a number that fills the memory
		}
		r, ok := new(big.Rat).SetString(v.String())
		return name == "integer" && ok && r.IsInt()
	}
	return false
}
