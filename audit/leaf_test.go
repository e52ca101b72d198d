package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

// The form of a leaf is frozen with its first landing (decisions.md, "Bytes"):
// a change of these vectors breaks every log that was ever written.
func TestLeafGolden(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 34, 56, 789012000, time.UTC)
	vectors := []struct {
		name  string
		entry Entry
		at    Link
	}{
		{"the least", Entry{Time: time.UnixMicro(0).UTC(), Tenant: "t", Kind: Policy, Count: 1}, Link{Seq: 1}},
		{
			"an admission",
			Entry{
				ID: "019e9d3c-0000-7000-8000-000000000001", Time: at, Tenant: "acme", Actor: "ann", Kind: Admission,
				Subject: "unit-converter scripts/convert.py", Run: "019e9d3c-0000-7000-8000-000000000002", Count: 1,
				Facts: Facts("grant", "g1", "digest", "sha256:00", "empty", ""),
			},
			Link{Seq: 2, Prev: Hash{0: 1, 31: 0xff}},
		},
		{
			"many alike before 1970",
			Entry{ID: "i", Time: time.UnixMicro(-1).UTC(), Tenant: "ünï", Kind: Refusal, Subject: "a\nb", Count: 1000, Facts: []Fact{{"a", ""}, {"b", "x"}}},
			Link{Seq: 1<<64 - 1},
		},
		{
			"a key of the log", Entry{ID: "k", Time: at, Tenant: "@host", Kind: Keeping, Subject: "key", Count: 1, Facts: Facts("key", "tracon/1+0+AAAA")},
			Link{Seq: 3, Prev: Hash{1: 1}},
		},
		{"a key of somebody", Entry{Time: at, Tenant: "acme", Actor: "ann", Kind: Key, Subject: "k1", Count: 1}, Link{Seq: 4}},
	}
	var got strings.Builder
	for _, v := range vectors {
		leaf := encode(v.entry, v.at)
		fmt.Fprintf(&got, "# %s\n%x\n%s\n", v.name, leaf, LeafHash(leaf))
		if e, at, err := Decode(leaf); err != nil || at != v.at || !cmp.Equal(e, v.entry) {
			t.Errorf("%s: decoded: %v, %v, %v", v.name, e, at, err)
		}
	}
	want, err := os.ReadFile("testdata/leaf.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the leaf is frozen; got (+), want (-):\n%s", diff)
	}
}

// anyEntry draws an entry that a log takes.
func anyEntry(t *rapid.T) Entry {
	text := rapid.StringN(0, 20, MaxText)
	e := Entry{
		ID: text.Draw(t, "id"), Tenant: rapid.StringN(1, 5, 64).Draw(t, "tenant"), Actor: text.Draw(t, "actor"),
		Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Subject: text.Draw(t, "subject"), Run: text.Draw(t, "run"),
		Time:  time.UnixMicro(rapid.Int64Range(-62135596800000000, 253402300799999999).Draw(t, "time")).UTC(),
		Count: rapid.Uint64Min(1).Draw(t, "count"),
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.StringN(1, 8, 64), 0, 5, rapid.ID[string]).Draw(t, "facts") {
		e.Facts = append(e.Facts, Fact{name, text.Draw(t, "value")})
	}
	slices.SortFunc(e.Facts, func(a, b Fact) int { return strings.Compare(a.Name, b.Name) })
	return e
}

// B7: what stands in the log is what was written.
func TestDecodeReadsWhatEncodeWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, at := anyEntry(t), Link{Seq: rapid.Uint64Min(1).Draw(t, "seq")}
		copy(at.Prev[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "prev"))
		got, gotAt, err := Decode(encode(want, at))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" || gotAt != at {
			t.Errorf("at %v, want %v; (-want +got):\n%s", gotAt, at, diff)
		}
	})
}

