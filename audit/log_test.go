package audit_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/audit"
)

// ledger is a Sink in memory whose rows a test can tamper with, as somebody
// could who writes to the database.
type ledger struct {
	mu    sync.Mutex
	rows  []audit.Leaf
	tip   audit.Frontier
	links map[string]audit.Link
	err   error // of Append, and nothing is kept

	reading func() // called before each row that Leaves yields
}

func (l *ledger) Append(_ context.Context, p audit.Pending) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	leaf, err := p.Seal(audit.Head{Frontier: l.tip, Tenant: l.links[p.Tenant()]})
	if err != nil {
		return err
	}
	l.rows = append(l.rows, audit.Leaf{Index: leaf.Index, Tenant: leaf.Tenant, Seq: leaf.Seq, Hash: leaf.Hash, Bytes: leaf.Bytes})
	l.tip = leaf.Frontier
	if l.links == nil {
		l.links = map[string]audit.Link{}
	}
	l.links[leaf.Tenant] = audit.Link{Seq: leaf.Seq, Prev: leaf.Hash}
	return nil
}

func (l *ledger) Leaves(_ context.Context, tenant string, from uint64) iter.Seq2[audit.Leaf, error] {
	return func(yield func(audit.Leaf, error) bool) {
		l.mu.Lock()
		rows := slices.Clone(l.rows)
		l.mu.Unlock()
		for _, row := range rows {
			if l.reading != nil {
				l.reading()
			}
			if row.Index >= from && (tenant == "" || row.Tenant == tenant) && !yield(row, nil) {
				return
			}
		}
	}
}

func (l *ledger) Tip(context.Context) (audit.Frontier, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tip, nil
}

func (l *ledger) Ready(context.Context) error { return l.err }

var _ audit.Sink = (*ledger)(nil)

// written returns a log of n entries of three tenants.
func written(t testing.TB, n int) (*ledger, *audit.Log) {
	t.Helper()
	sink := &ledger{}
	log := audit.NewLog(sink)
	for i := range n {
		e := audit.Entry{Tenant: fmt.Sprintf("tenant %d", i%3), Kind: audit.Refusal, Subject: fmt.Sprint(i), Facts: audit.Facts("gate", "pin")}
		if r, err := log.Append(t.Context(), e); err != nil || r.Index() != uint64(i) {
			t.Fatalf("entry %d: %v at %d", i, err, r.Index())
		}
	}
	return sink, log
}

func TestAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &ledger{}
		log := audit.NewLog(sink)
		time.Sleep(1500 * time.Nanosecond)
		var receipts []audit.Receipt
		for _, tenant := range []string{"a", "b", "a"} {
			r, err := log.Append(t.Context(), audit.Entry{Tenant: tenant, Kind: audit.Host})
			if err != nil || !r.Valid() {
				t.Fatalf("got %v, %v", r, err)
			}
			receipts = append(receipts, r)
		}
		for i, want := range []struct {
			seq  uint64
			prev audit.Hash
		}{{1, audit.Hash{}}, {1, audit.Hash{}}, {2, receipts[0].Hash()}} {
			e, at, err := audit.Decode(sink.rows[i].Bytes)
			if err != nil {
				t.Fatal(err)
			}
			if at != (audit.Link{Seq: want.seq, Prev: want.prev}) {
				t.Errorf("entry %d stands at %v, want %v", i, at, want)
			}
			if r := receipts[i]; r.Index() != uint64(i) || r.Hash() != audit.LeafHash(sink.rows[i].Bytes) || r.ID() != e.ID {
				t.Errorf("receipt %d is %v", i, r)
			}
			if now := time.Now().UTC().Truncate(time.Microsecond); !e.Time.Equal(now) || e.Count != 1 || len(e.ID) != 36 {
				t.Errorf("entry %d has time %s, count %d, id %q; want %s, 1 and one", i, e.Time, e.Count, e.ID, now)
			}
		}
	})
}

// R16: a log that cannot be written is ErrUnavailable, and there is no receipt.
func TestAppendFails(t *testing.T) {
	full := errors.New("disk full")
	r, err := audit.NewLog(&ledger{err: full}).Append(t.Context(), audit.Entry{Tenant: "t", Kind: audit.Host})
	if !errors.Is(err, audit.ErrUnavailable) || !errors.Is(err, full) || r.Valid() {
		t.Errorf("got %v, %v; want ErrUnavailable and the store's error", r, err)
	}
}

