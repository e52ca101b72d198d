package image

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"strings"
)

// A layer may hide what lies in those below it: by a file of the name .wh.NAME what
// is there by that name, by one of the name .wh..wh..opq all that its folder holds.
const (
	hides    = ".wh."
	hidesAll = ".wh..wh..opq"
)

// What a path may come to on its way through links.
const (
	maxHops     = 40   // links that are followed, as many as Linux follows
	maxElements = 4096 // elements of the texts of those links
)

// entryWork is how much work there may be for each entry that an image may have: elements
// of links that are followed, and paths that are looked at to hide them. What packers
// write takes one to four of these for an entry.
const entryWork = 16

// layers is what is known of a tree that is made of layers. The nil layers is that of
// one that is not, and notes nothing.
type layers struct {
	now   int
	of    map[string]int             // the layer that a path was named in last
	names map[string]map[string]bool // what lies in each folder
	gone  map[string]bool            // what this layer has hidden, by the path of the file that says so
	left  int64                      // work that may still be done for all of them together
}

func newLayers(l Limits) *layers {
	return &layers{of: map[string]int{}, names: map[string]map[string]bool{}, left: maxElements + entryWork*int64(l.Entries)}
}

// work counts work, which no limit of entries or bytes bounds.
func (l *layers) work(n int) error {
	if l.left -= int64(n); l.left < 0 {
		return bad("its entries lead through too many links, or hide too much again and again")
	}
	return nil
}

// next begins the next layer.
func (l *layers) next() { l.now, l.gone = l.now+1, map[string]bool{} }

// note notes that this layer has the path.
func (l *layers) note(p string) {
	if l == nil || p == "" {
		return
	}
	l.of[p] = l.now
	dir, name := path.Split(p)
	dir = strings.TrimSuffix(dir, "/")
	if l.names[dir] == nil {
		l.names[dir] = map[string]bool{}
	}
	l.names[dir][name] = true
}

// forget notes that nothing is at the path any more.
func (l *layers) forget(p string) {
	delete(l.of, p)
	delete(l.names, p)
	dir, name := path.Split(p)
	delete(l.names[strings.TrimSuffix(dir, "/")], name)
}

// hide takes away what the layers below have at the path and below it. What this layer
// has put there stays, wherever in it that stood.
func (u *unpacker) hide(p string) error {
	n, ok := u.tree.nodes[p]
	if !ok {
		return nil
	}
	l := u.tree.layers
	if err := l.work(1); err != nil {
		return err
	}
	if n.kind == folder {
		if err := u.hideAll(p); err != nil || len(l.names[p]) > 0 {
			return err
		}
	}
	if l.of[p] == l.now {
		return nil
	}
	delete(u.tree.nodes, p)
	l.forget(p)
	if n.kind == link {
		return nil // none is on the disk yet
	}
	return u.root.Remove(p)
}

