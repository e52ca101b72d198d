package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon/internal/id"
)

// A Head is where the log ends, and where the history of one tenant ends.
type Head struct {
	Frontier Frontier
	Tenant   Link // sequence number and hash of the tenant's last leaf; zero for none
}

// A Leaf is one sealed entry, as a store keeps it.
type Leaf struct {
	Index    uint64 // place in the log, from 0
	Tenant   string // an index beside the bytes, as the three below
	Seq      uint64
	Hash     Hash
	Bytes    []byte
	Entry    Entry    // what the bytes say
	Frontier Frontier // of the log with this leaf
}

// A Pending is an entry on its way into the log. A store that makes an audited
// change is handed one, and must seal it in the transaction of the change: the
// zero Pending cannot be sealed, so there is no change without an entry.
type Pending struct{ p *pending }

type pending struct {
	entry  Entry
	sealed Leaf
}

// Tenant returns whose history the entry belongs to.
func (p Pending) Tenant() string {
	if p.p == nil {
		return ""
	}
	return p.p.entry.Tenant
}

// Seal returns the leaf of the entry behind head. A store calls it under the
// lock that orders the log, and keeps what it returns in the same transaction
// or nothing at all. It is called again when a transaction is tried again; the
// last leaf is the one that counts.
func (p Pending) Seal(head Head) (Leaf, error) {
	if p.p == nil {
		return Leaf{}, fmt.Errorf("%w: a change without its entry", ErrEntry)
	}
	e := p.p.entry
	b := encode(e, Link{head.Tenant.Seq + 1, head.Tenant.Prev})
	h := LeafHash(b)
	p.p.sealed = Leaf{
		Index: head.Frontier.Size(), Tenant: e.Tenant, Seq: head.Tenant.Seq + 1, Hash: h, Bytes: b, Entry: e,
		Frontier: head.Frontier.add(h),
	}
	return p.p.sealed, nil
}

// A Sink keeps the log. Its errors are those of the store.
type Sink interface {
	// Append seals and keeps p, durably, or fails and keeps nothing. It is
	// called from many goroutines.
	Append(ctx context.Context, p Pending) error

	// Leaves yields the leaves from index from on, in order: of one tenant, or of
	// all where tenant is empty. Only Index, Tenant, Seq, Hash and Bytes are set.
	Leaves(ctx context.Context, tenant string, from uint64) iter.Seq2[Leaf, error]

	// Tip returns the frontier that was kept with the last leaf.
	Tip(ctx context.Context) (Frontier, error)

	// Ready says why nothing more can be kept until an operator acts, or nil. It
	// writes nothing: the next write may fail even so.
	Ready(ctx context.Context) error
}

// A Receipt proves that an entry stands in the log. Only a [Log] makes one; the
// zero Receipt proves nothing.
type Receipt struct {
	index uint64
	hash  Hash
	id    string
}

// Valid reports whether r came from a log.
func (r Receipt) Valid() bool { return !r.hash.IsZero() }

// Index returns the place of the entry in the log, from 0.
func (r Receipt) Index() uint64 { return r.index }

// Hash returns the hash of the entry's leaf.
func (r Receipt) Hash() Hash { return r.hash }

// ID returns the id of the entry.
func (r Receipt) ID() string { return r.id }

// ErrUnavailable is wrapped by every error of a log that could not be written:
// nothing may run, and nothing was changed.
var ErrUnavailable = errors.New("audit: the log could not be written")

// A Log appends to one Sink. It is safe for concurrent use.
type Log struct {
	sink      Sink
	floods    floods
	written   atomic.Bool
	suspended atomic.Pointer[suspension]
	watch     func(took time.Duration, failed bool) // nil: nobody watches
}

type suspension struct{ err error }

// NewLog returns a log over sink. It panics when sink is nil.
func NewLog(sink Sink) *Log {
	if sink == nil {
		panic("audit: NewLog with a nil Sink")
	}
	return &Log{sink: sink}
}

