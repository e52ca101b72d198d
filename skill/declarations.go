package skill

import (
	"container/list"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

// keptDeclarations is how many skills' declarations are kept read.
const keptDeclarations = 128

// Declarations tells how scripts take their arguments, from the bytes of their
// bundle's declaration and nothing else. The zero Declarations works. It is safe
// for concurrent use.
type Declarations struct {
	mu    sync.Mutex
	byKey map[bundle.Digest]*list.Element
	order list.List // of *readDecl, the last used first
}

var _ gate.Declarer = (*Declarations)(nil)

type readDecl struct {
	key  bundle.Digest
	decl declaration
	errs []Diagnostic
}

// Declare returns how script takes its arguments. One that the declaration does
// not name, or that has none, takes a list of strings. A declaration that cannot
// be used is an error for all scripts, which wraps bundle.ErrContent and names
// line and remedy: half of it must not hold.
func (d *Declarations) Declare(b bundle.Bundle, script string) (gate.Declaration, error) {
	if b.IsZero() {
		return gate.Declaration{}, fmt.Errorf("%w: there is no content", bundle.ErrContent)
	}
	r := d.get(b)
	if len(r.errs) > 0 {
		return gate.Declaration{}, &BrokenError{Diagnostics: r.errs}
	}
	got, ok := r.decl.scripts[script]
	if !ok {
		return undeclared(), nil
	}
	got.Schema, got.Flags, got.Outputs = slices.Clone(got.Schema), maps.Clone(got.Flags), slices.Clone(got.Outputs)
	return got, nil
}

func (d *Declarations) get(b bundle.Bundle) *readDecl {
	key := b.Digest()
	d.mu.Lock()
	if e, ok := d.byKey[key]; ok {
		d.order.MoveToFront(e)
		d.mu.Unlock()
		return e.Value.(*readDecl)
	}
	d.mu.Unlock()

	r := &readDecl{key: key} // read outside of the lock; two who come at once both read
	var diags []Diagnostic
	r.decl, diags = readDeclaration(b.Declaration())
	r.errs = errorsOf(diags)

	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byKey == nil {
		d.byKey = map[bundle.Digest]*list.Element{}
	}
	if _, ok := d.byKey[key]; !ok {
		d.byKey[key] = d.order.PushFront(r)
	}
	for d.order.Len() > keptDeclarations {
		delete(d.byKey, d.order.Remove(d.order.Back()).(*readDecl).key)
	}
	return r
}
