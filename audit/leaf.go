package audit

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// A Hash is that of a leaf or of a tree, as RFC 6962 computes it.
type Hash [tlog.HashSize]byte

// IsZero reports whether h is the zero Hash, which is that of nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// String returns 64 lower-case hex digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes [Hash.String].
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what [Hash.MarshalText] writes.
func (h *Hash) UnmarshalText(b []byte) error {
	var read Hash
	if len(b) != hex.EncodedLen(len(h)) {
		return fmt.Errorf("audit: a hash has %d hex digits, not %d bytes", 2*len(h), len(b))
	}
	if _, err := hex.Decode(read[:], b); err != nil {
		return fmt.Errorf("audit: a hash: %w", err)
	}
	if read.String() != string(b) {
		return errors.New("audit: a hash has lower-case hex digits")
	}
	*h = read
	return nil
}

const leafDomain = "tracon/leaf/1"

// Link is the place of a leaf in its tenant's history.
type Link struct {
	Seq  uint64 // from 1
	Prev Hash   // hash of the tenant's leaf before it; zero for the first
}

// encode writes the leaf of e at its place.
func encode(e Entry, at Link) []byte {
	b := append(make([]byte, 0, 512), leafDomain...)
	b = binary.BigEndian.AppendUint64(b, at.Seq)
	b = append(b, at.Prev[:]...)
	b = appendText(b, e.ID)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time.UnixMicro()))
	for _, s := range []string{e.Tenant, e.Actor, string(e.Kind), e.Subject, e.Run} {
		b = appendText(b, s)
	}
	b = binary.BigEndian.AppendUint64(b, e.Count)
	b = binary.BigEndian.AppendUint64(b, uint64(len(e.Facts)))
	for _, f := range e.Facts {
		b = appendText(appendText(b, f.Name), f.Value)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
}

// ErrLeaf is wrapped by the error for bytes that are no leaf.
var ErrLeaf = errors.New("audit: not a leaf")

// Decode reads a leaf. It takes exactly what this package writes: bytes that
// decode also encode to the same bytes.
func Decode(leaf []byte) (Entry, Link, error) {
	d := decoder{rest: leaf}
	if string(d.take(uint64(len(leafDomain)))) != leafDomain {
		return Entry{}, Link{}, fmt.Errorf("%w: it does not begin with %q", ErrLeaf, leafDomain)
	}
	var at Link
	at.Seq = d.number()
	copy(at.Prev[:], d.take(uint64(len(at.Prev))))
	var e Entry
	e.ID = d.text()
	e.Time = time.UnixMicro(int64(d.number())).UTC()
	e.Tenant, e.Actor, e.Kind, e.Subject, e.Run = d.text(), d.text(), Kind(d.text()), d.text(), d.text()
	e.Count = d.number()
	n := d.number()
	if n > MaxFacts {
		return Entry{}, Link{}, fmt.Errorf("%w: %d facts, at most %d", ErrLeaf, n, MaxFacts)
	}
	for range n {
		e.Facts = append(e.Facts, Fact{d.text(), d.text()})
	}
	switch {
	case d.short:
		return Entry{}, Link{}, fmt.Errorf("%w: it ends too early", ErrLeaf)
	case len(d.rest) > 0:
		return Entry{}, Link{}, fmt.Errorf("%w: %d bytes too many", ErrLeaf, len(d.rest))
	case at.Seq == 0:
		return Entry{}, Link{}, fmt.Errorf("%w: its sequence number is zero", ErrLeaf)
	}
	if err := e.check(); err != nil {
		return Entry{}, Link{}, fmt.Errorf("%w: %w", ErrLeaf, err)
	}
	return e, at, nil
}

type decoder struct {
	rest  []byte
	short bool
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.short, d.rest = true, nil
		return nil
	}
	var b []byte
	b, d.rest = d.rest[:n], d.rest[n:]
	return b
}

func (d *decoder) number() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) text() string { return string(d.take(d.number())) }

// LeafHash returns the hash of a leaf's bytes.
func LeafHash(leaf []byte) Hash { return Hash(tlog.RecordHash(leaf)) }

// A Frontier is the right edge of the tree: one hash for each complete subtree,
// the largest first. It is all that is needed to add a leaf or to tell the root,
// so a store keeps it beside the leaves. The zero Frontier is that of the empty tree.
type Frontier struct {
	size uint64
	edge []Hash
}

// NewFrontier returns the frontier of a tree of that size, as it was kept. It
// fails when the number of hashes is not that of such a tree.
func NewFrontier(size uint64, edge []Hash) (Frontier, error) {
	n := 0
	for s := size; s > 0; s &= s - 1 {
		n++
	}
	if len(edge) != n {
		return Frontier{}, fmt.Errorf("%w: a tree of %d leaves has an edge of %d hashes, not %d", ErrBroken, size, n, len(edge))
	}
	return Frontier{size, slices.Clone(edge)}, nil
}

// Size returns the number of leaves.
func (f Frontier) Size() uint64 { return f.size }

// Edge returns the hashes to keep.
func (f Frontier) Edge() []Hash { return slices.Clone(f.edge) }

// Root returns the root of the tree, as RFC 6962 computes it: that of the empty
// string for the empty tree.
func (f Frontier) Root() Hash {
	if f.size == 0 {
		h, _ := tlog.TreeHash(0, nil)
		return Hash(h)
	}
	root := f.edge[len(f.edge)-1]
	for _, left := range slices.Backward(f.edge[:len(f.edge)-1]) {
		root = node(left, root)
	}
	return root
}

// add returns the frontier with one leaf more.
func (f Frontier) add(leaf Hash) Frontier {
	edge := slices.Clone(f.edge)
	for s := f.size; s&1 == 1; s >>= 1 {
		leaf = node(edge[len(edge)-1], leaf)
		edge = edge[:len(edge)-1]
	}
	return Frontier{f.size + 1, append(edge, leaf)}
}

func node(left, right Hash) Hash { return Hash(tlog.NodeHash(tlog.Hash(left), tlog.Hash(right))) }
