package audit

import (
	"context"
	"errors"
	"fmt"
)

// ErrBroken is wrapped by the error of a log that does not add up.
var ErrBroken = errors.New("audit: the log does not add up")

// A BrokenError names the first leaf that does not add up.
type BrokenError struct {
	Index uint64 // of the leaf
	Err   error  // what is wrong with it
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("%v at entry %d: %v", ErrBroken, e.Index, e.Err)
}
func (e *BrokenError) Unwrap() []error { return []error{ErrBroken, e.Err} }

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
// together with its frontier, adds up again: only an anchor outside of it tells.
//
// # Errors
//
// A *BrokenError, or one that wraps ErrBroken, for a log that does not add up;
// another one when it could not be read.
func (l *Log) Verify(ctx context.Context, progress func(done uint64)) (Tree, error) {
	kept, err := l.sink.Tip(ctx)
	if err != nil {
		return Tree{}, fmt.Errorf("audit: verify: %w", err)
	}
	var f Frontier
	var more bool
	tenants := map[string]Link{}
	for leaf, err := range l.sink.Leaves(ctx, "", 0) {
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
			err = fmt.Errorf("entry %d is missing; the next one is %d", f.Size(), leaf.Index)
			return Tree{}, &BrokenError{f.Size(), err}
		case err != nil:
		case h != leaf.Hash:
			err = errors.New("its hash is not the one kept beside it: its bytes were changed")
		case leaf.Tenant != e.Tenant || leaf.Seq != at.Seq:
			err = errors.New("the columns beside it say another tenant or sequence number")
		case at.Seq != last.Seq+1:
			err = fmt.Errorf("its tenant's sequence goes from %d to %d", last.Seq, at.Seq)
		case at.Prev != last.Prev:
			err = errors.New("it does not follow its tenant's entry before it")
		}
		if err != nil {
			return Tree{}, &BrokenError{leaf.Index, err}
		}
		tenants[e.Tenant] = Link{at.Seq, h}
		f = f.add(h)
		if progress != nil && f.Size()%1024 == 0 {
			progress(f.Size())
		}
	}
	if f.Size() != kept.Size() {
		err := fmt.Errorf("it is missing: the log ends after %d entries, and %d were written", f.Size(), kept.Size())
		return Tree{}, &BrokenError{f.Size(), err}
	}
	if more {
		now, err := l.sink.Tip(ctx)
		if err != nil {
			return Tree{}, fmt.Errorf("audit: verify: %w", err)
		}
		if now.Size() <= kept.Size() {
			return Tree{}, &BrokenError{f.Size(), fmt.Errorf("it stands behind the end: %d entries were written", now.Size())}
		}
	}
	if f.Root() != kept.Root() {
		return Tree{}, fmt.Errorf("%w: the root of its %d entries is not the one kept beside them", ErrBroken, f.Size())
	}
	return Tree{f.Size(), f.Root()}, nil
}
