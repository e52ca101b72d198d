package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxPatternSize bounds the program that a pattern becomes, in instructions.
// Matching takes at most so many steps for each byte, and [a-z]{1000} has 1,000.
const maxPatternSize = 2000

// A pattern is a compiled regular expression with its size.
type pattern struct {
	*regexp.Regexp
	size int
}

func (s *scan) pattern(text, at string) error {
	if s.patterns++; s.patterns > s.o.Patterns {
		return &SchemaError{at, fmt.Sprintf("more than %d patterns", s.o.Patterns), "use fewer"}
	}
	if _, err := s.o.patternSize(text); err != nil {
		return &SchemaError{at, err.Error(), "write a shorter pattern in the syntax of RE2, which has no look-around and no back-reference"}
	}
	return nil
}

// compilePattern is the only maker of regular expressions, be they a schema's
// or, under the format "regex", a value's.
func (o Options) compilePattern(text string) (jsonschema.Regexp, error) {
	size, err := o.patternSize(text)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, errors.New("bad pattern")
	}
	return &pattern{re, size}, nil
}

// patternSize counts the instructions of a pattern before it is compiled.
func (o Options) patternSize(text string) (int, error) {
	if len(text) > o.PatternBytes {
		return 0, fmt.Errorf("a pattern of %d bytes, at most %d", len(text), o.PatternBytes)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		reason := "it cannot be read"
		if e, ok := errors.AsType[*syntax.Error](err); ok {
			reason = string(e.Code) + ": " + show(e.Expr, 40)
		}
		return 0, fmt.Errorf("bad pattern: %s", reason)
	}
	size := instructions(tree)
	if size > maxPatternSize {
		return 0, fmt.Errorf("a pattern that unfolds to %d steps, at most %d", size, maxPatternSize)
	}
	return size, nil
}

// instructions is an upper bound. The parser has bounded depth and repetition,
// so it neither overflows nor recurses far.
func instructions(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass:
		return 1 + len(re.Rune)/64 // a large class costs a longer search at each step
	case syntax.OpRepeat:
		return 1 + (n+1)*max(re.Max, re.Min+1)
	case syntax.OpAlternate:
		return n + len(re.Sub)
	}
	return n + 2
}
