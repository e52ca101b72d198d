package frame

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// M01, M02: each frame of an agent is of a type that is known and within its length;
// whatever else comes is refused before it is read.
func TestHeard(t *testing.T) {
	framed := func(t Type, n int) []byte {
		var b bytes.Buffer
		_ = Write(&b, t, make([]byte, n)) // a buffer takes all
		return b.Bytes()
	}
	var hello bytes.Buffer
	if err := Write(&hello, Hello, []byte(Greeting)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		in   []byte
		err  error
	}{
		{"a greeting", hello.Bytes(), nil},
		{"another greeting", framed(Hello, len(Greeting)), ErrFrame},
		{"output", framed(Stdout, MaxChunk), nil},
		{"no output", framed(Stdout, 0), ErrFrame},
		{"too much output", framed(Stderr, MaxChunk+1), ErrFrame},
		{"a start", framed(Started, 0), nil},
		{"a start that says something", framed(Started, 1), ErrFrame},
		{"an ending that is cut", framed(Ended, endBytes-1), ErrFrame},
		{"what a host says", framed(Order, 10), ErrFrame},
		{"no type", framed(0, 0), ErrFrame},
		{"a length of 4 GiB", []byte{byte(Stdout), 255, 255, 255, 255}, ErrFrame},
		{"nothing", nil, io.EOF},
		{"a head that is cut", framed(Stdout, 5)[:3], io.ErrUnexpectedEOF},
		{"a body that is cut", framed(Stdout, 5)[:8], io.ErrUnexpectedEOF},
		{"no body", framed(Stdout, 5)[:5], io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := Heard(bytes.NewReader(c.in)); !errors.Is(err, c.err) {
				t.Errorf("got %v, want %v", err, c.err)
			}
		})
	}
}

// What an agent writes is what a host reads.
func TestRound(t *testing.T) {
	for _, e := range []End{{}, {Code: 255}, {Signal: 9, OutOfMemory: true}, {Code: 3, Left: 7}} {
		if got, err := ParseEnd(e.Bytes()); err != nil || got != e {
			t.Errorf("got %+v, %v, want %+v", got, err, e)
		}
	}
	for _, f := range []Failure{{Step: Boot}, {Step: Start, Errno: 2}} {
		if got, err := ParseFailure(f.Bytes()); err != nil || got != f || got.Step.String() == "" {
			t.Errorf("got %+v, %v, want %+v", got, err, f)
		}
	}
	if n, most, err := ParseFetch(FetchBytes(7, 1<<40)); err != nil || n != 7 || most != 1<<40 {
		t.Errorf("got %d, %d, %v", n, most, err)
	}
	seed := [SeedBytes]byte{1, SeedBytes - 1: 2}
	if now, got, err := ParseWake(WakeBytes(1<<60, seed)); err != nil || now != 1<<60 || [SeedBytes]byte(got) != seed {
		t.Errorf("got %d, %v, %v", now, got, err)
	}
	if _, _, err := ParseWake(make([]byte, SeedBytes)); !errors.Is(err, ErrFrame) {
		t.Errorf("a wake that is cut: %v", err)
	}
	want := []Entry{
		{Parent: 2, Name: "a", Kind: Folder, Later: true}, {Parent: 2, Name: "b", Kind: Regular, Size: 1 << 40, Twice: true},
		{Parent: 3, Name: strings.Repeat("x", MaxName), Kind: Link, Foreign: true}, {Parent: 0, Name: "ü\n", Kind: Other, Closed: true},
	}
	var b []byte
	for _, e := range want {
		b = e.Append(b)
	}
	var got Tree
	if err := got.Add(b); err != nil || len(got.Entries) != len(want) {
		t.Fatalf("got %+v, %v", got.Entries, err)
	}
	for i, e := range want {
		if got.Entries[i] != e {
			t.Errorf("got %+v, want %+v", got.Entries[i], e)
		}
	}
}

