package bundle

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An Entry is what a [Listing] says of one file.
type Entry struct {
	Path   string
	Size   int64 // in bytes
	Digest Digest
}

// A Listing is what there is to know of a bundle without its bytes: the paths,
// sizes and digests of its files, and its declaration. Its Digest is that of the
// [Bundle] of the same files, which is what a grant pins. It never changes. The
// zero Listing is that of the zero Bundle; it is safe for concurrent use.
type Listing struct{ c *listed }

type listed struct {
	files       []Entry // in the bytewise order of paths
	declaration string
	total       int64
	digest      Digest
}

// A Lister makes a Listing of files that come one by one: it checks and hashes
// each, and keeps no content. Make one with [NewLister]. After an error every call
// returns that error. It is not safe for concurrent use.
type Lister struct {
	limits Limits
	files  []Entry
	total  int64
	err    error // the first one; errListed when the listing was made
}

var errListed = errors.New("bundle: the listing was made")

// NewLister returns a Lister without files. Limits with zero fields are the defaults.
func NewLister(limits Limits) *Lister { return &Lister{limits: limits.OrDefaults()} }

// Add adds the file path with data, which stays the caller's, and returns what the
// Listing will say of it. Its errors are those of [New] that are about one file,
// or about the sum of those added.
func (l *Lister) Add(path string, data []byte) (Entry, error) {
	if l.err = l.room(path, int64(len(data))); l.err != nil {
		return Entry{}, l.err
	}
	return l.add(Entry{path, int64(len(data)), Sum(data)}), nil
}

func (l *Lister) room(path string, size int64) error {
	if l.err != nil {
		return l.err
	}
	if err := l.limits.whole(len(l.files)+1, 0); err != nil {
		return err
	}
	if err := l.limits.check(path, size); err != nil {
		return err
	}
	if size < 0 || size > l.limits.TotalBytes-l.total {
		return fmt.Errorf("%w: more than %d bytes in all", ErrLimit, l.limits.TotalBytes)
	}
	return nil
}

func (l *Lister) add(e Entry) Entry {
	l.total += e.Size
	l.files = append(l.files, e)
	return e
}

// Listing returns the listing of the files that were added and declaration. It is
// the last call. Its errors are those of [New] that are about several files.
func (l *Lister) Listing(declaration []byte) (Listing, error) {
	if l.err != nil {
		return Listing{}, l.err
	}
	l.err = errListed // what a Listing has never changes
	if err := l.limits.whole(len(l.files), int64(len(declaration))); err != nil {
		return Listing{}, err
	}
	slices.SortFunc(l.files, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	for i := 1; i < len(l.files); i++ {
		if p := l.files[i].Path; p == l.files[i-1].Path {
			return Listing{}, fmt.Errorf("%w: %q stands twice", ErrPath, p)
		}
	}
	if err := checkTwins(l.files, l.limits.Kept); err != nil {
		return Listing{}, err
	}
	c := &listed{files: l.files, declaration: string(declaration), total: l.total}
	c.digest = sha256.Sum256(c.manifest())
	return Listing{c}, nil
}

// NewListing returns the listing of entries and declaration, such as those that a
// store keeps. It has seen no content: whoever reads a file later compares it with
// its entry, as [Read] does. Its errors are those of [New].
func NewListing(entries []Entry, declaration []byte, limits Limits) (Listing, error) {
	l := NewLister(limits)
	for _, e := range entries {
		if err := l.room(e.Path, e.Size); err != nil {
			return Listing{}, err
		}
		l.add(e)
	}
	return l.Listing(declaration)
}

// IsZero reports whether l is the zero Listing.
func (l Listing) IsZero() bool { return l.c == nil }

// Digest returns what a grant pins: the SHA-256 of the manifest.
func (l Listing) Digest() Digest {
	if l.c == nil {
		return Digest{}
	}
	return l.c.digest
}

// Declaration returns a copy of the declaration.
func (l Listing) Declaration() []byte {
	if l.c == nil {
		return nil
	}
	return []byte(l.c.declaration)
}

func (l Listing) declaration() string {
	if l.c == nil {
		return ""
	}
	return l.c.declaration
}

// Size returns the number of files and the sum of their sizes in bytes.
func (l Listing) Size() (files int, bytes int64) {
	if l.c == nil {
		return 0, 0
	}
	return len(l.c.files), l.c.total
}

func (l Listing) entries() []Entry {
	if l.c == nil {
		return nil
	}
	return l.c.files
}

// Entries returns a copy of the entries in the bytewise order of their paths.
func (l Listing) Entries() []Entry { return slices.Clone(l.entries()) }

// Entry returns the entry of the file at path. The look-up is by exact bytes.
func (l Listing) Entry(path string) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(l.entries(), path, func(e Entry, p string) int { return strings.Compare(e.Path, p) })
	if !ok {
		return Entry{}, false
	}
	return l.c.files[i], true
}

// Paths returns the paths of all files in bytewise order.
func (l Listing) Paths() []string {
	if l.c == nil {
		return nil
	}
	paths := make([]string, len(l.c.files))
	for i, e := range l.c.files {
		paths[i] = e.Path
	}
	return paths
}

// Within says which of the limits l exceeds, or nil.
func (l Listing) Within(limits Limits) error {
	limits = limits.OrDefaults()
	files, total := l.Size()
	if err := limits.whole(files, int64(len(l.declaration()))); err != nil {
		return err
	}
	if total > limits.TotalBytes {
		return fmt.Errorf("%w: %d bytes in all, at most %d", ErrLimit, total, limits.TotalBytes)
	}
	for _, e := range l.entries() {
		if err := limits.check(e.Path, e.Size); err != nil {
			return err
		}
	}
	return nil
}

const domain = "tracon/bundle/1"

// Manifest returns the bytes whose SHA-256 is the digest; nil for the zero Listing.
func (l Listing) Manifest() []byte {
	if l.c == nil {
		return nil
	}
	return l.c.manifest()
}

func (c *listed) manifest() []byte {
	n := len(domain) + 8 + len(c.declaration)
	for _, e := range c.files {
		n += 8 + len(e.Path) + 8 + len(e.Digest)
	}
	m := append(make([]byte, 0, n), domain...)
	for _, e := range c.files {
		m = binary.BigEndian.AppendUint64(m, uint64(len(e.Path)))
		m = append(m, e.Path...)
		m = binary.BigEndian.AppendUint64(m, uint64(e.Size))
		m = append(m, e.Digest[:]...)
	}
	m = binary.BigEndian.AppendUint64(m, uint64(len(c.declaration)))
	return append(m, c.declaration...)
}
