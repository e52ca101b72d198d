package strictjson

import (
	"bytes"
	"cmp"
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits when [Limits] leaves them zero. No double needs an exponent beyond 324
// and no real argument more than 64 levels; a literal such as 1e999999999 costs
// whoever computes with it gigabytes.
const (
	DefaultDepth       = 64
	DefaultTokens      = 1 << 18
	DefaultNumberBytes = 512
	DefaultExponent    = 1000
)

// Limits bound a JSON value. A zero field means its default.
type Limits struct {
	Depth       int // nested objects and lists; zero means 64
	Tokens      int // values and names; zero means 262,144
	NumberBytes int // length of one number as written; zero means 512
	Exponent    int // of one number, either sign; zero means 1,000
}

func (l Limits) orDefaults() Limits {
	return Limits{
		Depth:       cmp.Or(l.Depth, DefaultDepth),
		Tokens:      cmp.Or(l.Tokens, DefaultTokens),
		NumberBytes: cmp.Or(l.NumberBytes, DefaultNumberBytes),
		Exponent:    cmp.Or(l.Exponent, DefaultExponent),
	}
}

// ErrJSON is wrapped by every error of this package.
var ErrJSON = errors.New("not strict JSON")

// An Error says what is wrong with a JSON text and where. It never holds more
// than a short piece of the text.
type Error struct {
	Pointer string // JSON Pointer of the value, shortened when long; empty: the whole value
	Offset  int64  // in bytes from the beginning; -1 where the pointer says it all
	Text    string // what is wrong
}

// Error returns the place and what is wrong there.
func (e *Error) Error() string {
	switch {
	case e.Pointer != "":
		return e.Pointer + ": " + e.Text
	case e.Offset > 0:
		return fmt.Sprintf("at byte %d: %s", e.Offset, e.Text)
	}
	return e.Text
}

// Unwrap returns ErrJSON.
func (e *Error) Unwrap() error { return ErrJSON }

// Canonical reads one value strictly and returns it written in the shortest
// form: no blanks, strings with no more escapes than they need. The order of
// members and the text of numbers stay as they are, so this is not RFC 8785.
// Every error is an *Error.
func Canonical(value []byte, limits Limits) ([]byte, error) {
	out, _, err := decode(value, limits, false)
	return out, err
}

// Decode is [Canonical] and returns the value too, as map[string]any, []any,
// string, [encoding/json.Number], bool or nil.
func Decode(value []byte, limits Limits) (canonical []byte, v any, err error) {
	return decode(value, limits, true)
}

// Unmarshal reads one value strictly into the Go value that v points to, within
// the default limits. Members that the Go type does not have are refused, and
// names are matched by exact case. A Go type with an UnmarshalJSON method gets
// bytes that were checked but for unknown names, which it must refuse itself.
func Unmarshal(b []byte, v any) error {
	if _, _, err := decode(b, Limits{}, false); err != nil {
		return err
	}
	return semantic(json.Unmarshal(b, v, json.RejectUnknownMembers(true)))
}

// UnmarshalKnown is [Unmarshal] for documents that others may add to: members that
// the Go type does not have are ignored, whatever they hold, as long as it is strict
// JSON.
func UnmarshalKnown(b []byte, v any) error {
	if _, _, err := decode(b, Limits{}, false); err != nil {
		return err
	}
	return semantic(json.Unmarshal(b, v))
}

// semantic turns an error of the library about a value that is strict JSON into an
// *Error; nil stays nil.
func semantic(err error) error {
	if err == nil {
		return nil
	}
	sem, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return lexical(err, 0)
	}
	e := &Error{Pointer: pointer(sem.JSONPointer), Offset: sem.ByteOffset}
	switch {
	case errors.Is(err, json.ErrUnknownName):
		e.Text = "unknown member; names count by exact case"
	case sem.Err != nil:
		e.Text = clip(sem.Err.Error(), 200)
	case sem.GoType != nil:
		e.Text = fmt.Sprintf("%s does not fit here; it takes %s", kindName(sem.JSONKind), wanted(sem.GoType))
	default:
		e.Text = "this value does not fit here"
	}
	return e
}

