package schema

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

const (
	maxText   = 480 // bytes of an error about a value
	maxCauses = 4
	maxListed = 8 // names and values that one cause lists
)

// A cause is one thing that does not fit.
type cause struct {
	at   string // JSON Pointer
	text string
	weak bool // it may only follow from another one
}

// valueError says in a line what does not fit and where: the first few causes,
// in the order of their places, so that the same value gets the same text.
func valueError(e *jsonschema.ValidationError) error {
	all := causes(e)
	slices.SortStableFunc(all, func(a, b cause) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.text, b.text)) })
	all = strong(slices.Compact(all))
	var b strings.Builder
	for i, c := range all {
		line := c.text
		if c.at != "" {
			line = show(c.at, 120) + ": " + c.text
		}
		if i > 0 {
			line = "; " + line
		}
		if i == maxCauses || b.Len()+len(line) > maxText-20 {
			fmt.Fprintf(&b, "; and %d more", len(all)-i)
			break
		}
		b.WriteString(line)
	}
	if b.Len() == 0 {
		b.WriteString("it does not fit")
	}
	return &ValueError{b.String()}
}

// strong leaves out what only follows: a property that does not fit is taken
// for one that no schema knows, and "unevaluated" refuses it once more.
func strong(sorted []cause) []cause {
	return slices.DeleteFunc(slices.Clone(sorted), func(c cause) bool {
		return c.weak && slices.ContainsFunc(sorted, func(o cause) bool {
			return !o.weak && o.at == c.at || strings.HasPrefix(o.at, c.at+"/")
		})
	})
}

// A ValueError says what in a value does not fit its schema. Its text may be
// shown to a model.
type ValueError struct{ Text string }

// Error returns the places and what is wanted there.
func (e *ValueError) Error() string { return e.Text }

// Unwrap returns ErrValue.
func (e *ValueError) Unwrap() error { return ErrValue }

// causes gathers what is wrong from the ends of the library's tree. Of several
// forms that all do not fit it keeps the one that got furthest.
func causes(e *jsonschema.ValidationError) []cause {
	at := pointerTo(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return closest(at, e)
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			return closest(at, e)
		}
		return []cause{{at, fmt.Sprintf("fits two of the forms (%d and %d), want exactly one", k.Subschemas[0]+1, k.Subschemas[1]+1), false}}
	case *kind.PropertyNames:
		return []cause{{at, "the name " + quoted(k.Property) + " is not allowed", false}}
	case *kind.Required:
		var all []cause
		for _, name := range k.Missing[:min(len(k.Missing), maxListed)] {
			all = append(all, cause{at + "/" + escape(name), "missing", false})
		}
		return all
	case *kind.AdditionalProperties:
		var all []cause
		slices.Sort(k.Properties)
		for _, name := range k.Properties[:min(len(k.Properties), maxListed)] {
			all = append(all, cause{at + "/" + escape(name), "not known here", false})
		}
		return all
	case *kind.Contains, *kind.MinContains, *kind.MaxContains:
		return []cause{{at, text(e.ErrorKind), false}}
	}
	if len(e.Causes) == 0 {
		_, weak := e.ErrorKind.(*kind.FalseSchema)
		return []cause{{at, text(e.ErrorKind), weak}}
	}
	var all []cause
	for _, c := range e.Causes {
		all = append(all, causes(c)...)
		if len(all) > 1000 {
			break // more than anybody reads
		}
	}
	return all
}

// closest picks the form that a value most likely was meant to have: the one
// whose type fits and that failed furthest inside.
func closest(at string, e *jsonschema.ValidationError) []cause {
	var best []cause
	depth := -1
	types := []string{}
	for _, c := range e.Causes[:min(len(e.Causes), 100)] {
		if t, ok := c.ErrorKind.(*kind.Type); ok && pointerTo(c.InstanceLocation) == at {
			types = append(types, t.Want...)
			continue
		}
		all := causes(c)
		d := 0
		for _, one := range all {
			d = max(d, strings.Count(one.at, "/"))
		}
		if d > depth || d == depth && len(all) < len(best) {
			best, depth = all, d
		}
	}
	switch {
	case len(best) > 0 && len(e.Causes) == len(types)+1 || depth > strings.Count(at, "/"):
		return best
	case len(types) == len(e.Causes) && len(types) > 0:
		if t, ok := e.Causes[0].ErrorKind.(*kind.Type); ok {
			slices.Sort(types)
			return []cause{{at, "got " + t.Got + ", want " + strings.Join(slices.Compact(types), " or "), false}}
		}
	}
	return []cause{{at, fmt.Sprintf("fits none of the %d forms that are allowed here", len(e.Causes)), false}}
}