// Decode takes exactly what encode writes: no entry has two leaves.
func FuzzDecode(f *testing.F) {
	f.Add(encode(Entry{Time: time.UnixMicro(0), Tenant: "t", Kind: Host, Count: 1}, Link{Seq: 1}))
	f.Add(encode(Entry{Time: time.UnixMicro(1e15), Tenant: "t", Kind: Ending, Run: "r", Count: 3, Facts: Facts("a", "1", "b", "2")}, Link{Seq: 7, Prev: Hash{1}}))
	f.Add([]byte(leafDomain))
	f.Fuzz(func(t *testing.T, leaf []byte) {
		e, at, err := Decode(leaf)
		if err != nil {
			if !errors.Is(err, ErrLeaf) {
				t.Errorf("got %v, want ErrLeaf", err)
			}
			return
		}
		if got := encode(e, at); !bytes.Equal(got, leaf) {
			t.Errorf("bytes that decode encode to others:\n%x\n%x", leaf, got)
		}
		if err := e.check(); err != nil {
			t.Errorf("a leaf of an entry that no log takes: %v", err)
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	good := Entry{ID: "i", Time: time.UnixMicro(0), Tenant: "t", Actor: "a", Kind: Host, Subject: "s", Run: "r", Count: 1, Facts: Facts("a", "1", "b", "2")}
	with := func(change func(*Entry)) []byte {
		e := good
		e.Facts = slices.Clone(e.Facts)
		change(&e)
		return encode(e, Link{Seq: 1})
	}
	leaf := encode(good, Link{Seq: 1})
	tests := []struct {
		name string
		leaf []byte
	}{
		{"nothing", nil},
		{"another version", append([]byte("tracon/leaf/2"), leaf[len(leafDomain):]...)},
		{"a byte too many", append(slices.Clone(leaf), 0)},
		{"sequence zero", encode(good, Link{})},
		{"a length beyond the end", append(slices.Clone(leaf[:len(leafDomain)+40]), bytes.Repeat([]byte{0xff}, len(leaf))...)},
		{"no tenant", with(func(e *Entry) { e.Tenant = "" })},
		{"unknown kind", with(func(e *Entry) { e.Kind = "admin" })},
		{"count zero", with(func(e *Entry) { e.Count = 0 })},
		{"not UTF-8", with(func(e *Entry) { e.Actor = "\xff" })},
		{"facts out of order", with(func(e *Entry) { slices.Reverse(e.Facts) })},
		{"a fact twice", with(func(e *Entry) { e.Facts[1].Name = "a" })},
		{"a fact without a name", with(func(e *Entry) { e.Facts[0].Name = "" })},
		{"a text too long", with(func(e *Entry) { e.Subject = strings.Repeat("x", MaxText+1) })},
		{"a time without a text", with(func(e *Entry) { e.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) })},
		{"too many facts", with(func(e *Entry) { e.Facts = manyFacts(MaxFacts + 1) })},
	}
	for i := range leaf {
		tests = append(tests, struct {
			name string
			leaf []byte
		}{fmt.Sprintf("cut at %d", i), leaf[:i]})
	}
	for _, tt := range tests {
		if e, _, err := Decode(tt.leaf); !errors.Is(err, ErrLeaf) || !cmp.Equal(e, Entry{}) {
			t.Errorf("%s: got %v, %v; want ErrLeaf and no entry", tt.name, e, err)
		}
	}
}

func manyFacts(n int) []Fact {
	facts := make([]Fact, n)
	for i := range facts {
		facts[i] = Fact{fmt.Sprintf("%04d", i), "x"}
	}
	return facts
}

// storedHashes keeps what golang.org/x/mod/sumdb/tlog wants kept.
type storedHashes []tlog.Hash

func (s storedHashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		hashes[i] = s[at]
	}
	return hashes, nil
}

// B7, RFC 6962: the root that grows with the frontier is the one that the Go
// project's own implementation computes from all hashes.
func TestFrontierAgainstTlog(t *testing.T) {
	var f Frontier
	var kept storedHashes
	for size := range int64(301) {
		want, err := tlog.TreeHash(size, kept)
		if err != nil {
			t.Fatal(err)
		}
		if f.Size() != uint64(size) || f.Root() != Hash(want) {
			t.Fatalf("size %d: got %d and %s, want %s", size, f.Size(), f.Root(), tlog.Hash(want))
		}
		again, err := NewFrontier(f.Size(), f.Edge())
		if err != nil || again.Root() != f.Root() {
			t.Fatalf("size %d: the frontier that was kept: %v, %s", size, err, again.Root())
		}
		for _, edge := range [][]Hash{append(f.Edge(), Hash{1}), f.Edge()[:max(len(f.Edge())-1, 0)]} {
			if len(edge) == len(f.Edge()) {
				continue
			}
			if got, err := NewFrontier(f.Size(), edge); !errors.Is(err, ErrBroken) || got.Size() != 0 {
				t.Fatalf("size %d: an edge of %d hashes: got %v, want ErrBroken", size, len(edge), err)
			}
		}
		leaf := fmt.Appendf(nil, "leaf %d", size)
		hashes, err := tlog.StoredHashes(size, leaf, kept)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, hashes...)
		f = f.add(LeafHash(leaf))
	}
}

// A frontier never changes: two logs that go on from one do not meet.
func TestFrontierNeverChanges(t *testing.T) {
	edge := []Hash{{1}, {2}}
	f, err := NewFrontier(3, edge)
	if err != nil {
		t.Fatal(err)
	}
	root := f.Root()
	edge[0], f.Edge()[1] = Hash{9}, Hash{9}
	one, two := f.add(Hash{3}), f.add(Hash{4})
	if f.Root() != root || one.Root() == two.Root() || one.Root() != f.add(Hash{3}).Root() {
		t.Error("adding to a frontier changed it")
	}
}

func TestHashText(t *testing.T) {
	h := LeafHash([]byte("x"))
	text, err := json.Marshal(h)
	if err != nil || string(text) != `"`+h.String()+`"` {
		t.Fatalf("got %s, %v", text, err)
	}
	var back Hash
	if err := json.Unmarshal(text, &back); err != nil || back != h {
		t.Errorf("got %s, %v", back, err)
	}
	for _, s := range []string{"", "x", h.String()[:63], h.String() + "0", h.String() + "00", strings.ToUpper(h.String()), strings.Repeat("g", 64)} {
		if err := back.UnmarshalText([]byte(s)); err == nil || back != h {
			t.Errorf("UnmarshalText(%q): got %v and %s", s, err, back)
		}
	}
}
