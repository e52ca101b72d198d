package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/audit"
)

// inner keeps the inner hashes of l's tree.
func inner(t testing.TB, l *ledger) audit.HashReader {
	t.Helper()
	var kept []audit.Hash
	read := func(positions []int64) ([]audit.Hash, error) {
		var out []audit.Hash
		for _, p := range positions {
			if p >= int64(len(kept)) {
				return nil, fmt.Errorf("no hash at %d", p)
			}
			out = append(out, kept[p])
		}
		return out, nil
	}
	for i, row := range l.rows {
		hashes, err := audit.InnerHashes(uint64(i), row.Hash, read)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, hashes...)
		if int64(len(kept)) != audit.InnerCount(uint64(i+1)) {
			t.Fatalf("%d hashes of %d leaves, want %d", len(kept), i+1, audit.InnerCount(uint64(i+1)))
		}
	}
	return read
}

// B7: whoever holds a receipt and the log's key can prove the entry, to anybody,
// without the log.
func TestProof(t *testing.T) {
	k := newKey(t)
	for _, size := range []int{1, 2, 3, 7, 8, 33} {
		sink, _ := written(t, size)
		read := inner(t, sink)
		c := checkpoint(t, k, audit.Tree{Size: uint64(size), Root: sink.tip.Root()})
		for i, row := range sink.rows {
			p, err := audit.Prove(c, uint64(i), row.Bytes, read)
			if err != nil {
				t.Fatalf("entry %d of %d: %v", i, size, err)
			}
			text, err := p.MarshalText()
			if err != nil {
				t.Fatal(err)
			}
			got, err := audit.OpenProof(text, k.Public())
			if err != nil || got.Index != uint64(i) || !bytes.Equal(got.Leaf, row.Bytes) || got.Checkpoint.Tree != c.Tree {
				t.Fatalf("entry %d of %d comes back as %+v, %v", i, size, got, err)
			}
			if e, at, err := got.Entry(); err != nil || e.Subject != fmt.Sprint(i) || at.Seq != row.Seq {
				t.Errorf("its entry is %+v, %v", e, err)
			}
			if _, err := audit.OpenProof(text, newKey(t).Public()); !errors.Is(err, audit.ErrUnsigned) {
				t.Errorf("with another key: got %v, want ErrUnsigned", err)
			}
		}
		if _, err := audit.Prove(c, uint64(size), sink.rows[0].Bytes, read); !errors.Is(err, audit.ErrProof) {
			t.Errorf("an entry behind the checkpoint: got %v, want ErrProof", err)
		}
		if size > 1 {
			if _, err := audit.Prove(c, 0, sink.rows[1].Bytes, read); !errors.Is(err, audit.ErrProof) {
				t.Errorf("another entry's leaf: got %v, want ErrProof", err)
			}
		}
	}
}

// A changed byte of a receipt shows, whichever it is.
func TestProofBent(t *testing.T) {
	k := newKey(t)
	sink, _ := written(t, 5)
	c := checkpoint(t, k, audit.Tree{Size: 5, Root: sink.tip.Root()})
	p, err := audit.Prove(c, 3, sink.rows[3].Bytes, inner(t, sink))
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		bent := slices.Clone(text)
		bent[i] ^= 1
		if got, err := audit.OpenProof(bent, k.Public()); err == nil {
			t.Errorf("with byte %d changed it proves %+v", i, got)
		} else if !errors.Is(err, audit.ErrProof) && !errors.Is(err, audit.ErrUnsigned) {
			t.Errorf("with byte %d changed: got %v", i, err)
		}
	}
	lines := strings.SplitAfter(string(text), "\n")
	for name, bad := range map[string]string{
		"nothing":       "",
		"no leaf":       strings.Join(slices.Delete(slices.Clone(lines), 1, 2), ""),
		"no index":      strings.Join(slices.Delete(slices.Clone(lines), 2, 3), ""),
		"a hash less":   strings.Join(slices.Delete(slices.Clone(lines), 3, 4), ""),
		"a hash more":   strings.Replace(string(text), "\n\n", "\n"+lines[3]+"\n", 1),
		"a thousand":    strings.Replace(string(text), "\n\n", "\n"+strings.Repeat(lines[3], 1000)+"\n", 1),
		"no checkpoint": strings.SplitAfter(string(text), "\n\n")[0],
		"too long":      strings.Repeat("x", audit.MaxProof+1),
	} {
		if got, err := audit.OpenProof([]byte(bad), k.Public()); !errors.Is(err, audit.ErrProof) || !got.IsZero() {
			t.Errorf("%s: got %+v, %v; want ErrProof", name, got, err)
		}
	}
	// A proof out of hashes that lie is none.
	if _, err := audit.Prove(c, 3, sink.rows[3].Bytes, func(at []int64) ([]audit.Hash, error) { return make([]audit.Hash, len(at)), nil }); !errors.Is(err, audit.ErrProof) {
		t.Errorf("hashes that lie: got %v, want ErrProof", err)
	}
	if _, err := audit.Prove(c, 3, sink.rows[3].Bytes, func([]int64) ([]audit.Hash, error) { return nil, nil }); !errors.Is(err, audit.ErrProof) {
		t.Errorf("no hashes: got %v, want ErrProof", err)
	}
}