// M01, H01: a tree is one: each entry lies in a folder before it and has a name that a
// file can have, once, and there are not more than are looked at.
func TestTree(t *testing.T) {
	tree := func(list ...Entry) []byte {
		var b []byte
		for _, e := range list {
			b = e.Append(b)
		}
		return b
	}
	file := func(parent uint32, name string) Entry { return Entry{Parent: parent, Name: name, Kind: Regular} }
	many := make([]Entry, MaxEntries+1)
	for i := range many {
		many[i] = file(1, string([]byte{byte('a' + i>>12), byte('a' + i>>8&15), byte('a' + i>>4&15), byte('a' + i&15)}))
	}
	for _, c := range []struct {
		name string
		in   []byte
		ok   bool
	}{
		{"nothing", nil, true},
		{"as many as may be", tree(many[:MaxEntries]...), true},
		{"one too many", tree(many...), false},
		{"in a file", tree(file(0, "a"), file(3, "b")), false},
		{"in what is not there", tree(file(4, "b")), false},
		{"in itself", tree(Entry{Parent: 3, Name: "a", Kind: Folder}), false},
		{"twice", tree(file(0, "a"), file(0, "a")), false},
		{"out of order", tree(file(0, "b"), file(0, "a")), false},
		{"no name", tree(file(0, "")), false},
		{"the folder itself", tree(file(0, ".")), false},
		{"the folder above", tree(file(0, "..")), false},
		{"a path", tree(file(0, "a/b")), false},
		{"a name with an end", tree(file(0, "a\x00b")), false},
		{"no kind", tree(Entry{Name: "a"}), false},
		{"a kind that is none", tree(Entry{Name: "a", Kind: lastKind}), false},
		{"a size that no file has", tree(Entry{Name: "a", Kind: Regular, Size: 1 << 63}), false},
		{"cut off", tree(file(0, "abc"))[:16], false},
		{"a head that is cut", []byte{0}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got Tree
			if err := got.Add(c.in); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrFrame) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// M01: whatever a machine sends, what is read of it is within bounds.
func FuzzHeard(f *testing.F) {
	for _, s := range []struct {
		t Type
		b []byte
	}{{Hello, []byte(Greeting)}, {Ended, End{Code: 3}.Bytes()}, {Failed, Failure{Step: Lay, Errno: 28}.Bytes()}, {Listing, Entry{Name: "a", Kind: Folder}.Append(nil)}, {Whole, nil}} {
		var b bytes.Buffer
		if err := Write(&b, s.t, s.b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		var tree Tree
		for {
			kind, b, err := Heard(r)
			if err != nil {
				return
			}
			if len(b) > MaxChunk {
				t.Errorf("M01: a frame of %d bytes", len(b))
			}
			switch kind {
			case Ended:
				if e, err := ParseEnd(b); err == nil && (e.Signal > maxSignal || e.Left > maxLeft) {
					t.Errorf("M01: got %+v", e)
				}
			case Failed:
				if f, err := ParseFailure(b); err == nil && f.Step.String() == "" {
					t.Errorf("M01: got %+v", f)
				}
			case Listing:
				if tree.Add(b) != nil {
					return
				}
			}
		}
	})
}

// M01, H01: whatever a machine tells of its files, each entry lies below a root.
func FuzzTree(f *testing.F) {
	f.Add(Entry{Name: "a", Kind: Folder}.Append(nil), Entry{Parent: 3, Name: "b", Kind: Regular}.Append(nil))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var tree Tree
		if tree.Add(a) != nil || tree.Add(b) != nil {
			return
		}
		for i, e := range tree.Entries {
			for up, steps := e.Parent, 0; up >= Roots; steps++ {
				if steps > len(tree.Entries) || up-Roots >= uint32(i) || tree.Entries[up-Roots].Kind != Folder {
					t.Fatalf("H01: entry %d of %+v does not lie below a root", i, tree.Entries)
				}
				up = tree.Entries[up-Roots].Parent
			}
		}
	})
}
