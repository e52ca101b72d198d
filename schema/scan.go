package schema

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	dialect = "https://json-schema.org/draft/2020-12/schema"

	// baseURL stands for the place that a schema comes from. Nothing is ever
	// fetched, there or elsewhere.
	baseURL = "https://schema.invalid/"
)

// What a keyword of draft 2020-12 holds.
var (
	oneSchema    = set("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties")
	schemaList   = set("allOf", "anyOf", "oneOf", "prefixItems")
	schemaMap    = set("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
	countKeyword = set("maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties")
)

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// A scan walks a schema before the library sees it, and refuses what would make
// the library work long, load something, or read the schema in another way.
type scan struct {
	o         Options
	count     int
	patterns  int
	places    map[string]bool      // pointers of all subschemas
	resources map[string]*resource // by absolute URL
	refs      []reference
	dynamic   []string // pointers of schemas with a $dynamicAnchor
}

type resource struct {
	pointer string
	anchors map[string]bool
}

type reference struct{ base, pointer, keyword, target string }

const maxResources = 64 // schemas with an $id; the library looks through all of them for each subschema

func newScan(o Options) *scan {
	return &scan{o: o, places: map[string]bool{}, resources: map[string]*resource{}}
}

func (s *scan) document(v any) error {
	root := &resource{anchors: map[string]bool{}}
	s.resources[baseURL] = root
	if err := s.schema(v, "", baseURL, root); err != nil {
		return err
	}
	for _, r := range s.refs {
		if err := s.resolve(r); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) schema(v any, at, base string, in *resource) error {
	if s.count++; s.count > s.o.Subschemas {
		return &SchemaError{at, fmt.Sprintf("more than %d schemas inside each other", s.o.Subschemas), "make it smaller"}
	}
	s.places[at] = true
	obj, ok := v.(map[string]any)
	if !ok {
		if _, ok := v.(bool); ok {
			return nil
		}
		return &SchemaError{at, "it is " + kindOf(v), "a schema is an object, true or false"}
	}
	if err := s.identity(obj, at, &base, &in); err != nil {
		return err
	}
	for _, key := range sortedKeys(obj) {
		if err := s.keyword(obj, key, at, base, in); err != nil {
			return err
		}
	}
	return nil
}

// identity reads what names a schema: $schema, $id and anchors.
func (s *scan) identity(obj map[string]any, at string, base *string, in **resource) error {
	if v, ok := obj["$schema"]; ok {
		if text, _ := v.(string); strings.TrimSuffix(text, "#") != dialect {
			return &SchemaError{at + "/$schema", "only JSON Schema 2020-12 is read", "set it to " + dialect + ", or leave it out"}
		}
	}
	if v, ok := obj["$id"]; ok {
		id, _ := v.(string)
		abs, fragment, err := join(*base, id)
		if err != nil || id == "" || fragment != "" {
			return &SchemaError{at + "/$id", "it is no URL without a fragment", "mend it, or leave it out"}
		}
		if r, ok := s.resources[abs]; ok && r.pointer != at {
			return &SchemaError{at + "/$id", "another schema has the same one", "give each its own"}
		}
		*base = abs
		// The root keeps one resource under both its URLs, as the library does.
		if at != "" {
			*in = &resource{pointer: at, anchors: map[string]bool{}}
		}
		if s.resources[abs] = *in; len(s.resources) > maxResources {
			return &SchemaError{at + "/$id", fmt.Sprintf("more than %d schemas with an $id", maxResources), "refer by $defs"}
		}
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if v, ok := obj[key]; ok {
			name, ok := v.(string)
			if !ok || name == "" {
				return &SchemaError{at + "/" + key, "it is not a name", "write a text"}
			}
			(*in).anchors[name] = true
			if key == "$dynamicAnchor" {
				s.dynamic = append(s.dynamic, at)
			}
		}
	}
	return nil
}

func (s *scan) keyword(obj map[string]any, key, at, base string, in *resource) error {
	v := obj[key]
	here := at + "/" + escape(key)
	switch {
	case key == "$ref" || key == "$dynamicRef":
		target, ok := v.(string)
		if !ok {
			return &SchemaError{here, "it is " + kindOf(v), "a reference is a text"}
		}
		s.refs = append(s.refs, reference{base, here, key, target})
	case key == "$recursiveRef" || key == "$recursiveAnchor":
		return &SchemaError{here, "this is of an older draft", "write $dynamicRef and $dynamicAnchor"}
	case key == "pattern":
		if text, ok := v.(string); ok {
			return s.pattern(text, here)
		}
	case countKeyword[key]:
		return checkCount(v, here)
	case key == "items" && isList(v):
		return &SchemaError{here, "a list of schemas is of an older draft", "write prefixItems"}
	case oneSchema[key]:
		return s.schema(v, here, base, in)
	case schemaList[key]:
		list, ok := v.([]any)
		if !ok {
			return &SchemaError{here, "it is " + kindOf(v), "write a list of schemas"}
		}
		for i, sub := range list {
			if err := s.schema(sub, here+"/"+strconv.Itoa(i), base, in); err != nil {
				return err
			}
		}
	case schemaMap[key] || key == "dependencies":
		m, ok := v.(map[string]any)
		if !ok {
			return &SchemaError{here, "it is " + kindOf(v), "write an object of schemas"}
		}
		for _, name := range sortedKeys(m) {
			if key == "patternProperties" {
				if err := s.pattern(name, here); err != nil {
					return err
				}
			}
			if key == "dependencies" && isList(m[name]) {
				continue
			}
			if err := s.schema(m[name], here+"/"+escape(name), base, in); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCount refuses a number that the library would cut to 64 bits without a word.
func checkCount(v any, at string) error {
	n, ok := v.(json.Number)
	if !ok {
		return &SchemaError{at, "it is " + kindOf(v), "write a whole number"}
	}
	if strings.ContainsAny(string(n), ".eE") && !strings.HasSuffix(string(n), ".0") {
		return &SchemaError{at, "it is " + show(string(n), 30), "write a whole number in digits"}
	}
	if i, err := strconv.ParseInt(strings.TrimSuffix(string(n), ".0"), 10, 64); err != nil || i < 0 || i > 1<<53 {
		return &SchemaError{at, "it is " + show(string(n), 30), "write a number from 0 to 9007199254740992"}
	}
	return nil
}

// resolve makes sure that a reference leads to a schema in this document.
func (s *scan) resolve(r reference) error {
	abs, fragment, err := join(r.base, r.target)
	if err != nil {
		return &SchemaError{r.pointer, "it is no reference: " + show(r.target, 60), "write #/$defs/name"}
	}
	in, ok := s.resources[abs]
	if !ok {
		return &SchemaError{r.pointer, "it leads out of this schema: " + show(r.target, 60), "nothing is fetched; put the schema under $defs and write #/$defs/name"}
	}
	if fragment != "" && fragment[0] != '/' {
		if !in.anchors[fragment] {
			return &SchemaError{r.pointer, "there is no anchor " + show(fragment, 60), "name one that is there"}
		}
		return nil
	}
	if !s.places[in.pointer+fragment] {
		return &SchemaError{r.pointer, "there is no schema at " + show(r.target, 60), "put it under $defs and write #/$defs/name"}
	}
	return nil
}

// join resolves ref against base and cuts off its fragment, unescaped.
func join(base, ref string) (abs, fragment string, err error) {
	ref, fragment, _ = strings.Cut(ref, "#")
	if fragment, err = url.PathUnescape(fragment); err != nil {
		return "", "", err
	}
	b, err := url.Parse(base)
	if err != nil {
		return "", "", err
	}
	r, err := url.Parse(ref)
	if err != nil {
		return "", "", err
	}
	u := b.ResolveReference(r)
	if !r.IsAbs() && b.Opaque != "" {
		u.Opaque = b.Opaque
	}
	return u.String(), fragment, nil
}

func escape(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

func isList(v any) bool { _, ok := v.([]any); return ok }

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
