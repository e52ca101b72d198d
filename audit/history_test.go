package audit_test

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/audit"
)

// historyOf is what an export of a tenant has: the whole of its rows.
func historyOf(l *ledger, tenant string) (rows []audit.Leaf) {
	for _, row := range l.rows {
		if tenant == "" || row.Tenant == tenant {
			row.Bytes = slices.Clone(row.Bytes)
			rows = append(rows, row)
		}
	}
	return rows
}

func leavesOf(rows []audit.Leaf) iter.Seq2[audit.Leaf, error] {
	return func(yield func(audit.Leaf, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// provedRow is the proof of a row, in a tree of all.
func provedRow(t *testing.T, l *ledger, i int) audit.Proof {
	t.Helper()
	p, err := audit.Prove(audit.Checkpoint{Tree: audit.Tree{Size: l.tip.Size(), Root: l.tip.Root()}}, uint64(i), l.rows[i].Bytes, inner(t, l))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// R16: a tenant checks its own history without the log, and sees nothing of others.
func TestHistory(t *testing.T) {
	sink, _ := written(t, 12)
	for _, tt := range []struct {
		name, tenant string
		proofs       []int
		entries      uint64
		proved       uint64
	}{
		{"one tenant, nothing proved", "tenant 1", nil, 4, 0},
		{"one tenant, its second entry proved", "tenant 1", []int{4}, 4, 2},
		{"one tenant, two of it proved", "tenant 1", []int{7, 1}, 4, 3},
		{"all tenants", "", []int{11, 0}, 12, 5},
		{"nothing", "tenant 9", nil, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var proofs []audit.Proof
			for _, i := range tt.proofs {
				proofs = append(proofs, provedRow(t, sink, i))
			}
			h, err := audit.VerifyHistory(leavesOf(historyOf(sink, tt.tenant)), proofs...)
			if err != nil || h.Entries != tt.entries || h.Proved != tt.proved {
				t.Errorf("got %+v, %v", h, err)
			}
		})
	}
}

// R16, B7: a history that was changed, cut or made up is told, by its kind and by the
// first entry that is amiss. The tenant's rows are entries 1, 4, 7 and 10.
func TestHistoryFinds(t *testing.T) {
	type rows = []audit.Leaf
	for _, tt := range []struct {
		name   string
		proofs []int
		tamper func(*testing.T, *ledger, rows) rows
		want   error
		at     uint64
		says   string
	}{
		{"a changed byte", nil, func(_ *testing.T, _ *ledger, r rows) rows { r[1].Bytes[len(r[1].Bytes)-1] ^= 1; return r }, audit.ErrAltered, 4, "bytes were changed"},
		{"bytes that are no leaf", nil, func(_ *testing.T, _ *ledger, r rows) rows { r[1].Bytes = r[1].Bytes[1:]; return r }, audit.ErrAltered, 4, "not a leaf"},
		{"a changed hash", nil, func(_ *testing.T, _ *ledger, r rows) rows { r[1].Hash[0] ^= 1; return r }, audit.ErrAltered, 4, "bytes were changed"},
		{"another tenant beside it", nil, func(_ *testing.T, _ *ledger, r rows) rows { r[1].Tenant = "tenant 2"; return r }, audit.ErrAltered, 4, "told beside it"},
		{"another sequence number beside it", nil, func(_ *testing.T, _ *ledger, r rows) rows { r[1].Seq++; return r }, audit.ErrAltered, 4, "told beside it"},
		{"an entry left out", nil, func(_ *testing.T, _ *ledger, r rows) rows { return slices.Delete(r, 1, 2) }, audit.ErrMissing, 7, "from 1 to 3"},
		{"the first left out", nil, func(_ *testing.T, _ *ledger, r rows) rows { return r[1:] }, audit.ErrMissing, 4, "from 0 to 2"},
		{"an entry twice", nil, func(_ *testing.T, _ *ledger, r rows) rows { return slices.Insert(r, 1, r[0]) }, audit.ErrAltered, 1, "comes after entry 1"},
		{"two in each other's place", nil, func(_ *testing.T, _ *ledger, r rows) rows {
			r[1], r[2] = r[2], r[1]
			r[1].Index, r[2].Index = 4, 7
			return r
		}, audit.ErrMissing, 4, "from 1 to 3"},
		{"one made up and hashed again", nil, func(t *testing.T, l *ledger, _ rows) rows { forge(t, l, 4); return historyOf(l, "tenant 1") }, audit.ErrAltered, 7, "does not follow"},
		{"the last made up and hashed again, and a receipt", []int{10}, func(t *testing.T, l *ledger, _ rows) rows { forge(t, l, 10); return historyOf(l, "tenant 1") }, audit.ErrAltered, 10, "a proof tells of another"},
		{"another index, and a receipt", []int{10}, func(_ *testing.T, _ *ledger, r rows) rows { r[3].Index++; return r }, audit.ErrAltered, 11, "a proof tells of another"},
		{"the end cut, and a receipt", []int{1, 10}, func(_ *testing.T, _ *ledger, r rows) rows { return r[:3] }, audit.ErrTruncated, 10, "the last one here is 3"},
		{"a receipt of a tenant that is not there", []int{2}, func(_ *testing.T, _ *ledger, r rows) rows { return r }, audit.ErrTruncated, 2, "the last one here is 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sink, _ := written(t, 12)
			var proofs []audit.Proof
			for _, i := range tt.proofs {
				proofs = append(proofs, provedRow(t, sink, i))
			}
			h, err := audit.VerifyHistory(leavesOf(tt.tamper(t, sink, historyOf(sink, "tenant 1"))), proofs...)
			broken, ok := errors.AsType[*audit.BrokenError](err)
			if !errors.Is(err, tt.want) || !ok || broken.Index != tt.at || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %+v, %v; want %v at entry %d with %q", h, err, tt.want, tt.at, tt.says)
			}
		})
	}
	t.Run("what cannot be read", func(t *testing.T) {
		unread := errors.New("unread")
		if _, err := audit.VerifyHistory(func(yield func(audit.Leaf, error) bool) { yield(audit.Leaf{}, unread) }); !errors.Is(err, unread) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("two receipts of different entries at one place", func(t *testing.T) {
		one, _ := written(t, 12)
		other, _ := written(t, 12)
		forge(t, other, 10)
		forged := provedRow(t, one, 10)
		forged.Leaf = other.rows[10].Bytes
		if _, err := audit.VerifyHistory(leavesOf(historyOf(one, "tenant 1")), provedRow(t, one, 10), forged); !errors.Is(err, audit.ErrAltered) {
			t.Errorf("got %v, want ErrAltered", err)
		}
	})
}