// wanted says in the words of JSON what a Go value is read from: who sent another, such
// as a model, knows no Go.
func wanted(t reflect.Type) string {
	switch p := reflect.PointerTo(t); {
	case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return "a string"
	case p.Implements(reflect.TypeFor[json.UnmarshalerFrom]()), p.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return "another value" // as it sees fit
	}
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		switch t.Elem().Kind() {
		case reflect.Uint8: // bytes, in base64
			return "a string"
		case reflect.String:
			return "a list of strings"
		}
		return "a list"
	case reflect.Interface:
		return "another value"
	}
	return "a whole number"
}

func decode(value []byte, limits Limits, build bool) ([]byte, any, error) {
	return (&reader{limits: limits.orDefaults(), build: build}).whole(value)
}

// whole reads the one value that there is.
func (r *reader) whole(value []byte) ([]byte, any, error) {
	r.dec, r.out = jsontext.NewDecoder(bytes.NewReader(value)), make([]byte, 0, len(value))
	v, err := r.value(0)
	if err != nil {
		return nil, nil, err
	}
	switch _, err := r.dec.ReadToken(); {
	case err == nil:
		return nil, nil, &Error{Offset: r.dec.InputOffset(), Text: "more than one value; send exactly one"}
	case err != io.EOF:
		return nil, nil, lexical(err, r.dec.InputOffset())
	}
	return r.out, v, nil
}

type reader struct {
	dec    *jsontext.Decoder
	limits Limits
	build  bool              // make the Go value too
	fold   map[string]string // a name in lower case to how it is spelled; nil: case counts
	seen   []map[string]bool // the names of the object that is being read, in lower case, by its depth
	tokens int
	out    []byte
}

// folded returns the set of the names of an object that begins at the depth, which no
// other object has now; nil where case counts.
func (r *reader) folded(depth int) map[string]bool {
	if r.fold == nil {
		return nil
	}
	for len(r.seen) <= depth {
		r.seen = append(r.seen, map[string]bool{})
	}
	if len(r.seen[depth]) > manyNames { // to clear its room for each small object would take the square of their number
		r.seen[depth] = map[string]bool{}
	}
	clear(r.seen[depth])
	return r.seen[depth]
}

// manyNames is how many names an object has whose set is not used again.
const manyNames = 64

func (r *reader) value(depth int) (any, error) {
	if r.tokens++; r.tokens > r.limits.Tokens {
		return nil, r.refuse("more than %d values and names", r.limits.Tokens)
	}
	switch r.dec.PeekKind() {
	case '{', '[':
		if depth >= r.limits.Depth {
			return nil, r.refuse("nested deeper than %d", r.limits.Depth)
		}
		if r.dec.PeekKind() == '{' {
			return r.object(depth + 1)
		}
		return r.list(depth + 1)
	}
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, lexical(err, r.dec.InputOffset())
	}
	switch raw.Kind() {
	case '"':
		text, err := r.text(raw)
		if !r.build || err != nil {
			return nil, err
		}
		return string(text), nil
	case '0':
		if err := r.number(raw); err != nil {
			return nil, err
		}
		r.out = append(r.out, raw...)
		return stdjson.Number(raw), nil
	}
	r.out = append(r.out, raw...)
	switch raw[0] {
	case 't':
		return true, nil
	case 'f':
		return false, nil
	}
	return nil, nil
}

