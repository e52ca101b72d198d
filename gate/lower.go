package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// What Linux takes in one execve. An argument may have 131,072 bytes with its
// NUL (MAX_ARG_STRLEN); all arguments and the environment with their pointers
// may have a quarter of the stack's limit of 8 MiB, from which 128 KiB are kept
// for the environment and for what the executor adds.
const (
	MaxArgument      = 128<<10 - 1
	MaxArgumentTotal = 2<<20 - 128<<10
)

// lower turns a validated value into what the script takes. Only this form of
// it ever reaches the script.
func lower(d Declaration, value []byte) (words []string, stdin []byte, err error) {
	switch d.Mode {
	case Stdin:
		return nil, value, nil
	case None:
		if s := string(value); s != "null" && s != "{}" && s != "[]" {
			return nil, nil, errors.New("this script takes no arguments; send none")
		}
		return nil, nil, nil
	case Argv:
		words, err = lowerArgv(value)
	case Flags:
		words, err = lowerFlags(d.Flags, value)
	default:
		err = fmt.Errorf("the declaration has no argument mode (%q)", d.Mode)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := checkWords(words); err != nil {
		return nil, nil, err
	}
	return words, nil, nil
}

// checkWords says why a program cannot be given the words, or nil.
func checkWords(words []string) error {
	total := 0
	for i, w := range words {
		total += len(w) + 1 + 8
		switch {
		case len(w) > MaxArgument:
			return fmt.Errorf("argument %d has %d bytes, at most %d; pass it as an input file", i+1, len(w), MaxArgument)
		case strings.ContainsRune(w, 0):
			return fmt.Errorf("argument %d holds NUL, which no program can be given", i+1)
		}
	}
	if total > MaxArgumentTotal {
		return fmt.Errorf("the arguments have %d bytes in all, at most %d; pass an input file", total, MaxArgumentTotal)
	}
	return nil
}

const (
	wantArgv  = `this script takes a list of strings, such as ["--value","3"]`
	wantFlags = `this script takes an object, such as {"value":3}`
)

// form says, before the schema is asked, where a value is not of the kind that
// the mode takes, so that a model is told the form that is wanted. The most
// frequent slip is the whole list in one string. Stdin takes what its schema says.
func (m Mode) form(value []byte) error {
	kind := kindOf(value)
	switch {
	case m == Argv && kind == "a string":
		return fmt.Errorf("%s; got a string: send the list itself, without quotes around it", wantArgv)
	case m == Argv && kind != "a list":
		return fmt.Errorf("%s; got %s", wantArgv, kind)
	case m == Flags && kind != "an object":
		return fmt.Errorf("%s; got %s", wantFlags, kind)
	}
	return nil
}

func lowerArgv(value []byte) ([]string, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil || list == nil {
		return nil, fmt.Errorf("%s; got %s", wantArgv, kindOf(value))
	}
	words := make([]string, len(list))
	for i, v := range list {
		if v[0] != '"' {
			return nil, fmt.Errorf("%s; item %d is %s", wantArgv, i+1, kindOf(v))
		}
		if err := json.Unmarshal(v, &words[i]); err != nil {
			return nil, fmt.Errorf("%s; item %d: %v", wantArgv, i+1, err)
		}
	}
	return words, nil
}

// property is what the name of a property must be to become a flag without a
// declaration that says so. A name such as "value=3" would slip a value past its
// schema, an empty one would end the flags.
var property = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// lowerFlags writes the properties in the bytewise order of their names, those
// with a position last and in its order. A value that begins with "-" is joined
// to a long flag with "=", and "--" is set before such a positional value, so
// that no value is taken for a flag.
func lowerFlags(flags map[string]Flag, value []byte) ([]string, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(value, &object); err != nil || object == nil {
		return nil, fmt.Errorf("%s; got %s", wantFlags, kindOf(value))
	}
	var words []string
	behind := map[int][]string{}
	by := map[string]string{} // flag => the property that it stands for
	for _, name := range slices.Sorted(maps.Keys(object)) {
		values, present, err := flagValues(object[name])
		if err != nil {
			return nil, fmt.Errorf("property %q: %w", name, err)
		}
		f, declared := flags[name]
		if !declared && !property.MatchString(name) {
			return nil, fmt.Errorf("property %q cannot be a flag", name)
		}
		if was, ok := by[f.Name(name)]; ok && f.Position <= 0 {
			return nil, fmt.Errorf("properties %q and %q are one flag", was, name)
		}
		if f.Position <= 0 {
			by[f.Name(name)] = name
		}
		switch flag := f.Name(name); {
		case f.Position > 0:
			if present {
				return nil, fmt.Errorf("property %q stands at a position and cannot be true or false", name)
			}
			behind[f.Position] = append(behind[f.Position], values...)
		case present:
			words = append(words, flag)
		default:
			for _, v := range values {
				switch {
				case !strings.HasPrefix(v, "-"):
					words = append(words, flag, v)
				case strings.HasPrefix(flag, "--"):
					words = append(words, flag+"="+v)
				default:
					return nil, fmt.Errorf("property %q: a value that begins with - would be taken for a flag", name)
				}
			}
		}
	}
	var positional []string
	for _, at := range slices.Sorted(maps.Keys(behind)) {
		positional = append(positional, behind[at]...)
	}
	if slices.ContainsFunc(positional, func(w string) bool { return strings.HasPrefix(w, "-") }) {
		words = append(words, "--")
	}
	return append(words, positional...), nil
}

// Name returns the flag of the property, such as "--dry-run" for dry_run.
func (f Flag) Name(property string) string {
	if f.Flag != "" {
		return f.Flag
	}
	return "--" + strings.ReplaceAll(property, "_", "-")
}

// flagValues reads one property: true is presence, false and null are absence,
// a list repeats the flag, a string or number is its text.
func flagValues(v json.RawMessage) (values []string, present bool, err error) {
	switch kind := kindOf(v); kind {
	case "true":
		return nil, true, nil
	case "false", "null":
		return nil, false, nil
	case "a string":
		var s string
		err = json.Unmarshal(v, &s)
		return []string{s}, false, err
	case "a number":
		return []string{string(v)}, false, nil
	case "a list":
		var list []json.RawMessage
		if err := json.Unmarshal(v, &list); err != nil {
			return nil, false, err
		}
		for i, item := range list {
			if k := kindOf(item); k != "a string" && k != "a number" {
				return nil, false, fmt.Errorf("item %d is %s; a flag takes strings and numbers", i+1, k)
			}
			one, _, err := flagValues(item)
			if err != nil {
				return nil, false, err
			}
			values = append(values, one...)
		}
		return values, false, nil
	default:
		return nil, false, fmt.Errorf("it is %s; a flag takes a string, a number, true, false or a list of them", kind)
	}
}

// kindOf names what a JSON value is, for people and models.
func kindOf(v []byte) string {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return "nothing"
	}
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't':
		return "true"
	case 'f':
		return "false"
	case 'n':
		return "null"
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return "a number"
	}
	return "no JSON"
}
