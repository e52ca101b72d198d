package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Limits of a bundle when [Limits] leaves them zero. Of 1,289 public skills the
// largest file has 4.0 MB, the largest skill 14.7 MB and 1,104 files, depth 8.
const (
	DefaultFileBytes  = 8 << 20
	DefaultTotalBytes = 32 << 20
	DefaultFiles      = 2048
	DefaultDepth      = 16
	DefaultPathBytes  = 512
)

// Limits bound a bundle. A zero field means its default; a negative one is an error.
type Limits struct {
	FileBytes  int64 `json:"fileBytes,omitempty"`  // size of one file, in bytes; zero means 8 MiB
	TotalBytes int64 `json:"totalBytes,omitempty"` // sum of all files, in bytes; zero means 32 MiB
	Files      int   `json:"files,omitempty"`      // number of files; zero means 2,048
	Depth      int   `json:"depth,omitempty"`      // elements of a path; zero means 16
	PathBytes  int   `json:"pathBytes,omitempty"`  // length of a path, in bytes; zero means 512

	// Kept is for who reads what was let in before: names may be all that one could be in
	// any version. By default they must be what [CheckPath] lets through now.
	Kept bool `json:"-"`
}

// OrDefaults returns l with its zero fields at their defaults.
func (l Limits) OrDefaults() Limits {
	return Limits{
		FileBytes:  cmp.Or(l.FileBytes, DefaultFileBytes),
		TotalBytes: cmp.Or(l.TotalBytes, DefaultTotalBytes),
		Files:      cmp.Or(l.Files, DefaultFiles),
		Depth:      cmp.Or(l.Depth, DefaultDepth),
		PathBytes:  cmp.Or(l.PathBytes, DefaultPathBytes),
		Kept:       l.Kept,
	}
}

// Errors of [New], of a [Builder] and of those who read a bundle's files: what is
// wrong with the content. Each wraps ErrContent.
var (
	ErrContent = errors.New("bundle: content refused")
	ErrPath    = fmt.Errorf("%w: bad path", ErrContent)
	ErrTwins   = fmt.Errorf("%w: names that some file systems take for one", ErrContent)
	ErrLimit   = fmt.Errorf("%w: over a limit", ErrContent)
)

// A File is one file of a skill. Modes, owners and times do not count.
type File struct {
	Path string // see [CheckPath]
	Data []byte
}

// A Bundle is a set of files and a declaration that never change, in memory. The
// zero Bundle is empty and has the zero Digest. A Bundle is safe for concurrent use.
type Bundle struct{ c *closed }

type closed struct {
	listing Listing
	data    map[Digest]string // strings, so that no caller can change what was hashed; equal files stand once
}

var _ Content = Bundle{}

// New returns the bundle of files and declaration. It copies both.
//
// # Errors
//
// ErrPath for a name that is not plain or stands twice, ErrTwins for names that
// differ only by case or by Unicode normal form, ErrLimit for what is too large
// or too many.
func New(files []File, declaration []byte, limits Limits) (Bundle, error) {
	if err := limits.OrDefaults().whole(len(files), int64(len(declaration))); err != nil {
		return Bundle{}, err
	}
	files = slices.Clone(files) // in order, so that of several faults the same one is told
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	b := NewBuilder(limits)
	for _, f := range files {
		if err := b.Add(f.Path, f.Data); err != nil {
			return Bundle{}, err
		}
	}
	return b.Bundle(declaration)
}

// A Builder makes a Bundle of files that come one by one. Make one with
// [NewBuilder]. After an error every call returns that error. It is not safe for
// concurrent use.
type Builder struct {
	list *Lister
	data map[Digest]string
}

// NewBuilder returns a Builder without files. Limits with zero fields are the defaults.
func NewBuilder(limits Limits) *Builder {
	return &Builder{NewLister(limits), map[Digest]string{}}
}

// Add adds the file path with a copy of data. Its errors are those of [New] that
// are about one file, or about the sum of those added.
func (b *Builder) Add(path string, data []byte) error {
	e, err := b.list.Add(path, data)
	if err != nil {
		return err
	}
	if _, ok := b.data[e.Digest]; !ok {
		b.data[e.Digest] = string(data)
	}
	return nil
}

