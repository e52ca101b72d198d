package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tracon-go/tracon/gate"
)

// argumentsOf turns the words behind "--" into the JSON value that the script's
// declaration asks for.
func argumentsOf(d gate.Declaration, words []string) (json.RawMessage, error) {
	for _, w := range words {
		if !utf8.ValidString(w) {
			return nil, fmt.Errorf("argument %q is not UTF-8", w)
		}
	}
	if len(words) == 0 {
		return nil, nil
	}
	switch d.Mode {
	case gate.Argv:
		return json.Marshal(words)
	case gate.Flags:
		return parseFlags(d, words)
	case gate.Stdin:
		return nil, hint(errors.New("this script takes JSON on standard input, not words"), "pass it with --args '{…}' or --stdin FILE")
	}
	return nil, errors.New("this script takes no arguments")
}

// A property is what the declaration says of one member of the object that a
// flags script takes.
type property struct {
	name     string
	flag     string
	position int
	kind     string // its type in the schema, or that of its items where it is a list
	list     bool
}

func properties(d gate.Declaration) ([]property, error) {
	var schema struct {
		Properties map[string]struct {
			Type  any
			Items struct{ Type any }
		}
	}
	if len(d.Schema) > 0 {
		if err := json.Unmarshal(d.Schema, &schema); err != nil {
			return nil, fmt.Errorf("the script's schema: %w", err)
		}
	}
	names := map[string]bool{}
	for name := range schema.Properties {
		names[name] = true
	}
	for name := range d.Flags {
		names[name] = true
	}
	var props []property
	for _, name := range slices.Sorted(maps.Keys(names)) {
		p := property{name: name, flag: d.Flags[name].Name(name), position: d.Flags[name].Position, kind: typeName(schema.Properties[name].Type)}
		if p.kind == "array" {
			p.list, p.kind = true, typeName(schema.Properties[name].Items.Type)
		}
		props = append(props, p)
	}
	return props, nil
}

func typeName(t any) string {
	s, _ := t.(string)
	return s
}

// parseFlags reads words back by the declared mapping: the reverse of how the
// gate lowers the object.
func parseFlags(d gate.Declaration, words []string) (json.RawMessage, error) {
	props, err := properties(d)
	if err != nil {
		return nil, err
	}
	object := map[string]json.RawMessage{}
	lists := map[string][]json.RawMessage{}
	give := func(p property, text string) error {
		v, err := p.value(text)
		if err != nil {
			return err
		}
		if p.list {
			lists[p.name] = append(lists[p.name], v)
			return nil
		}
		if _, twice := object[p.name]; twice {
			return fmt.Errorf("%s is given twice", p.flag)
		}
		object[p.name] = v
		return nil
	}
	var loose []string
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			loose = append(loose, words[i+1:]...)
			break
		}
		name, text, joined := strings.Cut(w, "=")
		at := slices.IndexFunc(props, func(p property) bool { return p.position == 0 && (p.flag == w || joined && p.flag == name) })
		switch {
		case at < 0 && strings.HasPrefix(w, "-") && w != "-":
			return nil, hint(fmt.Errorf("the script has no flag %q", w), "its flags are: %s", flagList(props))
		case at < 0:
			loose = append(loose, w)
			continue
		case props[at].kind == "boolean" && !joined:
			text = "true"
		case !joined || props[at].flag == w:
			if i++; i == len(words) {
				return nil, fmt.Errorf("%s needs a value", w)
			}
			text = words[i]
		}
		if err := give(props[at], text); err != nil {
			return nil, err
		}
	}
	positional := slices.DeleteFunc(slices.Clone(props), func(p property) bool { return p.position == 0 })
	slices.SortFunc(positional, func(a, b property) int { return a.position - b.position })
	for _, p := range positional {
		for len(loose) > 0 {
			if err := give(p, loose[0]); err != nil {
				return nil, err
			}
			loose = loose[1:]
			if !p.list {
				break
			}
		}
	}
	if len(loose) > 0 {
		return nil, hint(fmt.Errorf("%q is one word too many", loose[0]), "its flags are: %s", flagList(props))
	}
	for name, list := range lists {
		if object[name], err = json.Marshal(list); err != nil {
			return nil, err
		}
	}
	return json.Marshal(object)
}

// value writes text as the schema's type: a number as it stands, so that none
// is rounded; what does not fit stays a string, and the schema says so.
func (p property) value(text string) (json.RawMessage, error) {
	switch p.kind {
	case "number", "integer":
		if json.Valid([]byte(text)) && strings.ContainsAny(text[:1], "-0123456789") {
			return json.RawMessage(text), nil
		}
	case "boolean":
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("%s is true or false, not %q", p.flag, text)
		}
		return json.RawMessage(text), nil
	}
	return json.Marshal(text)
}

func flagList(props []property) string {
	var names []string
	for _, p := range props {
		if p.position > 0 {
			names = append(names, strings.ToUpper(p.name))
			continue
		}
		names = append(names, p.flag)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