// hideAll takes away what the layers below have in the folder.
func (u *unpacker) hideAll(dir string) error {
	for name := range u.tree.layers.names[dir] {
		if err := u.hide(path.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// layerEntry takes an entry of a layer: what it names takes the place of what the
// layers below have there.
func (u *unpacker) layerEntry(ctx context.Context, h *tar.Header, r io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := u.tree.limits.clean(h.Name)
	if err != nil {
		return err
	}
	p, err := u.tree.resolve(name)
	if err != nil {
		return err
	}
	if base := path.Base(name); strings.HasPrefix(base, hides) {
		return u.hiding(p, base, h)
	}
	if h.Typeflag == tar.TypeLink {
		target, err := u.linked(h.Linkname)
		if err != nil {
			return err
		}
		if err := u.replace(p); err != nil {
			return err
		}
		if n := u.tree.nodes[target]; n.kind == link {
			return u.link(p, n.target)
		}
		return u.hardLink(p, target)
	}
	if h.Typeflag != tar.TypeDir || u.tree.nodes[p].kind != folder {
		if err := u.replace(p); err != nil {
			return err
		}
	}
	return u.plain(ctx, p, h, r)
}

// linked returns the path that a hard link leads to.
func (u *unpacker) linked(name string) (string, error) {
	p, err := u.tree.limits.clean(name)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(path.Base(p), hides) {
		return "", bad("a hard link leads to %q, which hides something", p)
	}
	return u.tree.resolve(p)
}

// replace makes room at the path for what this layer has there.
func (u *unpacker) replace(p string) error {
	if p == "" {
		return nil // whoever comes there is refused
	}
	if err := u.hide(p); err != nil {
		return err
	}
	if _, ok := u.tree.nodes[p]; ok {
		return bad("the path %q comes twice in one layer", p)
	}
	return nil
}

// hiding hides what the file base at the path says.
func (u *unpacker) hiding(p, base string, h *tar.Header) error {
	if h.Typeflag != tar.TypeReg || h.Size != 0 {
		return bad("%q hides something, and is no empty file", p)
	}
	if u.tree.layers.gone[p] {
		return bad("the path %q comes twice in one layer", p)
	}
	if err := u.tree.count(0); err != nil {
		return err
	}
	if err := u.tree.name(p, ""); err != nil {
		return err
	}
	u.tree.layers.gone[p] = true
	dir := strings.TrimSuffix(strings.TrimSuffix(p, base), "/")
	hidden := strings.TrimPrefix(base, hides)
	switch {
	case base == hidesAll:
		return u.hideAll(dir)
	case hidden == "" || hidden == "." || hidden == ".." || strings.HasPrefix(hidden, hides):
		return bad("%q hides nothing that has a name", p)
	}
	return u.hide(path.Join(dir, hidden))
}

// resolve returns the path that p means, with the links that lead to its folder
// followed as a box would: those of the layers below, in the tree alone. A link of the
// same layer is not followed: no program packs what lies below one.
func (t *tree) resolve(p string) (string, error) {
	dir, base := path.Split(p)
	at, depth, hops, seen := "", 0, 0, 0
	for rest := strings.Split(strings.TrimSuffix(dir, "/"), "/"); len(rest) > 0; {
		e := rest[0]
		rest = rest[1:]
		switch e {
		case "", ".":
			continue
		case "..":
			at, depth = at[:max(strings.LastIndexByte(at, '/'), 0)], max(depth-1, 0)
			continue
		}
		if strings.HasPrefix(e, hides) {
			return "", bad("the path %q lies below a name that hides something", p)
		}
		next := e
		if at != "" {
			next = at + "/" + e
		}
		n := t.nodes[next]
		if n.kind != link {
			if at, depth = next, depth+1; depth > t.limits.Depth || len(at) > t.limits.PathBytes {
				return "", bad("the path %q leads to one of more than %d elements or %d bytes", p, t.limits.Depth, t.limits.PathBytes)
			}
			continue
		}
		if t.layers.of[next] == t.layers.now {
			return "", bad("the path %q lies below the link %q of the same layer", p, next)
		}
		text := strings.Split(n.target, "/")
		hops, seen = hops+1, seen+len(text)
		if hops > maxHops || seen > maxElements {
			return "", bad("the path %q leads through too many links", p)
		}
		if err := t.layers.work(len(text)); err != nil {
			return "", err
		}
		if path.IsAbs(n.target) {
			at, depth = "", 0
		}
		rest = append(text, rest...)
	}
	return t.limits.clean(path.Join(at, base))
}

// readLayers unpacks the layers, the lowest first. What is read of all of them together
// is bounded.
func (u *unpacker) readLayers(ctx context.Context, list []Layer) error {
	u.tree.layers = newLayers(u.tree.limits)
	left := u.tree.limits.archive()
	for _, open := range list {
		u.tree.layers.next()
		layer, err := open()
		if err != nil {
			return err
		}
		whole := &bounded{r: layer, left: left}
		if err = u.readEntries(ctx, whole, u.layerEntry); err == nil {
			err = whole.end(ctx)
		}
		if err := errors.Join(err, layer.Close()); err != nil {
			return err
		}
		left = whole.left
	}
	return u.rootFileSystem()
}
