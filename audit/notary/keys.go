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
	"strings"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/internal/ownfile"
)

const (
	originPrefix = "tracon/"
	maxKeyFile   = 64 << 10
)

// keys are those of the log: the one that signs, and all public ones, the
// first first.
type keys struct {
	private audit.SigningKey
	public  []audit.PublicKey
}

// openKeys reads the keys, or makes the first one where the log was never signed.
func (n *Notary) openKeys(ctx context.Context) (keys, error) {
	if err := n.finishNext(ctx); err != nil {
		return keys{}, err
	}
	text, err := ownfile.ReadPrivate(n.keyPath(), maxKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return n.firstKey(ctx)
	}
	if err != nil {
		return keys{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	private, err := audit.ParseSigningKey(strings.TrimSuffix(string(text), "\n"))
	if err != nil {
		return keys{}, fmt.Errorf("%w: %s: %w", ErrKey, n.keyPath(), err)
	}
	public, err := readPublic(n.pubPath())
	if err != nil {
		return keys{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if len(public) == 0 || public[len(public)-1] != private.Public() {
		return keys{}, fmt.Errorf("%w: %s does not end with the public key of %s; restore the folder %s from a backup",
			ErrKey, n.pubPath(), n.keyPath(), filepath.Dir(n.keyPath()))
	}
	return keys{private, public}, nil
}

// firstKey makes a key, unless there was one.
func (n *Notary) firstKey(ctx context.Context) (keys, error) {
	if err := n.Before(ctx); err != nil {
		return keys{}, err
	}
	return n.newKey(ctx, "", "")
}

// Before says what tells that there was a key, of a log that has none now: the mark, a
// checkpoint, a public key, the log itself, or the second folder. Where nothing is left
// of all this a log that lost everything is like a new one, and it returns nil. It makes
// nothing, and takes no lock: who may look while a first key is made looks again for it.
//
// # Errors
//
// ErrKey for what tells of a key; ErrLoss where a place is damaged; ErrPlace where one
// cannot be read.
func (n *Notary) Before(ctx context.Context) error {
	gone := func(why string) error {
		return fmt.Errorf("%w: %s is gone, and %s; restore the folder %s from a backup, or begin anew with `tracon audit accept-loss`",
			ErrKey, n.keyPath(), why, filepath.Dir(n.keyPath()))
	}
	m, err := n.readMark()
	if err != nil {
		return lossIf(err)
	}
	if m.Note != "" || exists(File(n.c.Data)) {
		return gone("the log was signed before")
	}
	if exists(n.pubPath()) {
		return gone(n.pubPath() + " tells of a key")
	}
	before := n.origins() // of another host whose key the log is about to name, none yet
	s, err := n.says(ctx)
	if err != nil {
		return lossIf(err)
	}
	for place, key := range s.first {
		// Where several hosts write the log, the others have a key of their own.
		if (!n.c.Shared || place == n.place()) && !n.next(key) {
			return gone("the log names the key " + string(key))
		}
	}
	for _, origin := range before {
		if s.keys[origin] == nil {
			return gone(fmt.Sprintf("the second folder has %s, of a log that is not this one, or of this one before its database was put back or lost; "+
				"another log takes a second folder of its own", n.there(origin)))
		}
	}
	return nil
}

// next says whether key waits to be put into its place: see [Notary.finishNext]. One
// that the log names already is not gone.
func (n *Notary) next(key audit.PublicKey) bool {
	text, err := ownfile.ReadPrivate(n.nextPath(), maxKeyFile)
	if err != nil {
		return false
	}
	k, err := audit.ParseSigningKey(strings.TrimSuffix(string(text), "\n"))
	return err == nil && k.Public() == key
}

// origins returns those of which the second folder has checkpoints; none where it
// cannot be listed.
func (n *Notary) origins() (all []string) {
	if n.c.Second == "" {
		return nil
	}
	found, _ := os.ReadDir(n.c.Second) // who only may add to it cannot list it
	for _, f := range found {
		if name, ok := strings.CutSuffix(f.Name(), ".checkpoints"); ok && id.Valid(name) {
			all = append(all, originPrefix+name)
		}
	}
	return all
}

// named says whether the log names the key that signs. A key is named before it is
// there, so a log that does not is one from before it.
func (n *Notary) named(ctx context.Context, key audit.PublicKey) error {
	s, err := n.says(ctx)
	if err != nil {
		return lossIf(err)
	}
	if !slices.Contains(s.keys[key.Origin()], key) {
		return fmt.Errorf("%w: %w: it does not name the key %s, which signed it: its database was put back or lost", ErrLoss, audit.ErrRolledBack, key)
	}
	return nil
}

// newKey makes a key for a log that has none, and its entry. As in a rotation the key
// is on the disk before the log names it: so no log names a key that nobody has.
func (n *Notary) newKey(ctx context.Context, actor, reason string) (keys, error) {
	private, err := audit.NewSigningKey(originPrefix + id.New())
	if err != nil {
		return keys{}, err
	}
	if err := ownfile.Write(n.nextPath(), []byte(private.Secret()+"\n")); err != nil {
		return keys{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	e := n.entry(actor, subjectKey, factKey, string(private.Public()), factPlace, n.place(), "reason", reason)
	if _, err := n.c.Log.Append(ctx, e); err != nil {
		return keys{}, err
	}
	if err := n.finishNext(ctx); err != nil {
		return keys{}, err
	}
	return keys{private, []audit.PublicKey{private.Public()}}, nil
}

// entry is one of the log's own administration. Without an actor the program
// itself acts.
func (n *Notary) entry(actor, subject string, facts ...string) audit.Entry {
	return audit.Entry{Tenant: n.c.Tenant, Actor: audit.Clip(cmp.Or(actor, "tracon")), Kind: audit.Keeping, Subject: subject, Facts: audit.Facts(facts...)}
}

func readPublic(path string) ([]audit.PublicKey, error) {
	text, err := ownfile.Read(path, maxKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []audit.PublicKey
	for line := range strings.Lines(string(text)) {
		k, err := audit.ParsePublicKey(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, k)
	}
	return list, nil
}

func writePublic(path string, list []audit.PublicKey) error {
	var b strings.Builder
	for _, k := range list {
		fmt.Fprintln(&b, k)
	}
	return ownfile.Write(path, []byte(b.String()))
}

// Rotate replaces the key: the old one signs what there is, both sign that the
// new one goes on, and that stands in the log. The old key is gone then.
func (n *Notary) Rotate(ctx context.Context, actor, reason string) (next audit.PublicKey, err error) {
	err = n.alone(ctx, func() error {
		if _, err := n.checkpoint(ctx); err != nil {
			return err
		}
		k, err := n.openKeys(ctx)
		if err != nil {
			return err
		}
		private, err := audit.NewSigningKey(k.private.Origin())
		if err != nil {
			return err
		}
		statement, err := k.private.Rotation(private)
		if err != nil {
			return err
		}
		// The new key is on the disk before the log says that it signs, and takes
		// its place afterwards; what is broken off in between is finished or undone
		// by the next one who signs.
		if err := ownfile.Write(n.nextPath(), []byte(private.Secret()+"\n")); err != nil {
			return err
		}
		e := n.entry(actor, subjectRotate, "from", string(k.private.Public()), factTo, string(private.Public()), audit.FactRotation, statement, "reason", audit.Clip(reason))
		if _, err := n.c.Log.Append(ctx, e); err != nil {
			return err
		}
		next = private.Public()
		_, err = n.checkpoint(ctx)
		return err
	})
	return next, err
}

// finishNext puts a new key into its place where the log says that it signs, and
// drops it where it does not.
func (n *Notary) finishNext(ctx context.Context) error {
	text, err := ownfile.ReadPrivate(n.nextPath(), maxKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKey, err)
	}
	next, err := audit.ParseSigningKey(strings.TrimSuffix(string(text), "\n"))
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrKey, n.nextPath(), err)
	}
	named, err := n.names(ctx, next.Public())
	if err != nil {
		return err
	}
	if named.Kind == "" {
		return ownfile.Remove(n.nextPath())
	}
	public, err := readPublic(n.pubPath())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKey, err)
	}
	first := named.Subject == subjectKey
	if len(public) > 0 && public[len(public)-1] != next.Public() || len(public) == 0 && first {
		if first {
			public = nil
		}
		if err := writePublic(n.pubPath(), append(public, next.Public())); err != nil {
			return err
		}
	}
	if err := ownfile.Write(n.keyPath(), []byte(next.Secret()+"\n")); err != nil {
		return err
	}
	return ownfile.Remove(n.nextPath())
}

// names returns the entry by which the log says that key signs; the zero one where
// it does not. The key before it has signed all that stood before, so it is among
// what came since.
func (n *Notary) names(ctx context.Context, key audit.PublicKey) (audit.Entry, error) {
	from := uint64(0)
	if c, err := newest(File(n.c.Data)); err == nil {
		from = c.Tree.Size
	}
	for leaf, err := range n.c.Log.Entries(ctx, n.c.Tenant, from) {
		if err != nil {
			return audit.Entry{}, err
		}
		if e := leaf.Entry; keyOf(e) == key {
			return e, nil
		}
	}
	return audit.Entry{}, nil
}