func (r *reader) object(depth int) (any, error) {
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, lexical(err, r.dec.InputOffset())
	}
	var m map[string]any
	if r.build {
		m = map[string]any{}
	}
	folded := r.folded(depth)
	r.out = append(r.out, '{')
	for i := 0; ; i++ {
		if k := r.dec.PeekKind(); k == '}' {
			break
		} else if k != '"' {
			_, err := r.dec.ReadToken() // it is refused, with the reason
			return nil, lexical(err, r.dec.InputOffset())
		}
		if r.tokens++; r.tokens > r.limits.Tokens {
			return nil, r.refuse("more than %d values and names", r.limits.Tokens)
		}
		if i > 0 {
			r.out = append(r.out, ',')
		}
		raw, err := r.dec.ReadValue()
		if err != nil {
			return nil, lexical(err, r.dec.InputOffset())
		}
		begin := len(r.out)
		text, err := r.text(raw)
		if err != nil {
			return nil, err
		}
		name := string(text)
		if r.fold != nil {
			low := lower(name)
			if folded[low] {
				return nil, r.refuse("this name stands twice in its object, but for its case")
			}
			folded[low] = true
			if spelled, ok := r.fold[low]; ok {
				name = spelled
				r.out = append(append(append(r.out[:begin], '"'), name...), '"')
			}
		}
		r.out = append(r.out, ':')
		v, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		if r.build {
			m[name] = v
		}
	}
	r.out = append(r.out, '}')
	_, err := r.dec.ReadToken()
	return m, lexical(err, r.dec.InputOffset())
}

func (r *reader) list(depth int) (any, error) {
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, lexical(err, r.dec.InputOffset())
	}
	list := []any{}
	r.out = append(r.out, '[')
	for i := 0; r.dec.PeekKind() != ']'; i++ {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		v, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		if r.build {
			list = append(list, v)
		}
	}
	r.out = append(r.out, ']')
	_, err := r.dec.ReadToken()
	return list, lexical(err, r.dec.InputOffset())
}

// text writes a string in its shortest form, and returns what it says, which holds as
// long as raw.
func (r *reader) text(raw jsontext.Value) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 { // without an escape it is written so already
		r.out = append(r.out, raw...)
		return raw[1 : len(raw)-1], nil
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	if err == nil {
		r.out, err = jsontext.AppendQuote(r.out, s)
	}
	return s, lexical(err, r.dec.InputOffset())
}

// number bounds a literal, so that nobody who computes with it exactly pays
// more than its length suggests.
func (r *reader) number(raw []byte) error {
	if len(raw) > r.limits.NumberBytes {
		return r.refuse("a number of %d characters, at most %d", len(raw), r.limits.NumberBytes)
	}
	i := bytes.IndexAny(raw, "eE")
	if i < 0 {
		return nil
	}
	if n, err := strconv.Atoi(string(raw[i+1:])); err != nil || n > r.limits.Exponent || n < -r.limits.Exponent {
		return r.refuse("a number with the exponent %s, at most %d", clip(string(raw[i+1:]), 20), r.limits.Exponent)
	}
	return nil
}

func (r *reader) refuse(format string, args ...any) error {
	return &Error{Pointer: pointer(r.dec.StackPointer()), Offset: r.dec.InputOffset(), Text: fmt.Sprintf(format, args...)}
}

// lexical turns an error of the library into an *Error; nil stays nil.
func lexical(err error, offset int64) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := &Error{Offset: offset, Text: "it ends too early"}
	syn, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case ok && errors.Is(err, jsontext.ErrDuplicateName):
		e.Pointer, e.Offset = pointer(syn.JSONPointer), syn.ByteOffset
		e.Text = "this name stands twice in its object"
	case ok && errors.Is(err, io.ErrUnexpectedEOF):
		e.Pointer, e.Offset = pointer(syn.JSONPointer), syn.ByteOffset
	case ok:
		e.Pointer, e.Offset = pointer(syn.JSONPointer), syn.ByteOffset
		e.Text = clip(syn.Err.Error(), 200)
	case errors.Is(err, io.EOF):
		e.Text = "there is no value"
	case !errors.Is(err, io.ErrUnexpectedEOF):
		e.Text = clip(err.Error(), 200)
	}
	return e
}

func pointer(p jsontext.Pointer) string { return clip(string(p), 120) }

// clip shortens s to about n bytes, at a whole character, and makes what is
// not printable visible: the text goes to people and to models.
func clip(s string, n int) string {
	cut := len(s) > n
	if cut {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	q := strconv.QuoteToGraphic(s)
	s = q[1 : len(q)-1]
	s = string(bytes.ReplaceAll([]byte(s), []byte(`\"`), []byte(`"`)))
	if cut {
		s += "…"
	}
	return s
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "this value"
}
