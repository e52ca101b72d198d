package audit_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/audit"
)

func TestVerify(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, 300} {
		sink, log := written(t, n)
		tree, err := log.Verify(t.Context(), nil)
		if err != nil || tree.Size != uint64(n) || tree.Root != sink.tip.Root() {
			t.Errorf("%d entries: got %v, %v", n, tree, err)
		}
	}
	_, log := written(t, 2500)
	var done []uint64
	if _, err := log.Verify(t.Context(), func(n uint64) { done = append(done, n) }); err != nil || !slices.Equal(done, []uint64{1024, 2048}) {
		t.Errorf("progress is %d, %v", done, err)
	}
}

// forge writes row i again with another subject, as somebody would who knows
// the leaf's form: bytes, hash and columns fit together.
func forge(t *testing.T, l *ledger, i int) {
	t.Helper()
	old, _, err := audit.Decode(l.rows[i].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	old.Subject += " edited"
	head := audit.Head{Tenant: audit.Link{Seq: l.rows[i].Seq - 1}}
	_, at, _ := audit.Decode(l.rows[i].Bytes)
	head.Tenant.Prev = at.Prev
	_, err = audit.NewLog(l).Commit(t.Context(), old, func(_ context.Context, p audit.Pending) error {
		leaf, err := p.Seal(head)
		l.rows[i].Bytes, l.rows[i].Hash = leaf.Bytes, leaf.Hash
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// B7: each kind of tampering is found, and the first entry that does not add up
// is named. Row i belongs to tenant i%3.
func TestVerifyFinds(t *testing.T) {
	tests := []struct {
		name   string
		tamper func(t *testing.T, l *ledger)
		at     int // the first entry that does not add up; -1: none can be named
		says   string
	}{
		{"a changed byte", func(_ *testing.T, l *ledger) { l.rows[5].Bytes[len(l.rows[5].Bytes)-1] ^= 1 }, 5, "bytes were changed"},
		{"bytes that are no leaf", func(_ *testing.T, l *ledger) { l.rows[5].Bytes = l.rows[5].Bytes[1:] }, 5, "not a leaf"},
		{"no bytes", func(_ *testing.T, l *ledger) { l.rows[5].Bytes = nil }, 5, "not a leaf"},
		{"a changed hash", func(_ *testing.T, l *ledger) { l.rows[5].Hash[0] ^= 1 }, 5, "bytes were changed"},
		{"the column of the tenant", func(_ *testing.T, l *ledger) { l.rows[5].Tenant = "tenant 1" }, 5, "columns"},
		{"the column of the sequence", func(_ *testing.T, l *ledger) { l.rows[5].Seq++ }, 5, "columns"},
		{"two rows in each other's place", func(_ *testing.T, l *ledger) { l.rows[4], l.rows[5] = l.rows[5], l.rows[4] }, 4, "missing"},
		{"two rows swapped with their index", func(_ *testing.T, l *ledger) {
			l.rows[4], l.rows[7] = l.rows[7], l.rows[4]
			l.rows[4].Index, l.rows[7].Index = 4, 7
		}, 4, "sequence goes from 1 to 3"},
		{"two rows of different tenants swapped with their index", func(_ *testing.T, l *ledger) {
			l.rows[10], l.rows[11] = l.rows[11], l.rows[10]
			l.rows[10].Index, l.rows[11].Index = 10, 11
		}, -1, "root"},
		{"a missing row", func(_ *testing.T, l *ledger) { l.rows = slices.Delete(l.rows, 5, 6) }, 5, "missing"},
		{"the first row missing", func(_ *testing.T, l *ledger) { l.rows = l.rows[1:] }, 0, "missing"},
		{"a missing row, the others moved up", func(_ *testing.T, l *ledger) {
			l.rows = slices.Delete(l.rows, 5, 6)
			for i := range l.rows {
				l.rows[i].Index = uint64(i)
			}
		}, 7, "sequence goes from 1 to 3"},
		{"a row twice", func(_ *testing.T, l *ledger) { l.rows = slices.Insert(l.rows, 5, l.rows[5]) }, 6, "missing"},
		{"the tail cut", func(_ *testing.T, l *ledger) { l.rows = l.rows[:10] }, 10, "ends after 10 entries, and 12 were written"},
		{"everything cut", func(_ *testing.T, l *ledger) { l.rows = nil }, 0, "ends after 0 entries"},
		{"the tip rolled back", func(t *testing.T, l *ledger) { l.tip = after(t, l, 8) }, 8, "behind the end"},
		{"a row edited and hashed again", func(t *testing.T, l *ledger) { forge(t, l, 5) }, 8, "does not follow"},
		{"a tenant's last row edited and hashed again", func(t *testing.T, l *ledger) { forge(t, l, 11) }, -1, "root"},
		{"the root", func(t *testing.T, l *ledger) { l.tip = otherEdge(t, l.tip) }, -1, "root"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sink, log := written(t, 12)
			tt.tamper(t, sink)
			tree, err := log.Verify(t.Context(), nil)
			if !errors.Is(err, audit.ErrBroken) || tree != (audit.Tree{}) {
				t.Fatalf("got %v, %v; want ErrBroken", tree, err)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("it says %q, want %q in it", err, tt.says)
			}
			broken, ok := errors.AsType[*audit.BrokenError](err)
			if ok != (tt.at >= 0) || ok && broken.Index != uint64(tt.at) {
				t.Errorf("got %v, want it to name entry %d", err, tt.at)
			}
		})
	}
}

// after returns the frontier that l had after n entries.
func after(t *testing.T, l *ledger, n int) audit.Frontier {
	t.Helper()
	old := &ledger{}
	for _, row := range l.rows[:n] {
		e, _, err := audit.Decode(row.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := audit.NewLog(old).Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	return old.tip
}

func otherEdge(t *testing.T, f audit.Frontier) audit.Frontier {
	t.Helper()
	edge := f.Edge()
	edge[0][0] ^= 1
	f, err := audit.NewFrontier(f.Size(), edge)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Entries that are written while Verify reads are no fault.
func TestVerifyWhileTheLogGrows(t *testing.T) {
	sink, log := written(t, 5)
	grown := false
	sink.reading = func() {
		if !grown {
			grown = true
			if _, err := log.Append(t.Context(), audit.Entry{Tenant: "t", Kind: audit.Host}); err != nil {
				t.Error(err)
			}
		}
	}
	tree, err := audit.NewLog(lateSink{sink}).Verify(t.Context(), nil)
	if err != nil || tree.Size != 5 {
		t.Errorf("got %v, %v; want the 5 entries that were there", tree, err)
	}
}

// lateSink yields also what was written since Leaves was called.
type lateSink struct{ *ledger }

func (l lateSink) Leaves(context.Context, string, uint64) iter.Seq2[audit.Leaf, error] {
	return func(yield func(audit.Leaf, error) bool) {
		for i := 0; i < len(l.rows); i++ {
			l.reading()
			if !yield(l.rows[i], nil) {
				return
			}
		}
	}
}

// A log that cannot be read is not called broken.
func TestVerifyTellsUnreadableFromBroken(t *testing.T) {
	sink, _ := written(t, 5)
	for name, s := range map[string]audit.Sink{"tip": noTip{sink}, "leaves": noLeaves{sink}} {
		_, err := audit.NewLog(s).Verify(t.Context(), nil)
		if !errors.Is(err, errDisk) || errors.Is(err, audit.ErrBroken) {
			t.Errorf("%s: got %v, want the store's error", name, err)
		}
	}
}

var errDisk = errors.New("disk")

type noTip struct{ *ledger }

func (noTip) Tip(context.Context) (audit.Frontier, error) { return audit.Frontier{}, errDisk }

type noLeaves struct{ *ledger }

func (l noLeaves) Leaves(context.Context, string, uint64) iter.Seq2[audit.Leaf, error] {
	return func(yield func(audit.Leaf, error) bool) {
		_ = yield(l.rows[0], nil) && yield(audit.Leaf{}, errDisk)
	}
}

func BenchmarkAppend(b *testing.B) {
	log := audit.NewLog(&ledger{})
	e := audit.Entry{Tenant: "t", Kind: audit.Admission, Subject: "unit-converter scripts/convert.py", Facts: audit.Facts("digest", strings.Repeat("x", 71), "grant", strings.Repeat("x", 36))}
	for b.Loop() {
		if _, err := log.Append(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
}
