package strictyaml

import (
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// A Kind says what a Node is.
type Kind int8

// The kinds. The zero Kind is none.
const (
	Null Kind = iota + 1
	Bool
	Number
	String
	List
	Map
)

// String returns the kind as people call it.
func (k Kind) String() string {
	switch k {
	case Null:
		return "nothing"
	case Bool:
		return "true or false"
	case Number:
		return "a number"
	case String:
		return "a text"
	case List:
		return "a list"
	case Map:
		return "a map"
	}
	return "not a value"
}

// A Node is one value of a YAML text.
type Node struct {
	Kind    Kind
	Line    int    // where it begins, from 1
	Text    string // of a scalar, as written, without its quotes
	Items   []*Node
	Members []Member // in their order; no key stands twice
}

// A Member is one entry of a map.
type Member struct {
	Key   string
	Line  int // of the key
	Value *Node
}

// Member returns the value under key, or nil.
func (n *Node) Member(key string) *Node {
	for _, m := range n.Members {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

func convert(n *yaml.Node, depth int) (*Node, error) {
	if depth > MaxDepth {
		return nil, fault(n.Line, ErrSize, "nested deeper than %d", MaxDepth)
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return nil, fault(n.Line, ErrAlias, "%v", ErrAlias)
	}
	if n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str" {
		return nil, fault(n.Line, ErrTag, "the tag %s; %v", clip(n.Tag), ErrTag)
	}
	out := &Node{Line: n.Line}
	switch n.Kind {
	case yaml.MappingNode:
		return out, out.convertMap(n, depth)
	case yaml.SequenceNode:
		out.Kind = List
		for _, c := range n.Content {
			item, err := convert(c, depth+1)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, item)
		}
		return out, nil
	case yaml.ScalarNode:
	default:
		return nil, fault(n.Line, ErrSyntax, "it cannot be read")
	}
	if !utf8.ValidString(n.Value) {
		return nil, fault(n.Line, ErrSyntax, "a text that is not Unicode")
	}
	out.Text = n.Value
	switch n.Tag {
	case "!!null":
		out.Kind = Null
	case "!!bool":
		out.Kind = Bool
	case "!!int", "!!float":
		out.Kind = Number
	case "!!str", "!!timestamp": // a date is a text; see YAML 1.2's core schema
		out.Kind = String
		if n.Style == 0 && jsonNumber.MatchString(n.Value) {
			out.Kind = Number // the library takes one that no double holds for a text
		}
	default:
		return nil, fault(n.Line, ErrTag, "the tag %s; %v", clip(n.Tag), ErrTag)
	}
	return out, nil
}

func (n *Node) convertMap(from *yaml.Node, depth int) error {
	n.Kind = Map
	seen := make(map[string]int, len(from.Content)/2)
	for i := 0; i+1 < len(from.Content); i += 2 {
		if from.Content[i].Tag == "!!merge" {
			return fault(from.Content[i].Line, ErrAlias, "%v", ErrAlias)
		}
		key, err := convert(from.Content[i], depth+1)
		if err != nil {
			return err
		}
		if key.Kind == Map || key.Kind == List || key.Kind == Null {
			return fault(key.Line, ErrSyntax, "a key is %s; it must be a text", key.Kind)
		}
		if was, ok := seen[key.Text]; ok {
			return &Error{Line: key.Line, Err: ErrDuplicate, Key: key.Text,
				Text: fmt.Sprintf("%s given twice, first in line %d", clip(key.Text), was)}
		}
		seen[key.Text] = key.Line
		value, err := convert(from.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		n.Members = append(n.Members, Member{key.Text, key.Line, value})
	}
	return nil
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// JSON returns n as JSON, with every number as it was written. A number that
// JSON cannot write, such as 0x1f, 1_000 or .inf, is an error: nothing is
// computed.
func (n *Node) JSON() ([]byte, error) { return n.appendJSON(nil) }

func (n *Node) appendJSON(b []byte) ([]byte, error) {
	var err error
	switch n.Kind {
	case Null:
		return append(b, "null"...), nil
	case Bool:
		switch n.Text {
		case "true", "True", "TRUE":
			return append(b, "true"...), nil
		case "false", "False", "FALSE":
			return append(b, "false"...), nil
		}
		return nil, fault(n.Line, ErrValue, "%q; write true or false", clip(n.Text))
	case Number:
		if !jsonNumber.MatchString(n.Text) {
			return nil, fault(n.Line, ErrValue, "%q is no number of JSON; write it as digits, or put it in quotes if it is a text", clip(n.Text))
		}
		return append(b, n.Text...), nil
	case String:
		return appendString(b, n.Text)
	case List:
		b = append(b, '[')
		for i, item := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = item.appendJSON(b); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case Map:
		b = append(b, '{')
		for i, m := range n.Members {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendString(b, m.Key); err != nil {
				return nil, err
			}
			if b, err = m.Value.appendJSON(append(b, ':')); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	}
	return nil, fault(n.Line, ErrValue, "it is not a value")
}

func appendString(b []byte, s string) ([]byte, error) {
	q, err := json.Marshal(s) // its escapes of <, > and & mean the same text
	return append(b, q...), err
}
