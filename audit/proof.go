package audit

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// ErrProof is wrapped by the error for a proof that does not hold.
var ErrProof = errors.New("audit: the proof does not hold")

// A HashReader returns the hashes that are kept of a tree at those positions:
// see [InnerHashes]. What it returns is not believed, it is computed with.
type HashReader func(positions []int64) ([]Hash, error)

func (r HashReader) tlog() tlog.HashReader {
	return tlog.HashReaderFunc(func(positions []int64) ([]tlog.Hash, error) {
		read, err := r(positions)
		if err == nil && len(read) != len(positions) {
			err = fmt.Errorf("audit: %d hashes were read, and %d asked for", len(read), len(positions))
		}
		if err != nil {
			return nil, err
		}
		hashes := make([]tlog.Hash, len(read))
		for i, h := range read {
			hashes[i] = tlog.Hash(h)
		}
		return hashes, nil
	})
}

// InnerHashes returns the hashes to keep, behind those that are kept, for a leaf
// that stands at index: its own, and those of the subtrees that it completes.
func InnerHashes(index uint64, leaf Hash, kept HashReader) ([]Hash, error) {
	hashes, err := tlog.StoredHashesForRecordHash(int64(index), tlog.Hash(leaf), kept.tlog())
	return ours(hashes), err
}

// InnerCount returns how many hashes are kept of a tree of that size.
func InnerCount(size uint64) int64 { return tlog.StoredHashCount(int64(size)) }

// RootOf returns the root of the tree of that size, from the hashes that are kept.
func RootOf(size uint64, kept HashReader) (Hash, error) {
	h, err := tlog.TreeHash(int64(size), kept.tlog())
	return Hash(h), err
}

func ours(hashes []tlog.Hash) []Hash {
	list := make([]Hash, len(hashes))
	for i, h := range hashes {
		list[i] = Hash(h)
	}
	return list
}

func theirs(hashes []Hash) []tlog.Hash {
	list := make([]tlog.Hash, len(hashes))
	for i, h := range hashes {
		list[i] = tlog.Hash(h)
	}
	return list
}

// A Proof is a receipt that needs nobody's word: the leaf of an entry, the
// hashes from it to the root of a checkpoint, and the checkpoint. Its text is
// C2SP's tlog-proof, with the leaf in its "extra" line.
type Proof struct {
	Index      uint64
	Leaf       []byte
	Path       []Hash
	Checkpoint Checkpoint
}

// IsZero reports whether p proves nothing.
func (p Proof) IsZero() bool { return p.Leaf == nil }

// Prove returns the proof that leaf stands at index in the log of c. It holds, or
// there is an error that wraps ErrProof.
func Prove(c Checkpoint, index uint64, leaf []byte, kept HashReader) (Proof, error) {
	if index >= c.Tree.Size {
		return Proof{}, fmt.Errorf("%w: entry %d is not among the %d of the checkpoint", ErrProof, index, c.Tree.Size)
	}
	path, err := tlog.ProveRecord(int64(c.Tree.Size), int64(index), kept.tlog())
	if err != nil {
		return Proof{}, fmt.Errorf("%w: %w", ErrProof, err)
	}
	p := Proof{index, slices.Clone(leaf), ours(path), c}
	return p, p.check()
}

// check says whether the leaf stands where p says; the checkpoint's signature is
// not looked at.
func (p Proof) check() error {
	size, root := int64(p.Checkpoint.Tree.Size), tlog.Hash(p.Checkpoint.Tree.Root)
	if p.Index >= p.Checkpoint.Tree.Size {
		return fmt.Errorf("%w: entry %d is not among the %d of the checkpoint", ErrProof, p.Index, p.Checkpoint.Tree.Size)
	}
	if err := tlog.CheckRecord(theirs(p.Path), size, root, int64(p.Index), tlog.Hash(LeafHash(p.Leaf))); err != nil {
		return fmt.Errorf("%w: the leaf does not stand at %d in the tree of the checkpoint", ErrProof, p.Index)
	}
	return nil
}

// Entry returns the entry that p proves, and its place in its tenant's history.
func (p Proof) Entry() (Entry, Link, error) { return Decode(p.Leaf) }

const proofHeader = "c2sp.org/tlog-proof@v1"

// MaxProof is the most bytes that the text of a proof may have.
const MaxProof = 1 << 20

