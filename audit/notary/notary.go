// Package notary keeps what proves the log from outside of it: the key that signs
// its checkpoints, the checkpoints, in the data folder and in a second one, and
// the high-water mark in a third. Each is an anchor: a log that does not begin with
// what one of them tells of was cut, rolled back or changed.
//
// Make one with [New]. Call [Notary.Check] before anything runs, and
// [Notary.Checkpoint] now and then and at the end. A Notary is a tracon.Receipts:
// it makes the receipt of each run.
package notary

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/internal/ownfile"
)

// Config says what a [Notary] works on.
type Config struct {
	Log    *audit.Log // required
	Data   string     // folder of the key and the checkpoints; required; must be there
	Second string     // another folder for the checkpoints, best on another disk; must be there; empty: none
	State  string     // folder of the high-water mark, made where it is not there; empty: Data, where who can roll back one can roll back both
	Tenant string     // whose history the entries of the log's own administration belong to, such as gate.HostTenant; required

	// StateRequired has nothing run while the mark cannot be written, as it is with
	// Second; false: that is told in the log of messages.
	StateRequired bool

	// Witnesses cosign each checkpoint. At least Quorum of them must, now, or the
	// checkpoint is an error and nothing runs; zero means that none has to.
	Witnesses []Witness
	Quorum    int

	Shared   bool // several hosts write the log, each with a key of its own, as on PostgreSQL
	ReadOnly bool // nothing in the folders is written: who signs gets an error

	Logger *slog.Logger // for what only the operator may see; nil: slog.Default()
}

// Errors of a Notary, beside those of package audit.
var (
	// ErrLoss is wrapped by the error for a log that an anchor does not fit. Nothing
	// may run until an operator has looked and accepted the loss.
	ErrLoss = errors.New("the log is not the one that was signed before: nothing runs until an operator accepts the loss")

	// ErrKey is wrapped by the error for a key that is not there, or not the one
	// that signed before.
	ErrKey = errors.New("the key of the log")

	// ErrNoLoss: there is no loss to accept.
	ErrNoLoss = errors.New("every anchor fits the log: there is no loss to accept")

	// ErrQuorum: too few witnesses have cosigned. Nothing runs until enough do.
	ErrQuorum = errors.New("too few witnesses have cosigned")

	// ErrPlace: a place that was named for anchors cannot be read or written. Nothing
	// runs until it can.
	ErrPlace = errors.New("nothing runs while a place of the log's anchors cannot be used")

	// ErrPoisoned: a flush of a key, a checkpoint or the high-water mark failed, and what
	// stands on the disk is not known. This process signs and admits nothing any more.
	ErrPoisoned = errors.New("what proves the log could not be brought to the disk: look after the disk, then start again")

	// ErrReadOnly: this notary only reads.
	ErrReadOnly = errors.New("this copy is only read, and is not signed")
)

// A Notary signs one log. It is safe for concurrent use, by several processes too.
type Notary struct {
	c       Config
	mu      sync.Mutex // held while this process signs
	counted audit.Tree // of the last checkpoint that enough witnesses cosigned for this process
	held    bool       // it had the log suspended for a reason that may go by itself
	poison  error      // a flush failed: nothing lifts that
	tree    tree
}

