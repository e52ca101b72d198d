package schema

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/tracon-go/tracon/internal/strictjson"
)

// Limits of schemas and checks when [Options] leaves them zero.
const (
	DefaultSchemaBytes  = 64 << 10
	DefaultSubschemas   = 1000
	DefaultPatterns     = 100
	DefaultPatternBytes = 1024
	DefaultBudget       = 100_000
	DefaultCached       = 256
)

// Options bound what a [Checker] does. A zero field means its default.
type Options struct {
	SchemaBytes  int // of one schema; zero means 64 KiB
	Subschemas   int // of one schema; zero means 1,000
	Patterns     int // regular expressions of one schema; zero means 100
	PatternBytes int // of one regular expression; zero means 1,024

	// Budget is how many steps one check may take, beside eight for each value in
	// the arguments. A step is one schema applied to one value: about a third of a
	// microsecond. Zero means 100,000.
	Budget int

	// Cached is how many schemas are kept compiled; zero means 256.
	Cached int

	// FormatsAsNotes takes "format" for a note that refuses nothing, which is the
	// standard's default. At zero, formats that are known are asserted.
	FormatsAsNotes bool
}

func (o Options) orDefaults() Options {
	o.SchemaBytes = cmp.Or(o.SchemaBytes, DefaultSchemaBytes)
	o.Subschemas = cmp.Or(o.Subschemas, DefaultSubschemas)
	o.Patterns = cmp.Or(o.Patterns, DefaultPatterns)
	o.PatternBytes = cmp.Or(o.PatternBytes, DefaultPatternBytes)
	o.Budget = cmp.Or(o.Budget, DefaultBudget)
	o.Cached = cmp.Or(o.Cached, DefaultCached)
	return o
}

// Errors of a Checker.
var (
	// ErrSchema is wrapped by the error for a schema that is none, or that asks
	// for too much.
	ErrSchema = errors.New("schema: bad schema")

	// ErrValue is wrapped by the error for a value that does not fit its schema.
	// That the value is no strict JSON is said by strictjson's error instead.
	ErrValue = errors.New("schema: the value does not fit")
)

// A Checker checks values against schemas. It is safe for concurrent use.
type Checker struct {
	o     Options
	cache *cache
}

// New returns a Checker.
func New(o Options) *Checker {
	o = o.orDefaults()
	return &Checker{o, newCache(o.Cached)}
}

// Check decodes value strictly, checks it against schema, and returns it in the
// shortest form with every number as it was written. An empty schema asks for
// strict JSON and nothing else.
//
// # Errors
//
// The cause of ctx when it is done. Any other error is short, repeats no long
// value, and may be shown to a model: one that wraps ErrValue names the place in
// the value and what is wanted there; one that wraps ErrSchema says that the
// schema is bad or that checking would cost too much.
func (c *Checker) Check(ctx context.Context, schema, value []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	canonical, v, err := strictjson.Decode(value, strictjson.Limits{})
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(schema)) == 0 {
		return canonical, nil
	}
	p, err := c.cache.get(ctx, schema, c.compile)
	if err != nil {
		return nil, err
	}
	if err := p.check(ctx, c.o.Budget, v); err != nil {
		return nil, err
	}
	return canonical, nil
}

// Compile says what is wrong with schema, or nil. The error wraps ErrSchema and
// names the place in the schema and what to do.
func (c *Checker) Compile(schema []byte) error {
	_, err := c.cache.get(context.Background(), schema, c.compile)
	return err
}

// A SchemaError says what is wrong with a schema.
type SchemaError struct {
	Pointer string // JSON Pointer into the schema; empty: all of it
	Text    string // what is wrong
	Remedy  string // what to do; may be empty
}

// Error returns place, reason and remedy.
func (e *SchemaError) Error() string {
	s := "the schema: " + e.Text
	if e.Pointer != "" {
		s = fmt.Sprintf("the schema at %s: %s", show(e.Pointer, 160), e.Text)
	}
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

// Unwrap returns ErrSchema.
func (e *SchemaError) Unwrap() error { return ErrSchema }