// Watch has f told of each write: how long it took, and whether the log could not
// be written. A change that its store refused is not a failure. It is called before
// the first write; f must be quick and safe for concurrent use.
func (l *Log) Watch(f func(took time.Duration, failed bool)) { l.watch = f }

// Written reports whether an entry was written through l.
func (l *Log) Written() bool { return l.written.Load() }

// Suspend has l take no admission any more, and Ready say why: nothing new runs.
// What else happens is written still: the endings of what runs, refusals, and what
// an operator does about it. With nil l takes them again.
func (l *Log) Suspend(err error) {
	if err == nil {
		l.suspended.Store(nil)
		return
	}
	l.suspended.Store(&suspension{fmt.Errorf("%w: %w", ErrUnavailable, err)})
}

// Append writes e durably and returns the proof of it.
//
// # Errors
//
// ErrEntry for an entry that breaks a rule; ErrUnavailable for everything else.
func (l *Log) Append(ctx context.Context, e Entry) (Receipt, error) {
	r, err := l.commit(ctx, e, true, l.sink.Append)
	if err != nil && !errors.Is(err, ErrEntry) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return r, err
}

// Commit writes e together with the change that it records: commit hands the
// Pending to the store's method that makes the change. The error of commit is
// returned as it is.
func (l *Log) Commit(ctx context.Context, e Entry, commit func(context.Context, Pending) error) (Receipt, error) {
	return l.commit(ctx, e, false, commit)
}

// commit is Commit; alone says that the entry records no change.
func (l *Log) commit(ctx context.Context, e Entry, alone bool, commit func(context.Context, Pending) error) (Receipt, error) {
	e, err := l.complete(e)
	if err != nil {
		return Receipt{}, err
	}
	if s := l.suspended.Load(); s != nil && e.Kind == Admission {
		return Receipt{}, s.err
	}
	p := &pending{entry: e}
	began := time.Now()
	err = commit(ctx, Pending{p})
	sealed := !p.sealed.Hash.IsZero()
	if err == nil && !sealed {
		err = fmt.Errorf("%w: the store kept no entry", ErrUnavailable)
	}
	if l.watch != nil && ctx.Err() == nil {
		// A store refuses a change before it seals the entry, and cannot write it after.
		l.watch(time.Since(began), err != nil && (alone || sealed || errors.Is(err, ErrUnavailable)))
	}
	if err != nil {
		return Receipt{}, err
	}
	l.written.Store(true)
	return Receipt{p.sealed.Index, p.sealed.Hash, e.ID}, nil
}

// complete gives e what its caller left to the log, and says why it cannot be written.
func (l *Log) complete(e Entry) (Entry, error) {
	if e.ID == "" {
		e.ID = id.New()
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	e.Count = max(e.Count, 1)
	e.Facts = slices.Clone(e.Facts) // a store may seal it later, when the caller's slice says something else
	return e, e.check()
}

// Ready says why the log takes no entry, and so why nothing may run, or nil. It
// writes nothing: the next entry may fail even so.
//
// # Errors
//
// One that wraps ErrUnavailable; it names the remedy.
func (l *Log) Ready(ctx context.Context) error {
	if s := l.suspended.Load(); s != nil {
		return s.err
	}
	if err := l.sink.Ready(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// Entries yields the entries from index from on, decoded: of one tenant, or of
// all where tenant is empty.
func (l *Log) Entries(ctx context.Context, tenant string, from uint64) iter.Seq2[Leaf, error] {
	return func(yield func(Leaf, error) bool) {
		for leaf, err := range l.sink.Leaves(ctx, tenant, from) {
			if err == nil {
				leaf.Entry, _, err = Decode(leaf.Bytes)
				if err != nil {
					err = &BrokenError{Index: leaf.Index, Err: err}
				}
			}
			if !yield(leaf, err) || err != nil {
				return
			}
		}
	}
}
