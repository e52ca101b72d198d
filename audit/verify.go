package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// A Tree is the size and the root of a log.
type Tree struct {
	Size uint64
	Root Hash
}

// Verify computes the log again from its leaves: that each decodes, stands at
// its place, has the hash and the columns that are kept beside it, follows the
// tenant's leaf before it, and that all together have the root that the store
// keeps. Progress, if not nil, is called with the number of leaves done, now and then.
//
// It finds a change, a gap and a swap. A log that was cut, or rolled back whole
// together with its frontier, adds up again: see [Log.VerifyClaims].
//
// # Errors
//
// A *BrokenError, or one that wraps ErrBroken, for a log that does not add up;
// another one when it could not be read.
func (l *Log) Verify(ctx context.Context, progress func(done uint64)) (Tree, error) {
	v := verifier{log: l, progress: progress}
	return v.walk(ctx)
}

// A Claim is a checkpoint that somebody keeps, who is not the store.
type Claim struct {
	From string // who keeps it, for messages
	Note []byte
}

// Claims yields claims of one keeper, by rising size.
type Claims = iter.Seq2[Claim, error]

// A Verified is what [Log.VerifyClaims] found in order.
type Verified struct {
	Tree   Tree
	Signed uint64    // how many of the entries a claim covers
	Claims int       // how many claims were compared
	Key    PublicKey // that signs now
}

// VerifyClaims is Verify, and compares with what others keep: each claim must be
// signed by the key that signs at that point of the log, and the log must have had
// that root at that size. The first of keys is the one that signs first; from
// there on the log itself hands over (see [SigningKey.Rotation]). The others are
// believed only about more entries than the log has, where it says nothing. It reads the log once, in memory
// that does not grow with it.
//
// # Errors
//
// As those of Verify; ErrRolledBack where a claim tells of more entries than the
// log has; ErrAltered where the first so many are not those of a claim;
// ErrUnsigned where a claim has no signature that holds, or where there are
// entries and no claim at all.
func (l *Log) VerifyClaims(ctx context.Context, keys []PublicKey, progress func(done uint64), keepers ...Claims) (Verified, error) {
	if len(keys) == 0 {
		return Verified{}, fmt.Errorf("%w: there is no key to verify with", ErrUnsigned)
	}
	if _, err := verifiers(keys); err != nil {
		return Verified{}, err
	}
	c := &comparison{key: keys[0], known: keys}
	for _, k := range keepers {
		next, stop := iter.Pull2(k)
		defer stop()
		p := &keeper{next: next}
		if err := p.pull(); err != nil {
			return Verified{}, err
		}
		c.keepers = append(c.keepers, p)
	}
	v := verifier{log: l, progress: progress, at: c.at, entry: c.entry}
	tree, err := v.walk(ctx)
	if err != nil {
		return Verified{}, err
	}
	// Who reads while others write finds claims about what they wrote meanwhile.
	now, err := l.sink.Tip(ctx)
	if err != nil {
		return Verified{}, fmt.Errorf("audit: verify: %w", err)
	}
	if err := c.end(tree, now.Size()); err != nil {
		return Verified{}, err
	}
	return Verified{tree, c.signed.Size, c.claims, c.key}, nil
}

// verifier walks over a log.
type verifier struct {
	log      *Log
	progress func(uint64)
	at       func(Frontier) error // called for each size of the tree, zero too
	entry    func(uint64, Entry) error
}

