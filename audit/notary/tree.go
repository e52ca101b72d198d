package notary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"sync"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/ownfile"
)

// A tree keeps the inner hashes of the log in a file beside it: 64 bytes for an
// entry. They can be computed from the log at any time, and nothing is believed
// because it stands there: a proof is computed with them, and checked against
// the checkpoint before it is handed out.
type tree struct {
	log      *audit.Log
	path     string
	readOnly bool // the file stays as it is: another one is made for a moment
	mu       sync.Mutex
}

const hashBytes = int64(len(audit.Hash{}))

// prove returns the proof of the leaf at index in c.
func (t *tree) prove(ctx context.Context, c audit.Checkpoint, index uint64, leaf []byte) (p audit.Proof, err error) {
	err = t.with(ctx, c.Tree, func(read audit.HashReader) error {
		p, err = audit.Prove(c, index, leaf, read)
		return err
	})
	return p, err
}

// consistency returns the proof that the tree after goes on from the first before
// leaves.
func (t *tree) consistency(ctx context.Context, before uint64, after audit.Tree) (path []audit.Hash, err error) {
	err = t.with(ctx, after, func(read audit.HashReader) error {
		path, err = audit.ProveConsistency(before, after.Size, read)
		return err
	})
	return path, err
}

// with calls f with hashes that make the root of want.
func (t *tree) with(ctx context.Context, want audit.Tree, f func(audit.HashReader) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	file, leave, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for range 2 {
		read, err := t.grow(ctx, file, want.Size)
		if err != nil {
			return err
		}
		root, err := audit.RootOf(want.Size, read)
		if err != nil {
			return err
		}
		if root == want.Root {
			return f(read)
		}
		// What stands in the file is of another log: begin anew, once.
		if err := file.Truncate(0); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: its first %d entries are not those of the checkpoint", audit.ErrAltered, want.Size)
}

// open returns the file, and what gives it back. Who only reads gets a copy of what is
// there, which is gone afterwards.
func (t *tree) open(ctx context.Context) (*os.File, func(), error) {
	if !t.readOnly {
		lock, err := ownfile.WaitLock(ctx, t.path)
		if err != nil {
			return nil, nil, err
		}
		return lock.File(), func() { _ = lock.Close() }, nil
	}
	f, err := os.CreateTemp("", "tracon-tree-")
	if err != nil {
		return nil, nil, err
	}
	leave := func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }
	if was, err := ownfile.Open(t.path, os.O_RDONLY); err == nil {
		_, err = io.Copy(f, was)
		if err = errors.Join(err, was.Close()); err != nil {
			leave()
			return nil, nil, err
		}
	}
	return f, leave, nil
}

// grow adds the hashes of the leaves that are missing, up to size leaves.
func (t *tree) grow(ctx context.Context, f *os.File, size uint64) (audit.HashReader, error) {
	in, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// A file that was cut has the hashes of fewer leaves.
	have := uint64(sort.Search(int(size)+1, func(n int) bool { return audit.InnerCount(uint64(n))*hashBytes > in.Size() })) - 1
	w := &appender{f: f, at: audit.InnerCount(have)}
	if have < size {
		if err := f.Truncate(w.at * hashBytes); err != nil {
			return nil, err
		}
	}
	for leaf, err := range t.log.Entries(ctx, "", have) {
		if err != nil {
			return nil, err
		}
		if leaf.Index >= size {
			break
		}
		if leaf.Index != have {
			return nil, fmt.Errorf("%w: entry %d", audit.ErrMissing, have)
		}
		hashes, err := audit.InnerHashes(have, leaf.Hash, w.read)
		if err != nil {
			return nil, err
		}
		if err := w.add(hashes); err != nil {
			return nil, err
		}
		have++
	}
	return w.read, w.flush()
}

// appender writes hashes behind those in a file, some at a time.
type appender struct {
	f    *os.File
	at   int64 // how many are in the file
	next []audit.Hash
}

func (w *appender) add(hashes []audit.Hash) error {
	w.next = append(w.next, hashes...)
	if len(w.next) < 4096 {
		return nil
	}
	return w.flush()
}

func (w *appender) flush() error {
	b := make([]byte, 0, int64(len(w.next))*hashBytes)
	for _, h := range w.next {
		b = append(b, h[:]...)
	}
	_, err := w.f.WriteAt(b, w.at*hashBytes)
	w.at, w.next = w.at+int64(len(w.next)), w.next[:0]
	return err
}

func (w *appender) read(positions []int64) ([]audit.Hash, error) {
	hashes := make([]audit.Hash, len(positions))
	for i, p := range positions {
		if p >= w.at {
			if p-w.at >= int64(len(w.next)) {
				return nil, io.ErrUnexpectedEOF
			}
			hashes[i] = w.next[p-w.at]
			continue
		}
		if _, err := w.f.ReadAt(hashes[i][:], p*hashBytes); err != nil {
			return nil, err
		}
	}
	return hashes, nil
}
