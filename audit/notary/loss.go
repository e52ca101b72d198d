package notary

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/ownfile"
)

// AcceptLoss takes the log as it is: an entry says who did so, why, and what was
// lost, the checkpoints that do not fit are put aside under another name, and what
// there is is signed. It begins anew with another key, under another name, where the
// old one is gone, and where somebody goes on telling of what was lost: a witness, or
// a second folder to which this user can only add.
//
// # Errors
//
// ErrNoLoss where every anchor fits; ErrKey for a key that is there and that others
// may read: that has its own remedy. ErrQuorum and ErrPlace come with the checkpoint:
// the loss is accepted, and nothing runs until they are mended.
func (n *Notary) AcceptLoss(ctx context.Context, actor, reason string) (c audit.Checkpoint, err error) {
	err = n.alone(ctx, func() error {
		l, err := n.lost(ctx)
		if err != nil {
			return err
		}
		// What does not add up by itself is no loss that can be accepted.
		if _, err := n.compare(ctx, make([]anchor, places)); err != nil {
			return fmt.Errorf("the log itself is damaged, restore a backup: %w", err)
		}
		e := n.entry(actor, subjectAccept, append(l.facts, "loss", audit.Clip(l.why.Error()), "reason", audit.Clip(reason),
			"size", fmt.Sprint(l.tip.Size()), "root", l.tip.Root().String())...)
		if _, err := n.c.Log.Append(ctx, e); err != nil {
			return err
		}
		k, err := n.putAside(l)
		if err != nil {
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
		c, err = n.sign(ctx, k, make([]anchor, places), f, false)
		if err == nil {
			n.c.Log.Suspend(nil)
		}
		return err
	})
	return c, err
}

// A loss is what does not fit the log.
type loss struct {
	why   error
	k     keys // zero where the key is gone
	anew  bool // somebody goes on telling of it under the old name
	tip   audit.Frontier
	facts []string // for the entry: names and values
}

// lost finds out what was lost.
func (n *Notary) lost(ctx context.Context) (l loss, err error) {
	if l.tip, err = n.c.Log.Tip(ctx); err != nil {
		return l, err
	}
	var shown []audit.Checkpoint // by witnesses
	l.k, l.why = n.openKeys(ctx)
	if l.why == nil {
		var anchors []anchor
		if anchors, l.why = n.anchors(l.k.public); l.why == nil {
			_, l.why = n.compare(ctx, anchors)
		}
		if l.why == nil {
			l.why = n.others(ctx, l.k.private.Origin())
		}
		if named := n.named(ctx, l.k.private.Public()); named != nil {
			l.anew = true // the log is given a key that it names
			if l.why == nil {
				l.why = named
			}
		}
		c, err := l.k.private.Checkpoint(audit.Tree{Size: l.tip.Size(), Root: l.tip.Root()})
		if err != nil {
			return l, err
		}
		a, told := n.ask(ctx, c)
		if shown = a.shown; errors.Is(told, ErrLoss) {
			l.anew = true
			if l.why == nil {
				l.why = told
			}
		}
	}
	switch {
	case l.why == nil:
		return l, ErrNoLoss
	case errors.Is(l.why, ownfile.ErrPrivate) || !errors.Is(l.why, ErrLoss) && !errors.Is(l.why, ErrKey):
		return l, l.why
	}
	l.facts, err = n.lostFacts(ctx, shown)
	return l, err
}

// maxGivenUp is how many checkpoints fit into the entry.
const maxGivenUp = 24

// lostFacts says which checkpoints do not fit the log, as far as they can be read:
// the one of the most entries, with the key of its log, and those that stay where
// they are.
func (n *Notary) lostFacts(ctx context.Context, shown []audit.Checkpoint) ([]string, error) {
	s, err := n.says(ctx)
	if err != nil {
		return nil, err
	}
	known := s.keys
	m, _ := n.readMark() // what cannot be read tells nothing
	public, _ := readPublic(n.pubPath())
	for _, k := range slices.Concat(m.Keys, public) {
		if !slices.Contains(known[k.Origin()], k) {
			known[k.Origin()] = append(known[k.Origin()], k)
		}
	}
	marked, _ := audit.ParseCheckpoint([]byte(m.Note))
	here, _ := newest(File(n.c.Data))
	misfit := func(c audit.Checkpoint) bool {
		return !c.IsZero() && !s.givenUp[tells(c)] && errors.Is(n.Fits(ctx, c), audit.ErrBroken)
	}
	var stay []string
	lost := slices.Concat([]audit.Checkpoint{marked, here}, shown)
	for origin := range known {
		if path := n.there(origin); path != "" {
			c, _ := newest(path)
			if lost = append(lost, c); len(stay) < maxGivenUp && misfit(c) {
				stay = append(stay, tells(c))
			}
		}
	}
	var most audit.Checkpoint
	for _, c := range lost {
		if (most.IsZero() || c.Tree.Size > most.Tree.Size) && misfit(c) {
			most = c
		}
	}
	facts := []string{factGivenUp, strings.Join(stay, "\n")}
	if !most.IsZero() {
		facts = append(facts, "lostSize", fmt.Sprint(most.Tree.Size), "lostRoot", most.Tree.Root.String())
	}
	of := most.Origin
	if of == "" && len(public) > 0 {
		of = public[0].Origin()
	}
	if list := known[of]; len(list) > 0 {
		facts = append(facts, "lostKey", string(list[len(list)-1]))
	} else if k := s.first[n.place()]; of == "" && k != "" {
		facts = append(facts, "lostKey", string(k))
	}
	return facts, nil
}

// putAside renames what does not fit: it is evidence. The mark goes last, so that
// what is broken off half-way is a loss still. It returns the keys that stay.
func (n *Notary) putAside(l loss) (keys, error) {
	aside := time.Now().UTC().Format(".lost-20060102T150405.000000")
	move := func(paths ...string) error {
		for _, p := range paths {
			if p == "" || !exists(p) {
				continue
			}
			if err := os.Rename(p, p+aside); err != nil {
				return err
			}
		}
		return nil
	}
	k := l.k
	if l.anew {
		k = keys{}
	}
	if !k.private.IsZero() {
		if there := n.there(k.private.Origin()); there != "" && move(files(there)...) != nil {
			k = keys{} // it can only be added to, and goes on telling of it
		}
	}
	paths := slices.Concat(files(File(n.c.Data)), []string{n.markPath()})
	if k.private.IsZero() {
		paths = slices.Concat([]string{n.nextPath(), n.keyPath(), n.pubPath()}, paths)
	}
	if err := move(paths...); err != nil {
		return keys{}, err
	}
	return k, ownfile.SyncFolder(n.c.Data)
}
