package schema

import (
	"encoding/json"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of what a schema may ask of one value, whatever the value is.
const (
	maxPaths = 10_000 // checks of one value; a doubling chain of 20 definitions has a million
	maxChain = 128    // schemas applied to one value inside each other
)

// A node is one schema with what it leads to, taken from what the library
// compiled, so that its costs are the library's.
type node struct {
	s     *jsonschema.Schema
	types typeSet // that it takes; zero: any

	same    []*node // applied to the same value, whatever it is
	dynamic []*node // of which a $dynamicRef applies one
	ifHas   []dependent

	names, additional, uneval, contains, items, unevalItems *node
	properties                                              map[string]*node
	patterns                                                []patternNode
	prefix                                                  []*node

	equals  int // values to compare with, for enum and const
	pattern int // size of the pattern

	state        int8 // of the walk: 0 new, 1 open, 2 done
	paths, chain int
}

type dependent struct {
	name string
	n    *node
}

type patternNode struct {
	re *pattern
	n  *node
}

// weigh makes the nodes of a compiled schema, and refuses one that would check a
// single value for ever or too often.
func weigh(root *jsonschema.Schema, dynamic []*jsonschema.Schema) (*node, error) {
	w := &weigher{nodes: map[*jsonschema.Schema]*node{}, dynamic: dynamic}
	n := w.node(root)
	for len(w.todo) > 0 {
		next := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		w.fill(next)
	}
	for _, n := range w.nodes {
		if err := n.measure(); err != nil {
			return nil, err
		}
	}
	return n, nil
}

type weigher struct {
	nodes   map[*jsonschema.Schema]*node
	dynamic []*jsonschema.Schema
	todo    []*node
}

func (w *weigher) node(s *jsonschema.Schema) *node {
	if s == nil {
		return nil
	}
	n, ok := w.nodes[s]
	if !ok {
		n = &node{s: s}
		w.nodes[s] = n
		w.todo = append(w.todo, n)
	}
	return n
}

func (w *weigher) fill(n *node) {
	s := n.s
	n.types = typesOf(s.Types)
	for _, one := range []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else} {
		if one != nil {
			n.same = append(n.same, w.node(one))
		}
	}
	for _, many := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, one := range many {
			n.same = append(n.same, w.node(one))
		}
	}
	if d := s.DynamicRef; d != nil {
		n.dynamic = append(n.dynamic, w.node(d.Ref))
		for _, one := range w.dynamic {
			if d.Anchor != "" && one.DynamicAnchor == d.Anchor && one != d.Ref {
				n.dynamic = append(n.dynamic, w.node(one))
			}
		}
	}
	for name, one := range s.DependentSchemas {
		n.ifHas = append(n.ifHas, dependent{name, w.node(one)})
	}
	for name, one := range s.Dependencies {
		if one, ok := one.(*jsonschema.Schema); ok {
			n.ifHas = append(n.ifHas, dependent{name, w.node(one)})
		}
	}
	n.names, n.uneval, n.contains = w.node(s.PropertyNames), w.node(s.UnevaluatedProperties), w.node(s.Contains)
	n.items, n.unevalItems = w.node(s.Items2020), w.node(s.UnevaluatedItems)
	if one, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		n.additional = w.node(one)
	}
	if len(s.Properties) > 0 {
		n.properties = make(map[string]*node, len(s.Properties))
		for name, one := range s.Properties {
			n.properties[name] = w.node(one)
		}
	}
	for re, one := range s.PatternProperties {
		n.patterns = append(n.patterns, patternNode{re.(*pattern), w.node(one)})
	}
	for _, one := range s.PrefixItems {
		n.prefix = append(n.prefix, w.node(one))
	}
	if s.Enum != nil {
		n.equals += sizeOf(s.Enum.Values)
	}
	if s.Const != nil {
		n.equals += sizeOf(*s.Const)
	}
	if s.Pattern != nil {
		n.pattern = s.Pattern.(*pattern).size
	}
}

// measure counts on how many ways a value reaches a schema below n without going
// into its parts. References that lead round in a ring would never end.
func (n *node) measure() error {
	switch n.state {
	case 1:
		return &SchemaError{pointerOf(n.s), "its references lead round in a ring", "let one of them go into a property or an item"}
	case 2:
		return nil
	}
	n.state = 1
	n.paths, n.chain = 1, 1
	below := n.same
	for _, d := range n.ifHas {
		below = append(below, d.n)
	}
	for _, m := range below {
		if err := m.measure(); err != nil {
			return err
		}
		n.paths += m.paths
		n.chain = max(n.chain, m.chain+1)
	}
	if n.paths > maxPaths || n.chain > maxChain {
		return &SchemaError{pointerOf(n.s),
			fmt.Sprintf("it would check one value too often (more than %d times, or %d schemas deep)", maxPaths, maxChain),
			"let fewer schemas refer to each other"}
	}
	n.state = 2
	return nil
}

// sizeOf counts the values in v.
func sizeOf(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n += sizeOf(item)
		}
	case map[string]any:
		for _, item := range v {
			n += sizeOf(item)
		}
	case string:
		n += len(v) / 64
	case json.Number:
		n += numberWeight(v)
	}
	return n
}