// Bundle returns the bundle of the files that were added and declaration. It is
// the last call. Its errors are those of [New] that are about several files.
func (b *Builder) Bundle(declaration []byte) (Bundle, error) {
	l, err := b.list.Listing(declaration)
	if err != nil {
		return Bundle{}, err
	}
	return Bundle{&closed{l, b.data}}, nil
}

// Content is [Builder.Bundle] for those who take any content.
func (b *Builder) Content(declaration []byte) (Content, error) {
	return b.Bundle(declaration)
}

// Listing returns what there is to know of b without its bytes; the zero Listing
// for the zero Bundle.
func (b Bundle) Listing() Listing {
	if b.c == nil {
		return Listing{}
	}
	return b.c.listing
}

// Within says which of the limits b exceeds, or nil.
func (b Bundle) Within(limits Limits) error { return b.Listing().Within(limits) }

// Manifest returns the bytes whose SHA-256 is the digest; nil for the zero Bundle.
func (b Bundle) Manifest() []byte { return b.Listing().Manifest() }

// Digest returns what a grant pins: the SHA-256 of the manifest.
func (b Bundle) Digest() Digest { return b.Listing().Digest() }

// IsZero reports whether b is the zero Bundle.
func (b Bundle) IsZero() bool { return b.c == nil }

// Declaration returns a copy of the declaration.
func (b Bundle) Declaration() []byte { return b.Listing().Declaration() }

// Size returns the number of files and the sum of their sizes in bytes.
func (b Bundle) Size() (files int, bytes int64) { return b.Listing().Size() }

// Paths returns the paths of all files in bytewise order.
func (b Bundle) Paths() []string { return b.Listing().Paths() }

// Files returns a copy of all files in bytewise order of their paths.
func (b Bundle) Files() []File {
	if b.c == nil {
		return nil
	}
	files := make([]File, 0, len(b.c.listing.entries()))
	for _, e := range b.c.listing.entries() {
		files = append(files, File{e.Path, []byte(b.c.data[e.Digest])})
	}
	return files
}

// Text returns the content of the file at path, without a copy, and its digest.
// The look-up is by exact bytes.
func (b Bundle) Text(path string) (data string, digest Digest, ok bool) {
	e, ok := b.Listing().Entry(path)
	if !ok {
		return "", Digest{}, false
	}
	return b.c.data[e.Digest], e.Digest, true
}

// ReadFile implements [Content]. It returns a copy.
func (b Bundle) ReadFile(path string) ([]byte, error) {
	data, _, ok := b.Text(path)
	if !ok {
		return nil, notThere(path)
	}
	return []byte(data), nil
}

// whole checks what is not about a single file, the limits themselves too.
func (l Limits) whole(files int, declaration int64) error {
	switch {
	case l.FileBytes < 0 || l.TotalBytes < 0 || l.Files < 0 || l.Depth < 0 || l.PathBytes < 0:
		return fmt.Errorf("%w: a limit is negative", ErrLimit)
	case files > l.Files:
		return fmt.Errorf("%w: %d files, at most %d", ErrLimit, files, l.Files)
	case declaration > l.FileBytes:
		return fmt.Errorf("%w: the declaration has %d bytes, at most %d", ErrLimit, declaration, l.FileBytes)
	}
	return nil
}

func (l Limits) check(p string, size int64) error {
	check := CheckPath
	if l.Kept {
		check = checkKept
	}
	if err := check(p); err != nil {
		return err
	}
	if len(p) > l.PathBytes {
		return fmt.Errorf("%w: path %q has %d bytes, at most %d", ErrLimit, p, len(p), l.PathBytes)
	}
	if n := strings.Count(p, "/") + 1; n > l.Depth {
		return fmt.Errorf("%w: path %q has %d elements, at most %d", ErrLimit, p, n, l.Depth)
	}
	if size > l.FileBytes {
		return fmt.Errorf("%w: file %q has %d bytes, at most %d", ErrLimit, p, size, l.FileBytes)
	}
	return nil
}
