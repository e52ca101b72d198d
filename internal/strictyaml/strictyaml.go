package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// MaxDepth is how deep maps and lists may be nested.
const MaxDepth = 64

// What is wrong with a YAML text. Each *[Error] wraps one of them.
var (
	ErrSyntax    = errors.New("not YAML")
	ErrSize      = errors.New("too large")
	ErrAlias     = errors.New("aliases, anchors and merge keys are not taken")
	ErrTag       = errors.New("tags are not taken")
	ErrDuplicate = errors.New("given twice")
	ErrUnknown   = errors.New("unknown key")
	ErrValue     = errors.New("the value does not fit")
)

// An Error says what is wrong and in which line.
type Error struct {
	Line int    // from 1; 0 where the whole text is meant
	Text string // what is wrong, without the line
	Key  string // of ErrDuplicate and ErrUnknown
	Err  error  // one of the sentinels
}

// Error returns the line and what is wrong there.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Text)
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.Err }

func fault(line int, err error, format string, args ...any) *Error {
	return &Error{Line: line, Err: err, Text: fmt.Sprintf(format, args...)}
}

// Decode reads data, which may have at most maxBytes, into the Go value that
// into points to. Keys are matched to the `yaml` tags of structs; one that is
// not known is an error. A text without a value leaves into as it is.
// Every error is an *Error, the first one where there are several.
func Decode(data []byte, maxBytes int, into any) error {
	doc, n, err := parse(data, maxBytes)
	if err != nil || n.Kind == Null {
		return err
	}
	if err = recovered(func() error { return doc.Load(into, yaml.WithKnownFields(), yaml.WithUniqueKeys()) }); err != nil {
		return libraryError(err, ErrValue)
	}
	return nil
}

// Parse reads data, which may have at most maxBytes, into a tree. A text
// without a value is a Null. Every error is an *Error.
func Parse(data []byte, maxBytes int) (*Node, error) {
	_, n, err := parse(data, maxBytes)
	return n, err
}

// explained says in place of the library what is wrong with a line that a tab begins:
// that some character cannot start a token tells an author nothing.
func explained(err error, data []byte) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Err != ErrSyntax || e.Line == 0 {
		return err
	}
	line := 0
	for text := range bytes.Lines(data) {
		if line++; line == e.Line && bytes.HasPrefix(bytes.TrimLeft(text, " "), []byte("\t")) {
			return fault(e.Line, ErrSyntax, "a tab begins the line; YAML takes blanks alone")
		}
	}
	return err
}

func parse(data []byte, maxBytes int) (*yaml.Node, *Node, error) {
	if len(data) > maxBytes {
		return nil, nil, fault(0, ErrSize, "it has %d bytes, at most %d", len(data), maxBytes)
	}
	if !utf8.Valid(data) {
		return nil, nil, fault(badLine(data), ErrSyntax, "not UTF-8")
	}
	// A byte order mark would let the library choose another encoding; in UTF-8 it
	// says nothing.
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	var doc, second yaml.Node
	var n *Node
	err := recovered(func() error {
		l, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(limits{}))
		if err != nil {
			return err
		}
		if err := l.Load(&doc); err == io.EOF {
			n = &Node{Kind: Null, Line: 1}
			return nil
		} else if err != nil {
			return err
		}
		if err := l.Load(&second); err == nil {
			return fault(second.Line, ErrSyntax, "a second document begins; one is wanted")
		} else if err != io.EOF {
			return err
		}
		if len(doc.Content) != 1 {
			return fault(doc.Line, ErrSyntax, "one value is wanted")
		}
		n, err = convert(doc.Content[0], 0)
		return err
	})
	if err != nil {
		return nil, nil, explained(libraryError(err, ErrSyntax), data)
	}
	return &doc, n, nil
}

// limits closes what the library leaves open: 10,000 levels, and aliases that
// unfold as long as their ratio is low.
type limits struct{}

func (limits) CheckDepth(depth int, _ *yaml.DepthContext) error {
	if depth > MaxDepth {
		return fmt.Errorf("nested deeper than %d", MaxDepth)
	}
	return nil
}

func (limits) CheckAlias(aliases, _ int) error {
	if aliases > 0 {
		return ErrAlias
	}
	return nil
}

// recovered turns a panic of the library into an error: text from outside must
// not end the host.
func recovered(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fault(0, ErrSyntax, "it cannot be read")
		}
	}()
	return f()
}

// libraryError takes place and reason out of an error of the library. Where the
// library knows the beginning of what is wrong, that line is given: it is the
// one to mend.
func libraryError(err error, sentinel error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if all, ok := errors.AsType[*yaml.LoadErrors](err); ok && len(all.Errors) > 0 {
		return libraryError(all.Errors[0], sentinel)
	}
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return fault(0, sentinel, "%s", clip(err.Error()))
	}
	line := e.ContextMark.Line
	if line == 0 {
		line = e.Mark.Line
	}
	if errors.Is(err, ErrAlias) {
		return fault(line, ErrAlias, "%v", ErrAlias)
	}
	if rest, ok := strings.CutPrefix(e.Message, "field "); ok && strings.Contains(rest, " not found in type ") {
		key, _, _ := strings.Cut(rest, " not found in type ")
		return &Error{Line: line, Err: ErrUnknown, Key: key, Text: fmt.Sprintf("unknown key %s", clip(key))}
	}
	text := strings.ReplaceAll(strings.TrimPrefix(e.Message, "cannot construct "), " into ", ", want ")
	return fault(line, sentinel, "%s", clip(strings.TrimPrefix(text, "yaml: ")))
}

// badLine returns the line of the first byte that is not UTF-8.
func badLine(data []byte) int {
	line := 1
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			return line
		}
		if r == '\n' {
			line++
		}
		data = data[n:]
	}
	return line
}

// clip shortens a text of the library, which repeats what stands in the file.
func clip(s string) string {
	const most = 160
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) <= most {
		return s
	}
	n := most
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