// A mistake of the caller is told apart, and nothing is kept.
func TestAppendRefusesABadEntry(t *testing.T) {
	sink := &ledger{}
	log := audit.NewLog(sink)
	for name, e := range map[string]audit.Entry{
		"no tenant":           {Kind: audit.Host},
		"no kind":             {Tenant: "t"},
		"unknown kind":        {Tenant: "t", Kind: "other"},
		"too long":            {Tenant: "t", Kind: audit.Host, Actor: strings.Repeat("x", audit.MaxText+1)},
		"not UTF-8":           {Tenant: "t", Kind: audit.Host, Subject: "\xff"},
		"facts out of order":  {Tenant: "t", Kind: audit.Host, Facts: []audit.Fact{{Name: "b"}, {Name: "a"}}},
		"a fact twice":        {Tenant: "t", Kind: audit.Host, Facts: []audit.Fact{{Name: "a"}, {Name: "a"}}},
		"a time without text": {Tenant: "t", Kind: audit.Host, Time: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		r, err := log.Append(t.Context(), e)
		if !errors.Is(err, audit.ErrEntry) || errors.Is(err, audit.ErrUnavailable) || r.Valid() {
			t.Errorf("%s: got %v, %v; want ErrEntry alone", name, r, err)
		}
	}
	if len(sink.rows) != 0 {
		t.Errorf("%d rows were kept", len(sink.rows))
	}
}

// A change is made with its entry or not at all.
func TestCommit(t *testing.T) {
	sink := &ledger{}
	log := audit.NewLog(sink)
	e := audit.Entry{Tenant: "t", Kind: audit.Granted}

	r, err := log.Commit(t.Context(), e, sink.Append)
	if err != nil || !r.Valid() {
		t.Errorf("got %v, %v", r, err)
	}
	conflict := errors.New("conflict")
	r, err = log.Commit(t.Context(), e, func(context.Context, audit.Pending) error { return conflict })
	if err != conflict || r.Valid() {
		t.Errorf("the store's error: got %v, %v; want it as it is", r, err)
	}
	r, err = log.Commit(t.Context(), e, func(_ context.Context, p audit.Pending) error {
		if _, err := p.Seal(audit.Head{}); err != nil {
			return err
		}
		return conflict
	})
	if err != conflict || r.Valid() {
		t.Errorf("sealed, then rolled back: got %v, %v; want the store's error", r, err)
	}
	r, err = log.Commit(t.Context(), e, func(context.Context, audit.Pending) error { return nil })
	if !errors.Is(err, audit.ErrUnavailable) || r.Valid() {
		t.Errorf("a store that forgets to seal: got %v, %v; want ErrUnavailable", r, err)
	}
	r, err = log.Commit(t.Context(), e, func(ctx context.Context, p audit.Pending) error {
		_, _ = p.Seal(audit.Head{}) // the transaction that is tried again
		return sink.Append(ctx, p)
	})
	if err != nil || r.Index() != 1 || r.Hash() != sink.rows[1].Hash {
		t.Errorf("sealed twice: got %v, %v; want the last", r, err)
	}
	if _, err := log.Verify(t.Context(), nil); err != nil || len(sink.rows) != 2 {
		t.Errorf("%d rows, %v", len(sink.rows), err)
	}
}

// Zero is closed: there is no change without an entry, and no proof without a log.
func TestZeroPendingAndReceipt(t *testing.T) {
	if leaf, err := (audit.Pending{}).Seal(audit.Head{}); !errors.Is(err, audit.ErrEntry) || leaf.Bytes != nil {
		t.Errorf("Seal: got %v, %v; want ErrEntry", leaf, err)
	}
	if (audit.Pending{}).Tenant() != "" || (audit.Receipt{}).Valid() {
		t.Error("the zero Pending has a tenant, or the zero Receipt is valid")
	}
	sink := &ledger{}
	if err := sink.Append(t.Context(), audit.Pending{}); err == nil || len(sink.rows) != 0 {
		t.Errorf("a store keeps the zero Pending: %v", err)
	}
}

// What is sealed is what was checked, whatever the caller does to its slice
// until a store gets to sealing.
func TestEntryIsCopied(t *testing.T) {
	sink := &ledger{}
	facts := audit.Facts("a", "1", "b", "2")
	_, err := audit.NewLog(sink).Commit(t.Context(), audit.Entry{Tenant: "t", Kind: audit.Host, Facts: facts}, func(ctx context.Context, p audit.Pending) error {
		facts[0], facts[1] = facts[1], audit.Fact{Name: "\xff"}
		return sink.Append(ctx, p)
	})
	if err != nil {
		t.Fatal(err)
	}
	e, _, err := audit.Decode(sink.rows[0].Bytes)
	if err != nil || e.Fact("a") != "1" || e.Fact("b") != "2" {
		t.Errorf("got %v, %v", e.Facts, err)
	}
}

func TestNewLogPanicsWithoutASink(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it does not panic")
		}
	}()
	audit.NewLog(nil)
}