func (v *verifier) walk(ctx context.Context) (Tree, error) {
	kept, err := v.log.sink.Tip(ctx)
	if err != nil {
		return Tree{}, fmt.Errorf("audit: verify: %w", err)
	}
	var f Frontier
	var more bool
	tenants := map[string]Link{}
	if err := v.reached(f); err != nil {
		return Tree{}, err
	}
	for leaf, err := range v.log.sink.Leaves(ctx, "", 0) {
		if err != nil {
			return Tree{}, fmt.Errorf("audit: verify: %w", err)
		}
		if f.Size() == kept.Size() {
			more = true // written since Tip was read, or a tip that was rolled back
			break
		}
		e, at, err := Decode(leaf.Bytes)
		h := LeafHash(leaf.Bytes)
		last := tenants[e.Tenant]
		switch {
		case leaf.Index != f.Size():
			err = broken(f.Size(), ErrMissing, "entry %d is missing; the next one is %d", f.Size(), leaf.Index)
		case err != nil:
			err = broken(leaf.Index, ErrAltered, "%w", err)
		case h != leaf.Hash:
			err = broken(leaf.Index, ErrAltered, "its hash is not the one kept beside it: its bytes were changed")
		case leaf.Tenant != e.Tenant || leaf.Seq != at.Seq:
			err = broken(leaf.Index, ErrAltered, "the columns beside it say another tenant or sequence number")
		case at.Seq != last.Seq+1:
			err = broken(leaf.Index, ErrMissing, "its tenant's sequence goes from %d to %d", last.Seq, at.Seq)
		case at.Prev != last.Prev:
			err = broken(leaf.Index, ErrAltered, "it does not follow its tenant's entry before it")
		case v.entry != nil:
			err = v.entry(leaf.Index, e)
		}
		if err != nil {
			return Tree{}, err
		}
		tenants[e.Tenant] = Link{at.Seq, h}
		f = f.add(h)
		if err := v.reached(f); err != nil {
			return Tree{}, err
		}
		if v.progress != nil && f.Size()%1024 == 0 {
			v.progress(f.Size())
		}
	}
	if f.Size() != kept.Size() {
		return Tree{}, broken(f.Size(), ErrTruncated, "it is missing: the log ends after %d entries, and %d were written", f.Size(), kept.Size())
	}
	if more {
		now, err := v.log.sink.Tip(ctx)
		if err != nil {
			return Tree{}, fmt.Errorf("audit: verify: %w", err)
		}
		if now.Size() <= kept.Size() {
			return Tree{}, broken(f.Size(), ErrAltered, "it stands behind the end: %d entries were written", now.Size())
		}
	}
	if f.Root() != kept.Root() {
		return Tree{}, fmt.Errorf("%w: the root of its %d entries is not the one kept beside them", ErrAltered, f.Size())
	}
	return Tree{f.Size(), f.Root()}, nil
}

func (v *verifier) reached(f Frontier) error {
	if v.at == nil {
		return nil
	}
	return v.at(f)
}

// comparison is what a verification knows from outside.
type comparison struct {
	key     PublicKey // that signs at this point of the log
	known   []PublicKey
	keepers []*keeper
	signed  Tree // of the last claim that holds
	claims  int
}

// keeper is one who keeps claims; it holds the next of them.
type keeper struct {
	next  func() (Claim, error, bool)
	claim Claim
	says  Checkpoint // zero at the end
}

func (k *keeper) pull() error {
	last := k.says
	claim, err, ok := k.next()
	if !ok {
		k.says = Checkpoint{}
		return nil
	}
	if err != nil {
		return err
	}
	k.claim = claim
	if k.says, err = ParseCheckpoint(claim.Note); err != nil {
		return fmt.Errorf("%w: what %s keeps: %w", ErrUnsigned, claim.From, err)
	}
	if k.says.Tree.Size < last.Tree.Size {
		return fmt.Errorf("%w: %s has the checkpoint of %d entries behind that of %d", ErrAltered, claim.From, k.says.Tree.Size, last.Tree.Size)
	}
	return nil
}

