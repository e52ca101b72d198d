package notary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

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

// anchors reads the last checkpoint of every place that can be reached, each
// signed by one of public.
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
			n.c.Logger.Warn("the second folder of checkpoints cannot be read", "err", err)
			continue
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
		return nil, fmt.Errorf("%w: %w", ErrLoss, err)
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

// Check compares the log with every anchor that can be reached, and makes the key
// where the log has none. A witness tells what it has seen only to who shows it a
// checkpoint, so where there are witnesses one is made.
//
// # Errors
//
// ErrLoss, ErrKey and ErrQuorum, with which nothing may run.
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
		f, err := n.compare(ctx, anchors)
		if err != nil || len(n.c.Witnesses) == 0 {
			return err
		}
		c, err := n.sign(ctx, k, anchors, f)
		if err == nil {
			_, err = n.cosign(ctx, c)
		}
		return err
	})
}

// AcceptLoss takes the log as it is: an entry says who did so and why, the
// checkpoints that do not fit are put aside under another name, and what there is
// is signed, with a new key where the old one is gone.
//
// # Errors
//
// ErrNoLoss where every anchor fits.
func (n *Notary) AcceptLoss(ctx context.Context, actor, reason string) (c audit.Checkpoint, err error) {
	err = n.alone(ctx, func() error {
		k, lost := n.openKeys(ctx)
		if lost == nil {
			var anchors []anchor
			if anchors, lost = n.anchors(k.public); lost == nil {
				_, lost = n.compare(ctx, anchors)
			}
		}
		if lost == nil {
			return ErrNoLoss
		}
		if !errors.Is(lost, ErrLoss) && !errors.Is(lost, ErrKey) {
			return lost
		}
		tip, err := n.c.Log.Tip(ctx)
		if err != nil {
			return err
		}
		// What does not add up by itself is no loss that can be accepted.
		if _, err := n.compare(ctx, make([]anchor, places)); err != nil {
			return fmt.Errorf("the log itself is damaged, restore a backup: %w", err)
		}
		e := n.entry(actor, "accept-loss", "loss", audit.Clip(lost.Error()), "reason", audit.Clip(reason),
			"size", fmt.Sprint(tip.Size()), "root", tip.Root().String())
		if _, err := n.c.Log.Append(ctx, e); err != nil {
			return err
		}
		if err := n.putAside(k); err != nil {
			return err
		}
		if k.private.IsZero() {
			if k, err = n.newKey(ctx, actor, audit.Clip("after a loss: "+reason)); err != nil {
				return err
			}
		}
		f, err := n.compare(ctx, make([]anchor, places))
		if err != nil {
			return err
		}
		c, err = n.sign(ctx, k, make([]anchor, places), f)
		if err == nil {
			n.c.Log.Suspend(nil)
		}
		return err
	})
	return c, err
}

// putAside renames what does not fit: it is evidence. The mark goes last, so that
// what is broken off half-way is a loss still.
func (n *Notary) putAside(k keys) error {
	paths := []string{File(n.c.Data), n.markPath()}
	if k.private.IsZero() {
		paths = append([]string{n.keyPath(), n.pubPath()}, paths...)
	} else if there := n.there(k.private.Origin()); there != "" {
		paths = append([]string{there}, paths...)
	}
	aside := time.Now().UTC().Format(".lost-20060102T150405.000000")
	for _, p := range paths {
		if p == "" || !exists(p) {
			continue
		}
		if err := os.Rename(p, p+aside); err != nil {
			return err
		}
	}
	return ownfile.SyncFolder(n.c.Data)
}