func TestEntries(t *testing.T) {
	sink, log := written(t, 9)
	subjects := func(tenant string, from uint64) (got []string, last error) {
		for leaf, err := range log.Entries(t.Context(), tenant, from) {
			if err != nil {
				return got, err
			}
			got = append(got, leaf.Entry.Subject)
		}
		return got, nil
	}
	for _, tt := range []struct {
		tenant string
		from   uint64
		want   []string
	}{
		{"", 6, []string{"6", "7", "8"}},
		{"tenant 1", 0, []string{"1", "4", "7"}},
		{"tenant 1", 2, []string{"4", "7"}},
		{"nobody", 0, nil},
		{"", 9, nil},
	} {
		got, err := subjects(tt.tenant, tt.from)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%q from %d: %v (-want +got):\n%s", tt.tenant, tt.from, err, diff)
		}
	}
	sink.rows[4].Bytes = []byte("x")
	got, err := subjects("tenant 1", 0)
	broken, ok := errors.AsType[*audit.BrokenError](err)
	if len(got) != 1 || !ok || broken.Index != 4 || !errors.Is(err, audit.ErrBroken) || !errors.Is(err, audit.ErrLeaf) {
		t.Errorf("a broken leaf: got %q, %v; want the entry before it and a BrokenError at 4", got, err)
	}
}

// Many goroutines append at once, and each gets the receipt of its own entry.
func TestAppendConcurrently(t *testing.T) {
	sink := &ledger{}
	log := audit.NewLog(sink)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			id := fmt.Sprint("id ", i)
			r, err := log.Append(context.Background(), audit.Entry{ID: id, Tenant: "t", Kind: audit.Host})
			if err != nil || r.ID() != id {
				t.Errorf("%s: got %v, %v", id, r, err)
				return
			}
			sink.mu.Lock()
			defer sink.mu.Unlock()
			if e, _, err := audit.Decode(sink.rows[r.Index()].Bytes); err != nil || e.ID != id {
				t.Errorf("%s: its receipt points to %s, %v", id, e.ID, err)
			}
		})
	}
	wg.Wait()
	if tree, err := log.Verify(t.Context(), nil); err != nil || tree.Size != 50 {
		t.Errorf("Verify: %v, %v", tree, err)
	}
}

// Who watches the log is told of each write and whether it failed: a change that its
// store refused is no failure of the log.
func TestWatch(t *testing.T) {
	l := &ledger{}
	log := audit.NewLog(l)
	var told []bool
	log.Watch(func(_ time.Duration, failed bool) { told = append(told, failed) })
	e := audit.Entry{Tenant: "t", Kind: audit.Policy}
	refused := errors.New("another change came first")
	for _, write := range []func() error{
		func() error { _, err := log.Append(t.Context(), e); return err },
		func() error { _, err := log.Commit(t.Context(), e, l.Append); return err },
		func() error {
			_, err := log.Commit(t.Context(), e, func(context.Context, audit.Pending) error { return refused })
			return err
		},
		func() error {
			_, err := log.Commit(t.Context(), e, func(ctx context.Context, p audit.Pending) error {
				return errors.Join(l.Append(ctx, p), errors.New("the commit failed"))
			})
			return err
		},
		func() error {
			_, err := log.Commit(t.Context(), e, func(context.Context, audit.Pending) error { return nil })
			return err
		},
		func() error { l.err = errors.New("the disk is full"); _, err := log.Append(t.Context(), e); return err },
		func() error { _, err := log.Append(t.Context(), audit.Entry{}); return err }, // none that could be written
	} {
		_ = write() // what comes of it is what is told
	}
	if want := []bool{false, false, false, true, true, true}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}
