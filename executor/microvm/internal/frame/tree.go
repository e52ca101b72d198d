package frame

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// A Kind is what an entry of a tree is.
type Kind byte

// The kinds of entries.
const (
	_ Kind = iota
	Folder
	Regular
	Link
	Other // a fifo, a device, a socket
	lastKind
)

// Bounds of a tree.
const (
	MaxEntries = 10_001 // in each of the three folders; a host looks at one less, and knows of more by it
	MaxName    = 255    // bytes
)

// An Entry is one file or folder that a script may have left. Folders come before
// what is in them, and what is in one comes in the bytewise order of the names.
type Entry struct {
	Parent  uint32 // the number of the folder that it lies in; below [Roots]: one of those
	Name    string
	Kind    Kind
	Size    uint64 // of a regular file, in bytes
	Later   bool   // it changed after it was laid out
	Twice   bool   // it has a second name
	Foreign bool   // it lies on another file system
	Closed  bool   // it cannot be read
}

// Roots is how many folders there are from the start: the numbers 0, 1 and 2 are the
// skill's, that of the inputs and that of the outputs. Entries are numbered from it.
const Roots = 3

const entryBytes = 4 + 1 + 8 + 1 + 1

// MaxEntry is how many bytes an entry has at most.
const MaxEntry = entryBytes + MaxName

// Append writes e behind b.
func (e Entry) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, e.Parent)
	b = append(b, byte(e.Kind))
	b = binary.BigEndian.AppendUint64(b, e.Size)
	flags := byte(0)
	for i, f := range []bool{e.Later, e.Twice, e.Foreign, e.Closed} {
		if f {
			flags |= 1 << i
		}
	}
	b = append(b, flags, byte(len(e.Name)))
	return append(b, e.Name...)
}

// A Tree is the entries that have come so far. Its zero value has none.
type Tree struct {
	Entries []Entry
	counts  [Roots]int
	roots   []byte            // of each entry
	last    map[uint32]string // the name that came last in each folder
}

// Add reads entries.
//
// # Errors
//
// One that wraps ErrFrame for one that is cut off, lies in what is no folder before
// it, has a name that is none or does not come in order, or is one too many.
func (t *Tree) Add(b []byte) error {
	if t.last == nil {
		t.last = map[uint32]string{}
	}
	for len(b) > 0 {
		if len(b) < entryBytes || len(b) < entryBytes+int(b[entryBytes-1]) {
			return fmt.Errorf("%w: an entry is cut off", ErrFrame)
		}
		flags := b[13]
		e := Entry{
			Parent: binary.BigEndian.Uint32(b), Kind: Kind(b[4]), Size: binary.BigEndian.Uint64(b[5:]),
			Later: flags&1 != 0, Twice: flags&2 != 0, Foreign: flags&4 != 0, Closed: flags&8 != 0,
			Name: string(b[entryBytes : entryBytes+int(b[entryBytes-1])]),
		}
		if flags >= 16 || e.Kind == 0 || e.Kind >= lastKind || e.Size > 1<<62 {
			return fmt.Errorf("%w: an entry of no kind", ErrFrame)
		}
		if err := t.add(e); err != nil {
			return err
		}
		b = b[entryBytes+len(e.Name):]
	}
	return nil
}

func (t *Tree) add(e Entry) error {
	root := byte(e.Parent)
	if e.Parent >= Roots {
		i := int64(e.Parent) - Roots
		if i >= int64(len(t.Entries)) || t.Entries[i].Kind != Folder {
			return fmt.Errorf("%w: an entry lies in what is no folder", ErrFrame)
		}
		root = t.roots[i]
	}
	if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") {
		return fmt.Errorf("%w: an entry has no name that a file can have", ErrFrame)
	}
	if before, ok := t.last[e.Parent]; ok && before >= e.Name {
		return fmt.Errorf("%w: an entry comes twice, or out of order", ErrFrame)
	}
	if t.counts[root]++; t.counts[root] > MaxEntries {
		return fmt.Errorf("%w: more than %d entries", ErrFrame, MaxEntries)
	}
	t.last[e.Parent] = e.Name
	t.Entries, t.roots = append(t.Entries, e), append(t.roots, root)
	return nil
}
