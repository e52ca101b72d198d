package notary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/ownfile"
)

// An anchor is the last checkpoint that one place tells of; the zero one where
// it has none.
type anchor struct {
	Checkpoint audit.Checkpoint
	from       string
	frontier   audit.Frontier // of the mark alone
}

// The places of anchors, by their index.
const (
	atHere = iota
	atSecond
	atMark
	places
)

// anchors reads the last checkpoint of every place, each signed by one of public.
func (n *Notary) anchors(public []audit.PublicKey) ([]anchor, error) {
	list := make([]anchor, places)
	open := func(at int, from string, note []byte) error {
		c, err := audit.OpenCheckpoint(note, public...)
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		list[at] = anchor{Checkpoint: c, from: from}
		return nil
	}
	for at, path := range []string{atHere: File(n.c.Data), atSecond: n.there(public[0].Origin())} {
		if path == "" {
			continue
		}
		c, err := newest(path)
		if err != nil && at == atSecond && !errors.Is(err, audit.ErrBroken) {
			return nil, n.noSecond(err)
		}
		if err == nil && c.IsZero() {
			continue
		}
		if err == nil {
			err = open(at, path, c.Note)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrLoss, err)
		}
	}
	m, err := n.readMark()
	if err != nil {
		return nil, lossIf(err)
	}
	if m.Note == "" {
		return list, nil
	}
	if m.Keys[0] != public[0] {
		return nil, fmt.Errorf("%w: %w: the high-water mark %s knows the key %s, and the folder of keys begins with %s", ErrLoss, ErrKey, n.markPath(), m.Keys[0], public[0])
	}
	if err := open(atMark, n.markPath(), []byte(m.Note)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLoss, err)
	}
	f, err := audit.NewFrontier(list[atMark].Checkpoint.Tree.Size, m.Edge)
	if err != nil || f.Root() != list[atMark].Checkpoint.Tree.Root {
		return nil, fmt.Errorf("%w: %w: the high-water mark %s is damaged", ErrLoss, audit.ErrUnsigned, n.markPath())
	}
	list[atMark].frontier = f
	return list, nil
}

// compare says whether the log goes on from every anchor. It reads what was
// written since the mark; without a mark, all. It returns where the log ends.
func (n *Notary) compare(ctx context.Context, anchors []anchor) (audit.Frontier, error) {
	tip, err := n.c.Log.Tip(ctx)
	if err != nil {
		return tip, err
	}
	loss := func(err error) (audit.Frontier, error) { return tip, fmt.Errorf("%w: %w", ErrLoss, err) }
	by := slices.Clone(anchors)
	slices.SortStableFunc(by, func(a, b anchor) int { return cmp.Compare(b.Checkpoint.Tree.Size, a.Checkpoint.Tree.Size) })
	if most := by[0]; most.Checkpoint.Tree.Size > tip.Size() {
		return loss(fmt.Errorf("%w: it has %d entries, and %s tells of %d", audit.ErrRolledBack, tip.Size(), most.from, most.Checkpoint.Tree.Size))
	}
	from := anchors[atMark].frontier
	roots := map[uint64]audit.Hash{from.Size(): from.Root()}
	f, err := n.c.Log.Follow(ctx, from, tip.Size(), func(_ audit.Hash, f audit.Frontier) error {
		for _, a := range anchors {
			if a.Checkpoint.Tree.Size == f.Size() {
				roots[f.Size()] = f.Root()
			}
		}
		return nil
	})
	if errors.Is(err, audit.ErrBroken) {
		return loss(err)
	}
	if err != nil {
		return tip, err
	}
	if f.Root() != tip.Root() {
		return loss(fmt.Errorf("%w: the %d entries that stand in it are not those that were written", audit.ErrAltered, f.Size()))
	}
	for _, a := range anchors {
		t := a.Checkpoint.Tree
		if root, ok := roots[t.Size]; ok && !a.Checkpoint.IsZero() && root != t.Root {
			return loss(fmt.Errorf("%w: its first %d entries are not those that %s tells of", audit.ErrAltered, t.Size, a.from))
		}
	}
	return f, nil
}

