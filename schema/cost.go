package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// errCost is for a value whose check would take too long. It is a fault of the
// schema, and the value is what shows it.
var errCost = fmt.Errorf("%w: checking this value against it would take too long; send a smaller or flatter one", ErrSchema)

// check applies the schema to v, after counting what that would cost.
func (p *program) check(ctx context.Context, budget int, v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: it cannot be checked", ErrValue)
		}
	}()
	c := &counter{ctx: ctx, left: budget + 8*sizeOf(v)}
	if err := c.visit(p.root, v, 1); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err = p.schema.Validate(v)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return valueError(e)
	}
	return fmt.Errorf("%w: it cannot be checked", ErrValue)
}

// A counter goes the ways that the library would go, in its order of magnitude,
// and stops when the steps are used up. It takes no short cut that depends on a
// result, so it counts at least what the library does.
type counter struct {
	ctx    context.Context
	left   int
	visits int
}

func (c *counter) pay(steps int) error {
	if c.left -= steps; c.left < 0 {
		return errCost
	}
	return nil
}

// visit counts the schema n on the value v. Depth is how many schemas are open
// around it, through which the library looks for rings and dynamic anchors.
func (c *counter) visit(n *node, v any, depth int) error {
	if n == nil {
		return nil
	}
	if c.visits++; c.visits%4096 == 0 && c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if err := c.pay(1 + depth/32); err != nil {
		return err
	}
	if n.s.Bool != nil || n.types != 0 && n.types&typeOf(v) == 0 {
		return nil // the library looks no further, too
	}
	if depth > 64*maxChain {
		return errCost
	}
	cost := n.equals
	var err error
	switch v := v.(type) {
	case json.Number:
		cost += (n.equals + 4) * numberWeight(v)
	case string:
		cost += n.text(v)
	case map[string]any:
		cost += len(v)
		err = c.object(n, v, depth+1)
	case []any:
		cost += len(v)
		if n.s.UniqueItems {
			cost += unique(v)
		}
		err = c.list(n, v, depth+1)
	}
	if err == nil {
		err = c.pay(cost)
	}
	for i := 0; i < len(n.same) && err == nil; i++ {
		err = c.visit(n.same[i], v, depth+1)
	}
	for i := 0; i < len(n.dynamic) && err == nil; i++ {
		err = c.visit(n.dynamic[i], v, depth+1)
	}
	return err
}

func (n *node) text(s string) int {
	cost := n.pattern * len(s) / 64
	if n.s.MinLength != nil || n.s.MaxLength != nil {
		cost += len(s) / 256
	}
	if n.s.Format != nil {
		cost += 4 + len(s)/16
	}
	return cost
}

func (c *counter) object(n *node, obj map[string]any, depth int) error {
	for name, v := range obj {
		known := false
		if m, ok := n.properties[name]; ok {
			known = true
			if err := c.visit(m, v, depth); err != nil {
				return err
			}
		}
		for _, p := range n.patterns {
			if err := c.pay(1 + p.re.size*len(name)/64); err != nil {
				return err
			}
			if p.re.MatchString(name) {
				known = true
				if err := c.visit(p.n, v, depth); err != nil {
					return err
				}
			}
		}
		if !known {
			if err := c.visit(n.additional, v, depth); err != nil {
				return err
			}
		}
		if err := c.visit(n.uneval, v, depth); err != nil {
			return err
		}
		if n.names != nil {
			if err := c.visit(n.names, name, 1); err != nil {
				return err
			}
		}
	}
	for _, d := range n.ifHas {
		if _, ok := obj[d.name]; ok {
			if err := c.visit(d.n, obj, depth); err != nil {
				return err
			}
		}
	}
	return c.pay((len(n.s.Required) + len(n.s.DependentRequired) + len(n.ifHas)) / 8)
}

func (c *counter) list(n *node, list []any, depth int) error {
	for i, v := range list {
		m := n.items
		if i < len(n.prefix) {
			m = n.prefix[i]
		}
		for _, m := range []*node{m, n.contains, n.unevalItems} {
			if err := c.visit(m, v, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// numberWeight is what reading a number exactly costs beyond one step. Its
// length and exponent are bounded before.
func numberWeight(n json.Number) int {
	w := len(n) / 64
	if i := strings.IndexAny(string(n), "eE"); i >= 0 {
		exp, _ := strconv.Atoi(string(n[i+1:]))
		w += max(exp, -exp) / 64
	}
	return w
}

// unique is what finding equal items costs: up to twenty are compared each with
// each; more are hashed, by a hash for which one can make lists and objects that
// all have the same.
func unique(list []any) int {
	composite := 0
	for _, v := range list {
		switch v.(type) {
		case []any, map[string]any:
			composite++
		}
	}
	n := sizeOf(list)
	if len(list) <= 20 {
		return n * len(list) / 8
	}
	return n + composite*composite/64
}

// A typeSet is a set of JSON types.
type typeSet uint8

const (
	tNull typeSet = 1 << iota
	tBool
	tNumber
	tString
	tList
	tObject
)

func typesOf(t *jsonschema.Types) typeSet {
	if t == nil {
		return 0
	}
	var set typeSet
	for _, name := range t.ToStrings() {
		switch name {
		case "null":
			set |= tNull
		case "boolean":
			set |= tBool
		case "number", "integer":
			set |= tNumber
		case "string":
			set |= tString
		case "array":
			set |= tList
		case "object":
			set |= tObject
		}
	}
	return set
}

func typeOf(v any) typeSet {
	switch v.(type) {
	case nil:
		return tNull
	case bool:
		return tBool
	case json.Number:
		return tNumber
	case string:
		return tString
	case []any:
		return tList
	}
	return tObject
}