// MarshalText writes p.
func (p Proof) MarshalText() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nextra %s\nindex %d\n", proofHeader, base64.StdEncoding.EncodeToString(p.Leaf), p.Index)
	for _, h := range p.Path {
		fmt.Fprintln(&b, base64.StdEncoding.EncodeToString(h[:]))
	}
	b.WriteByte('\n')
	b.Write(p.Checkpoint.Note)
	return b.Bytes(), nil
}

// OpenProof reads a proof and checks it: the leaf is one, it stands in the tree of
// the checkpoint, and one of keys has signed that.
//
// # Errors
//
// ErrProof for what is none or does not hold; ErrUnsigned where the checkpoint
// has no signature of keys that holds.
func OpenProof(text []byte, keys ...PublicKey) (Proof, error) {
	p, err := parseProof(text)
	if err != nil {
		return Proof{}, err
	}
	if p.Checkpoint, err = OpenCheckpoint(p.Checkpoint.Note, keys...); err != nil {
		return Proof{}, err
	}
	if err := p.check(); err != nil {
		return Proof{}, err
	}
	if _, _, err := p.Entry(); err != nil {
		return Proof{}, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return p, nil
}

// parseProof reads a proof without checking anything: what it says of itself.
func parseProof(text []byte) (Proof, error) {
	bad := func(why string) (Proof, error) { return Proof{}, fmt.Errorf("%w: %s", ErrProof, why) }
	if len(text) > MaxProof {
		return bad("it is too long")
	}
	head, signed, ok := strings.Cut(string(text), "\n\n")
	lines := strings.Split(head, "\n")
	if !ok || len(lines) < 3 || lines[0] != proofHeader {
		return bad("it does not begin with " + proofHeader)
	}
	var p Proof
	extra, ok := strings.CutPrefix(lines[1], "extra ")
	if !ok {
		return bad("it has no leaf")
	}
	var err error
	if p.Leaf, err = base64.StdEncoding.Strict().DecodeString(extra); err != nil || len(p.Leaf) == 0 {
		return bad("its leaf is not in base64")
	}
	index, ok := strings.CutPrefix(lines[2], "index ")
	n, err := strconv.ParseInt(index, 10, 64)
	if !ok || err != nil || n < 0 || strconv.FormatInt(n, 10) != index {
		return bad("its index is no plain number")
	}
	p.Index = uint64(n)
	if len(lines) > 3+63 {
		return bad("it has more hashes than any tree is high")
	}
	for _, line := range lines[3:] {
		h, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(h) != len(Hash{}) {
			return bad("a line of it is no hash in base64")
		}
		p.Path = append(p.Path, Hash(h))
	}
	if p.Checkpoint, err = ParseCheckpoint([]byte(signed)); err != nil {
		return bad(err.Error())
	}
	return p, nil
}

// ProveConsistency returns the hashes that show that the tree of size after
// begins with that of size before.
func ProveConsistency(before, after uint64, kept HashReader) ([]Hash, error) {
	if before == 0 || before > after {
		return nil, fmt.Errorf("%w: from %d to %d entries there is none", ErrProof, before, after)
	}
	path, err := tlog.ProveTree(int64(after), int64(before), kept.tlog())
	return ours(path), err
}

// CheckConsistency says whether path shows that the tree after begins with the
// tree before; nil, or an error that wraps ErrProof. Every tree begins with the
// empty one, and with itself: there path must be empty.
func CheckConsistency(path []Hash, before, after Tree) error {
	switch {
	case before.Size > after.Size:
		return fmt.Errorf("%w: %d entries are fewer than %d", ErrProof, after.Size, before.Size)
	case before.Size == 0 && before.Root != (Frontier{}).Root():
		return fmt.Errorf("%w: the empty tree has another root", ErrProof)
	case before.Size == 0 || before == after:
		if len(path) > 0 {
			return fmt.Errorf("%w: there is nothing to prove", ErrProof)
		}
		return nil
	}
	if err := tlog.CheckTree(theirs(path), int64(after.Size), tlog.Hash(after.Root), int64(before.Size), tlog.Hash(before.Root)); err != nil {
		return fmt.Errorf("%w: the tree of %d entries does not begin with that of %d", ErrProof, after.Size, before.Size)
	}
	return nil
}