// others compares the log with what the second folder keeps of other origins than
// own that the log names: of the hosts that share it, and of keys that were lost.
// What a loss was accepted of counts no more.
func (n *Notary) others(ctx context.Context, own string) error {
	if n.c.Second == "" {
		return nil
	}
	s, err := n.says(ctx)
	if err != nil {
		return lossIf(err)
	}
	for origin, public := range s.keys {
		path := n.there(origin)
		if origin == own || path == "" {
			continue
		}
		c, err := newest(path)
		if err != nil && !errors.Is(err, audit.ErrBroken) {
			return n.noSecond(err)
		}
		if err == nil && (c.IsZero() || s.givenUp[tells(c)]) {
			continue
		}
		if err == nil {
			_, err = audit.OpenCheckpoint(c.Note, public...)
		}
		if err == nil {
			err = n.Fits(ctx, c)
		}
		if err != nil {
			return lossIf(fmt.Errorf("%s: %w", path, err))
		}
	}
	return nil
}

// lossIf makes a loss of an error that tells of a log that is not what it was.
func lossIf(err error) error {
	if errors.Is(err, audit.ErrBroken) && !errors.Is(err, ErrLoss) {
		return fmt.Errorf("%w: %w", ErrLoss, err)
	}
	return err
}

// Check compares the log with every anchor, and makes the key where the log has
// none. A witness tells what it has seen only to who shows it a checkpoint, so where
// there are witnesses one is made; those count whose answer comes now.
//
// # Errors
//
// ErrLoss, ErrKey, ErrPlace and ErrQuorum, with which nothing may run.
func (n *Notary) Check(ctx context.Context) error {
	return n.alone(ctx, func() error {
		k, err := n.openKeys(ctx)
		if err != nil {
			return err
		}
		anchors, err := n.anchors(k.public)
		if err != nil {
			return err
		}
		if err := n.others(ctx, k.private.Origin()); err != nil {
			return err
		}
		f, err := n.compare(ctx, anchors)
		if err != nil {
			return err
		}
		if err := n.named(ctx, k.private.Public()); err != nil {
			return err
		}
		if err := n.reachable(k.private.Origin()); err != nil || len(n.c.Witnesses) == 0 {
			return err
		}
		_, err = n.sign(ctx, k, anchors, f, true)
		return err
	})
}

// noSecond is the error for a second folder with which something is amiss.
func (n *Notary) noSecond(err error) error {
	return fmt.Errorf("%w: the second folder of checkpoints, %s: %w; give this user the right to add to it, or name another with the setting checkpoints", ErrPlace, n.c.Second, err)
}

// noState is the error for a folder of the mark with which something is amiss.
func (n *Notary) noState(err error) error {
	return fmt.Errorf("%w: the folder of the high-water mark, %s: %w; give this user the right to write to it, or name another with the setting state", ErrPlace, n.c.State, err)
}

// reachable says which place that must be written cannot be, as far as it shows
// without waiting for the disk.
func (n *Notary) reachable(origin string) error {
	if path := n.there(origin); path != "" {
		if list := files(path); len(list) > 0 {
			path = list[len(list)-1]
		}
		f, err := ownfile.Open(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
		if err != nil {
			return n.noSecond(err)
		}
		if err := f.Close(); err != nil {
			return n.noSecond(err)
		}
	}
	if n.c.StateRequired {
		if err := ownfile.MakeFolder(n.c.State); err != nil {
			return n.noState(err)
		}
		if err := ownfile.Probe(n.c.State); err != nil {
			return n.noState(err)
		}
	}
	return nil
}

// A Place is where anchors of the log are kept.
type Place struct {
	Name     string
	Path     string
	Required bool  // nothing runs while it cannot be written
	Err      error // why it cannot be written; nil: it can
}

// Places finds out by writing which places of anchors this user can write to.
func (n *Notary) Places() []Place {
	keys := filepath.Dir(n.keyPath())
	if _, err := os.Stat(keys); errors.Is(err, fs.ErrNotExist) { // nothing was signed yet
		keys = n.c.Data
	}
	list := []Place{{"the data folder", n.c.Data, true, ownfile.Probe(keys)}}
	if n.c.Second != "" {
		list = append(list, Place{"the second folder", n.c.Second, true, ownfile.Probe(n.c.Second)})
	}
	if n.c.State != n.c.Data {
		err := ownfile.MakeFolder(n.c.State)
		if err == nil {
			err = ownfile.Probe(n.c.State)
		}
		list = append(list, Place{"the folder of the high-water mark", n.c.State, n.c.StateRequired, err})
	}
	return list
}