// New returns a notary. It touches no file.
func New(c Config) (*Notary, error) {
	if c.Log == nil || c.Data == "" || c.Tenant == "" {
		return nil, errors.New("notary: Config needs a Log, a Data and a Tenant")
	}
	if c.Quorum < 0 || c.Quorum > len(c.Witnesses) {
		return nil, fmt.Errorf("notary: a quorum of %d, and %d witnesses", c.Quorum, len(c.Witnesses))
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	data, err := filepath.Abs(c.Data)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(data); err == nil {
		data = real // one folder has one mark, whatever it is called
	}
	c.Data = data
	if c.State == "" {
		c.State = data
	}
	n := &Notary{c: c}
	n.tree = tree{log: c.Log, path: filepath.Join(data, "tree"), readOnly: c.ReadOnly}
	return n, nil
}

func (n *Notary) keyPath() string  { return filepath.Join(n.c.Data, "keys", "log.key") }
func (n *Notary) nextPath() string { return n.keyPath() + ".next" }
func (n *Notary) pubPath() string  { return filepath.Join(n.c.Data, "keys", "log.pub") }

// File returns the file of the checkpoints in a data folder.
func File(data string) string { return filepath.Join(data, "checkpoints") }

// there returns the file of the checkpoints in the second folder, "" for none. A log
// may name any origin: only an id becomes a file's name.
func (n *Notary) there(origin string) string {
	name := strings.TrimPrefix(origin, originPrefix)
	if n.c.Second == "" || !id.Valid(name) {
		return ""
	}
	return filepath.Join(n.c.Second, name+".checkpoints")
}

// markPath returns the file of the high-water mark. It goes by the data folder,
// so that a folder that was emptied is missed.
func (n *Notary) markPath() string {
	sum := sha256.Sum256([]byte(n.c.Data))
	return filepath.Join(n.c.State, "mark-"+hex.EncodeToString(sum[:12])+".json")
}

// alone calls f while no other goroutine or process signs this log.
func (n *Notary) alone(ctx context.Context, f func() error) error {
	if n.c.ReadOnly {
		return ErrReadOnly
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.poison != nil {
		return n.poison
	}
	folder := filepath.Dir(n.keyPath())
	if err := ownfile.MakeFolder(folder); err != nil {
		return n.suspend(err)
	}
	if err := ownfile.CheckFolder(folder); err != nil {
		return n.suspend(fmt.Errorf("%w: %w", ErrKey, err))
	}
	lock, err := ownfile.WaitLock(ctx, filepath.Join(folder, "lock"))
	if err != nil {
		return err
	}
	return errors.Join(n.suspend(f()), lock.Close())
}

// suspend has the log take no admission where err says that nothing may run, and
// returns err. A process that goes on for long finds out in the middle; the next one
// does so when it starts.
func (n *Notary) suspend(err error) error {
	switch {
	case errors.Is(err, ownfile.ErrFlush): // what is read back next may not be on the disk
		err = fmt.Errorf("%w: %w", ErrPoisoned, err)
		n.c.Log.Suspend(err)
		n.poison = err
	case errors.Is(err, ErrLoss) || errors.Is(err, ErrKey):
		n.c.Log.Suspend(err)
		n.held = false
	case errors.Is(err, ErrPlace) || errors.Is(err, ErrQuorum):
		n.c.Log.Suspend(err)
		n.held = true
	}
	return err
}

// Checkpoint signs the log as it is now, keeps the checkpoint in every place, and
// returns it. Where nothing was written since the last one it returns that. Where
// the log does not fit, it takes no admission from then on; see
// [audit.Log.Suspend].
//
// # Errors
//
// ErrLoss where the log does not go on from what was signed before; ErrKey;
// ErrPoisoned, from then on; ErrQuorum and ErrPlace, with which the checkpoint stands in the data folder.
func (n *Notary) Checkpoint(ctx context.Context) (c audit.Checkpoint, err error) {
	err = n.alone(ctx, func() error {
		c, err = n.checkpoint(ctx)
		return err
	})
	return c, err
}

// Cover returns a checkpoint that covers the entry at index: the last one, or one
// that it makes.
func (n *Notary) Cover(ctx context.Context, index uint64) (c audit.Checkpoint, err error) {
	if n.c.ReadOnly {
		if c, err = n.newestSigned(); err == nil && c.Tree.Size <= index {
			err = fmt.Errorf("%w of entry %d: the newest checkpoint beside it is of %d", ErrReadOnly, index, c.Tree.Size)
		}
		return c, err
	}
	err = n.alone(ctx, func() error {
		// Those who waited for the lock find that whoever had it signed for them too.
		if last, err := n.newestSigned(); err == nil && last.Tree.Size > index && !n.held && (n.c.Quorum == 0 || n.counted == last.Tree) {
			c = last
			return nil
		}
		c, err = n.checkpoint(ctx)
		return err
	})
	if (err == nil || errors.Is(err, ErrPlace)) && !c.IsZero() && c.Tree.Size <= index {
		err = errors.Join(err, fmt.Errorf("%w: %d", audit.ErrNoEntry, index))
	}
	return c, err
}

// newestSigned returns the last checkpoint in the data folder, verified.
func (n *Notary) newestSigned() (audit.Checkpoint, error) {
	public, err := n.Keys()
	if err != nil {
		return audit.Checkpoint{}, err
	}
	last, err := newest(File(n.c.Data))
	if err != nil || last.IsZero() {
		return audit.Checkpoint{}, err
	}
	return audit.OpenCheckpoint(last.Note, public...)
}

// checkpoint does it, alone.
func (n *Notary) checkpoint(ctx context.Context) (audit.Checkpoint, error) {
	k, err := n.openKeys(ctx)
	if err != nil {
		return audit.Checkpoint{}, err
	}
	anchors, err := n.anchors(k.public)
	if err != nil {
		return audit.Checkpoint{}, err
	}
	f, err := n.compare(ctx, anchors)
	if err != nil {
		return audit.Checkpoint{}, err
	}
	if gone := missing(anchors); gone != "" {
		// What is signed now stands in every place again, so the log must tell of it.
		n.c.Logger.Error("a checkpoint is gone", "what", gone)
		if _, err := n.c.Log.Append(ctx, n.entry("", "checkpoint gone", "what", audit.Clip(gone))); err != nil {
			return audit.Checkpoint{}, err
		}
		if f, err = n.compare(ctx, anchors); err != nil {
			return audit.Checkpoint{}, err
		}
	}
	return n.sign(ctx, k, anchors, f, false)
}

// missing says which checkpoint is gone from the data folder, "" for none: it is
// the first place that gets one, so no other can tell of more.
func missing(anchors []anchor) string {
	here := anchors[atHere].Checkpoint.Tree.Size
	for _, a := range anchors[atHere+1:] {
		if size := a.Checkpoint.Tree.Size; size > here {
			return fmt.Sprintf("the newest checkpoint, of %d entries, is gone from the data folder: %s tells of it, and the newest there is of %d", size, a.from, here)
		}
	}
	return ""
}

// Missing is the error, ErrMissing, for a checkpoint that is gone from the data
// folder while another place tells of it; nil where none is.
func (n *Notary) Missing(ctx context.Context) error {
	public, err := n.Keys()
	if err != nil || len(public) == 0 {
		return err
	}
	anchors, err := n.anchors(public)
	if err != nil {
		return err
	}
	// It takes no lock, which would have to be written. Who signs puts a checkpoint
	// into the data folder first: so that one is looked at last.
	later, err := n.anchors(public)
	if err != nil {
		return err
	}
	anchors[atHere] = later[atHere]
	if gone := missing(anchors); gone != "" {
		return fmt.Errorf("%w: %s", audit.ErrMissing, gone)
	}
	return context.Cause(ctx)
}

// Here returns what the data folder keeps, for those who verify.
func (n *Notary) Here() audit.Claims { return claims("the data folder", File(n.c.Data)) }

// Claims returns what every place keeps, for those who verify.
func (n *Notary) Claims() ([]audit.Claims, error) {
	public, err := n.Keys()
	if err != nil || len(public) == 0 {
		return nil, err
	}
	all := []audit.Claims{n.Here()}
	if path := n.there(public[0].Origin()); path != "" {
		all = append(all, claims("the second folder", path))
	}
	m, err := n.readMark()
	if err != nil || m.Note == "" {
		return all, err
	}
	return append(all, func(yield func(audit.Claim, error) bool) {
		yield(audit.Claim{From: "the high-water mark", Note: []byte(m.Note)}, nil)
	}), nil
}

// Others compares the log with what the second folder keeps of other keys that the
// log names: those of hosts that share it, and one that is gone.
//
// # Errors
//
// ErrLoss; ErrPlace where the folder cannot be read.
func (n *Notary) Others(ctx context.Context) error {
	public, err := n.Keys()
	if err != nil {
		return err
	}
	own := ""
	if len(public) > 0 {
		own = public[0].Origin()
	}
	return n.others(ctx, own)
}

// sign makes the checkpoint of f, which goes on from anchors, and keeps it. Where
// nothing was written since the last one it returns that; fresh has the witnesses
// asked even so.
func (n *Notary) sign(ctx context.Context, k keys, anchors []anchor, f audit.Frontier, fresh bool) (c audit.Checkpoint, err error) {
	c = anchors[atHere].Checkpoint
	if c.IsZero() || c.Tree.Size != f.Size() {
		if c, err = k.private.Checkpoint(audit.Tree{Size: f.Size(), Root: f.Root()}); err != nil {
			return audit.Checkpoint{}, err
		}
		fresh = true
	}
	var short error
	if fresh || n.c.Quorum > 0 && n.counted != c.Tree {
		if c, short = n.cosign(ctx, c); errors.Is(short, ErrLoss) {
			return audit.Checkpoint{}, short
		}
	}
	err = errors.Join(n.keep(k, anchors, c, f), short) // a place may lag behind
	if err == nil && n.held {
		n.c.Log.Suspend(nil)
		n.held = false
	}
	return c, err
}

// keep puts c into every place that has not got it. The mark comes last: it tells
// of nothing that stands nowhere else.
func (n *Notary) keep(k keys, anchors []anchor, c audit.Checkpoint, f audit.Frontier) error {
	var errs []error
	has := func(place int) bool { return string(anchors[place].Checkpoint.Note) == string(c.Note) }
	if !has(atHere) {
		if err := add(File(n.c.Data), c); err != nil {
			return fmt.Errorf("%w: the data folder: %w", ErrPlace, err)
		}
	}
	if path := n.there(c.Origin); path != "" && !has(atSecond) {
		if err := add(path, c); err != nil {
			errs = append(errs, n.noSecond(err))
		}
	}
	if !has(atMark) {
		err := n.setMark(mark{Data: n.c.Data, Keys: k.public, Note: string(c.Note), Edge: f.Edge()})
		switch {
		case err != nil && (n.c.StateRequired || errors.Is(err, ownfile.ErrFlush)):
			errs = append(errs, n.noState(err))
		case err != nil:
			n.c.Logger.Error("the high-water mark cannot be written", "err", err, "remedy", "name another folder with the setting state")
		}
	}
	return errors.Join(errs...)
}

// Prove returns the receipt of the entry at index.
func (n *Notary) Prove(ctx context.Context, index uint64) (audit.Proof, error) {
	c, err := n.Cover(ctx, index)
	if errors.Is(err, ErrPlace) && !errors.Is(err, ErrQuorum) && c.Tree.Size > index {
		// It is signed, and who holds the receipt is one more place.
		n.c.Logger.Error("a receipt stands on a checkpoint that is not in every place", "err", err)
		err = nil
	}
	if err != nil {
		return audit.Proof{}, err
	}
	leaf, err := n.c.Log.Leaf(ctx, index)
	if err != nil {
		return audit.Proof{}, err
	}
	return n.tree.prove(ctx, c, index, leaf.Bytes)
}

// Keys returns the public keys of the log, the first one first; none where it
// has none yet.
func (n *Notary) Keys() ([]audit.PublicKey, error) { return readPublic(n.pubPath()) }

// Fits says whether the log goes on from c, which somebody else kept.
//
// # Errors
//
// audit.ErrRolledBack where the log is shorter; audit.ErrAltered where its first
// entries are others.
func (n *Notary) Fits(ctx context.Context, c audit.Checkpoint) error {
	tip, err := n.c.Log.Tip(ctx)
	if err != nil {
		return err
	}
	if c.Tree.Size > tip.Size() {
		return fmt.Errorf("%w: it has %d entries, and the checkpoint tells of %d", audit.ErrRolledBack, tip.Size(), c.Tree.Size)
	}
	return n.tree.with(ctx, audit.Tree{Size: tip.Size(), Root: tip.Root()}, func(read audit.HashReader) error {
		root, err := audit.RootOf(c.Tree.Size, read)
		if err == nil && root != c.Tree.Root {
			err = fmt.Errorf("%w: its first %d entries are not those of the checkpoint", audit.ErrAltered, c.Tree.Size)
		}
		return err
	})
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