// at compares every claim about a tree of the size of f.
func (c *comparison) at(f Frontier) error {
	for _, k := range c.keepers {
		for !k.says.IsZero() && k.says.Tree.Size == f.Size() {
			if _, err := OpenCheckpoint(k.claim.Note, c.key); err != nil {
				return fmt.Errorf("%w (kept by %s; the key there is %s)", err, k.claim.From, c.key)
			}
			if k.says.Tree.Root != f.Root() {
				return broken(c.signed.Size, ErrAltered, "the first %d entries are those that were signed, the first %d are not (by the checkpoint kept by %s): the first that was altered is among the %d between",
					c.signed.Size, f.Size(), k.claim.From, f.Size()-c.signed.Size)
			}
			c.claims++
			c.signed = k.says.Tree
			if err := k.pull(); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry follows the key from hand to hand.
func (c *comparison) entry(index uint64, e Entry) error {
	statement := e.Fact(FactRotation)
	if e.Kind != Keeping || !rotationOf(statement, c.key.Origin()) {
		return nil // on several hosts each has its own key and name
	}
	next, err := CheckRotation(statement, c.key)
	if err != nil {
		return &BrokenError{index, err}
	}
	c.key = next
	return nil
}

// end says what the claims mean that are left: about more entries than those of t
// that were compared, in a log that has size entries by now.
func (c *comparison) end(t Tree, size uint64) error {
	for _, k := range c.keepers {
		for !k.says.IsZero() && k.says.Tree.Size <= size {
			if err := k.pull(); err != nil {
				return err
			}
		}
		if !k.says.IsZero() {
			if _, err := OpenCheckpoint(k.claim.Note, append([]PublicKey{c.key}, c.known...)...); err != nil {
				return fmt.Errorf("%w (kept by %s)", err, k.claim.From)
			}
			return fmt.Errorf("%w: it has %d entries, and %s keeps a checkpoint of %d", ErrRolledBack, size, k.claim.From, k.says.Tree.Size)
		}
	}
	if t.Size > 0 && c.claims == 0 {
		return fmt.Errorf("%w: it has %d entries, and nobody keeps a checkpoint of it", ErrUnsigned, t.Size)
	}
	return nil
}

// FactRotation is the fact of a [Keeping] entry that holds the statement of a
// rotation: see [SigningKey.Rotation].
const FactRotation = "rotation"

// Tip returns where the log ends, as the store keeps it.
func (l *Log) Tip(ctx context.Context) (Frontier, error) { return l.sink.Tip(ctx) }

// Follow adds the leaves that stand behind f in the log to f, up to size leaves in
// all. Each, if not nil, is called with the hash of each of them and the frontier
// with it; what it returns ends the walk.
//
// # Errors
//
// A *BrokenError where a leaf is missing or is not the one whose hash is kept.
func (l *Log) Follow(ctx context.Context, f Frontier, size uint64, each func(Hash, Frontier) error) (Frontier, error) {
	if f.Size() >= size {
		return f, nil
	}
	for leaf, err := range l.sink.Leaves(ctx, "", f.Size()) {
		if err != nil {
			return f, err
		}
		h := LeafHash(leaf.Bytes)
		switch {
		case leaf.Index != f.Size():
			return f, broken(f.Size(), ErrMissing, "entry %d is missing; the next one is %d", f.Size(), leaf.Index)
		case h != leaf.Hash:
			return f, broken(leaf.Index, ErrAltered, "its hash is not the one kept beside it: its bytes were changed")
		}
		f = f.add(h)
		if each != nil {
			if err := each(h, f); err != nil {
				return f, err
			}
		}
		if f.Size() == size {
			return f, nil
		}
	}
	return f, broken(f.Size(), ErrTruncated, "it is missing: the log ends after %d entries, and %d were written", f.Size(), size)
}

// ErrNoEntry is the error for an index that the log does not reach.
var ErrNoEntry = errors.New("audit: the log has no such entry")

// Leaf returns the leaf at index, decoded.
func (l *Log) Leaf(ctx context.Context, index uint64) (Leaf, error) {
	for leaf, err := range l.Entries(ctx, "", index) {
		if err == nil && leaf.Index != index {
			err = broken(index, ErrMissing, "the next one is %d", leaf.Index)
		}
		return leaf, err
	}
	return Leaf{}, fmt.Errorf("%w: %d", ErrNoEntry, index)
}
