package gate

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/bundle"
)

// A Mode says how a script takes its arguments.
type Mode string

// The modes.
const (
	Stdin Mode = "stdin" // the JSON value on standard input
	Argv  Mode = "argv"  // a list of strings, after the script's path
	Flags Mode = "flags" // an object, lowered to words by a declared mapping
	None  Mode = "none"  // none at all
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{Stdin, Argv, Flags, None} }

// A Declaration is what a skill says about one of its scripts.
type Declaration struct {
	Description string
	Mode        Mode // required
	Schema      []byte
	Flags       map[string]Flag // by property; one that is not named has the flag "--name", with "-" for "_"
	Timeout     time.Duration   // below the tenant's; zero: the tenant's

	// Module, if not empty, starts a Python script as this module from the skill's
	// root, as python -m does. It must be the script's own: see [ModuleOf].
	Module string

	// Outputs are patterns, as [path.Match] has them, with "**" for any number of
	// elements, of the files below outputs/ that come back. Empty: all.
	Outputs []string
}

// A Flag says how one property of a flags script becomes words.
type Flag struct {
	Flag     string // such as "--value" or "-v"; empty: "--" and the property's name
	Position int    // from 1: the value stands alone at this place behind the flags; zero: it has a flag
}

// ModuleOf returns the name under which Python finds the script from the skill's
// root: "a.b" for "a/b.py" and for "a/b/__main__.py". It returns "" for a path
// that no import can name.
func ModuleOf(script string) string {
	name, ok := strings.CutSuffix(script, ".py")
	if !ok {
		return ""
	}
	name = strings.TrimSuffix(name, "/__main__")
	elems := strings.Split(name, "/")
	for _, elem := range elems {
		if !identifier.MatchString(elem) {
			return ""
		}
	}
	return strings.Join(elems, ".")
}

// moduleRival returns a file of b that Python would run in the place of the
// script, or before it, when it is asked for the script's module; "" where there
// is none. What the log names must be what runs. Python takes a folder with an
// __init__ first, then a compiled module, then a source, then bytecode, then a
// folder without an __init__.
func moduleRival(b bundle.Bundle, script string) string {
	elems := strings.Split(strings.TrimSuffix(script, ".py"), "/")
	for i := range elems {
		at, last := strings.Join(elems[:i+1], "/"), i == len(elems)-1
		var beside, before string
		for _, p := range b.Paths() {
			rest, ok := strings.CutPrefix(p, at)
			compiled := strings.HasPrefix(rest, ".") && !strings.Contains(rest, "/") && (path.Ext(rest) == ".so" || path.Ext(rest) == ".pyd")
			switch {
			case !ok || p == script:
			case strings.HasPrefix(rest, "/__init__."):
				before = p
			case compiled, !last && (rest == ".py" || rest == ".pyc"):
				beside = p
			}
		}
		switch {
		case last && before != "":
			return before
		case beside != "" && before == "":
			return beside
		}
	}
	return ""
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// MaxOutputPatterns is the most patterns that a declaration may have.
const MaxOutputPatterns = 64

// check says why d cannot be that of the script, or nil.
func (d Declaration) check(script string) error {
	switch {
	case !slices.Contains(Modes(), d.Mode):
		return fmt.Errorf("the declaration of %q has no argument mode (%q)", script, d.Mode)
	case d.Timeout < 0:
		return fmt.Errorf("the declaration of %q has a negative timeout", script)
	case d.Module != "" && d.Module != ModuleOf(script):
		return fmt.Errorf("the declaration of %q starts the module %q, which is not the script", script, d.Module)
	case len(d.Outputs) > MaxOutputPatterns:
		return fmt.Errorf("the declaration of %q has %d output patterns, at most %d", script, len(d.Outputs), MaxOutputPatterns)
	}
	for _, pattern := range d.Outputs {
		if !ValidPattern(pattern) {
			return fmt.Errorf("the declaration of %q has the output pattern %q, which is none", script, pattern)
		}
	}
	return nil
}

// empty returns the value that stands for no arguments at all.
func (m Mode) empty() string {
	switch m {
	case Argv:
		return "[]"
	case None:
		return "null"
	}
	return "{}"
}