func FuzzProof(f *testing.F) {
	k, err := audit.ParseSigningKey(fixedKey)
	if err != nil {
		f.Fatal(err)
	}
	sink, _ := written(f, 5)
	c := checkpoint(f, k, audit.Tree{Size: 5, Root: sink.tip.Root()})
	p, err := audit.Prove(c, 3, sink.rows[3].Bytes, inner(f, sink))
	if err != nil {
		f.Fatal(err)
	}
	text, _ := p.MarshalText()
	f.Add(text)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := audit.OpenProof(b, k.Public())
		if err != nil {
			if !errors.Is(err, audit.ErrProof) && !errors.Is(err, audit.ErrUnsigned) {
				t.Errorf("got %v, want ErrProof or ErrUnsigned", err)
			}
			return
		}
		if again, err := p.MarshalText(); err != nil || !bytes.Equal(again, b) {
			t.Errorf("a proof has two texts:\n%s\n%s", b, again)
		}
	})
}

// RFC 6962: of any two sizes of one log the later begins with the earlier, and a
// log that was computed anew does not.
func TestConsistency(t *testing.T) {
	const size = 17
	sink, _ := written(t, size)
	read := inner(t, sink)
	other, _ := written(t, size)
	rewrite(t, other, 2)
	tree := func(l *ledger, n int) audit.Tree {
		f := after(t, l, n)
		return audit.Tree{Size: f.Size(), Root: f.Root()}
	}
	for a := range size + 1 {
		for b := a; b <= size; b++ {
			var path []audit.Hash
			if a > 0 && a < b {
				var err error
				if path, err = audit.ProveConsistency(uint64(a), uint64(b), read); err != nil {
					t.Fatal(err)
				}
			}
			if err := audit.CheckConsistency(path, tree(sink, a), tree(sink, b)); err != nil {
				t.Errorf("from %d to %d: %v", a, b, err)
			}
			if a > 2 {
				if err := audit.CheckConsistency(path, tree(other, a), tree(sink, b)); !errors.Is(err, audit.ErrProof) {
					t.Errorf("from %d of another log to %d: got %v, want ErrProof", a, b, err)
				}
			}
			if a < b {
				if err := audit.CheckConsistency(path, tree(sink, b), tree(sink, a)); !errors.Is(err, audit.ErrProof) {
					t.Errorf("from %d back to %d: got %v, want ErrProof", b, a, err)
				}
			}
		}
	}
	if _, err := audit.ProveConsistency(0, 5, read); !errors.Is(err, audit.ErrProof) {
		t.Errorf("from nothing: got %v", err)
	}
	if err := audit.CheckConsistency(nil, audit.Tree{Root: audit.Hash{1}}, tree(sink, 3)); !errors.Is(err, audit.ErrProof) {
		t.Errorf("an empty tree with a root: got %v", err)
	}
}