// text says what one keyword wants. Values of the schema are shown short,
// values that were sent not at all.
func text(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "got " + k.Got + ", want " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "want one of " + values(k.Want)
	case *kind.Const:
		return "want " + values([]any{k.Want})
	case *kind.Format:
		return "want the format " + show(k.Want, 40)
	case *kind.FalseSchema:
		return "nothing is allowed here"
	case *kind.Not:
		return "it has a form that is not allowed here"
	case *kind.MinProperties:
		return fmt.Sprintf("got %d properties, want at least %d", k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("got %d properties, want at most %d", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("got %d items, want at least %d", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("got %d items, want at most %d", k.Got, k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "none of the items is of the form that one must have"
	case *kind.MinContains:
		return fmt.Sprintf("%d items are of the form that at least %d must have", len(k.Got), k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("%d items are of the form that at most %d may have", len(k.Got), k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("got %d characters, want at least %d", k.Got, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("got %d characters, want at most %d", k.Got, k.Want)
	case *kind.Pattern:
		return "want text that matches " + show(k.Want, 100)
	case *kind.Minimum:
		return "want at least " + number(k.Want)
	case *kind.Maximum:
		return "want at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "want more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "want less than " + number(k.Want)
	case *kind.MultipleOf:
		return "want a multiple of " + number(k.Want)
	case *kind.DependentRequired:
		return fmt.Sprintf("with %s it needs %s", quoted(k.Prop), quotedList(k.Missing))
	case *kind.Dependency:
		return fmt.Sprintf("with %s it needs %s", quoted(k.Prop), quotedList(k.Missing))
	case *kind.RefCycle:
		return "the schema leads round in a ring"
	}
	return "it does not fit"
}

func values(list []any) string {
	var out []string
	for _, v := range list[:min(len(list), maxListed)] {
		switch v := v.(type) {
		case string:
			out = append(out, quoted(v))
		case []any:
			out = append(out, "a certain list")
		case map[string]any:
			out = append(out, "a certain object")
		case nil:
			out = append(out, "null")
		default:
			out = append(out, show(fmt.Sprint(v), 40))
		}
	}
	s := strings.Join(out, ", ")
	if len(list) > maxListed {
		s += fmt.Sprintf(" or %d more", len(list)-maxListed)
	}
	return s
}

func quotedList(names []string) string {
	var out []string
	for _, n := range names[:min(len(names), maxListed)] {
		out = append(out, quoted(n))
	}
	return strings.Join(out, " and ")
}

func quoted(s string) string { return `"` + show(s, 40) + `"` }

// number writes r as people do, exactly where that is short.
func number(r *big.Rat) string {
	if digits, exact := r.FloatPrec(); exact && digits < 20 {
		if s := r.FloatString(digits); len(s) < 40 {
			return s
		}
	}
	return show(new(big.Float).SetPrec(64).SetRat(r).Text('g', 10), 40)
}

func pointerTo(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(escape(p))
	}
	return b.String()
}

// pointerOf returns the place of a compiled schema in its document.
func pointerOf(s *jsonschema.Schema) string {
	_, at, _ := strings.Cut(s.Location, "#")
	return at
}

func kindOf(v any) string {
	switch typeOf(v) {
	case tNull:
		return "null"
	case tBool:
		return "true or false"
	case tNumber:
		return "a number"
	case tString:
		return "a text"
	case tList:
		return "a list"
	}
	return "an object"
}

// show shortens s and makes what is not printable visible.
func show(s string, n int) string {
	cut := len(s) > n
	if cut {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	q := strconv.QuoteToGraphic(s)
	s = strings.ReplaceAll(strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`), `\\`, `\`)
	if cut {
		s += "…"
	}
	return s
}
