package bundle

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
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
}

// OrDefaults returns l with its zero fields at their defaults.
func (l Limits) OrDefaults() Limits {
	return Limits{
		FileBytes:  cmp.Or(l.FileBytes, DefaultFileBytes),
		TotalBytes: cmp.Or(l.TotalBytes, DefaultTotalBytes),
		Files:      cmp.Or(l.Files, DefaultFiles),
		Depth:      cmp.Or(l.Depth, DefaultDepth),
		PathBytes:  cmp.Or(l.PathBytes, DefaultPathBytes),
	}
}

// Errors of [New] and of those who read a bundle's files: what is wrong with
// the content. Each wraps ErrContent.
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

// A Bundle is a set of files and a declaration that never change. The zero
// Bundle is empty and has the zero Digest. A Bundle is safe for concurrent use.
type Bundle struct{ c *closed }

type closed struct {
	files       []entry // in the bytewise order of paths
	declaration string
	total       int64
	digest      Digest
}

type entry struct {
	path   string
	data   string // a string, so that no caller can change what was hashed
	digest Digest
}

// New returns the bundle of files and declaration. It copies both.
//
// # Errors
//
// ErrPath for a name that is not plain or stands twice, ErrTwins for names that
// differ only by case or by Unicode normal form, ErrLimit for what is too large
// or too many.
func New(files []File, declaration []byte, limits Limits) (Bundle, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	limits = limits.OrDefaults()
	c := &closed{files: make([]entry, 0, len(files)), declaration: string(declaration)}
	if err := limits.whole(len(files), int64(len(declaration))); err != nil {
		return Bundle{}, err
	}
	for i, f := range files {
		if err := limits.check(f.Path, int64(len(f.Data))); err != nil {
			return Bundle{}, err
		}
		if i > 0 && files[i-1].Path == f.Path {
			return Bundle{}, fmt.Errorf("%w: %q stands twice", ErrPath, f.Path)
		}
		if c.total += int64(len(f.Data)); c.total > limits.TotalBytes {
			return Bundle{}, fmt.Errorf("%w: more than %d bytes in all", ErrLimit, limits.TotalBytes)
		}
		c.files = append(c.files, entry{f.Path, string(f.Data), Sum(f.Data)})
	}
	if err := checkTwins(files); err != nil {
		return Bundle{}, err
	}
	c.digest = sha256.Sum256(c.manifest())
	return Bundle{c}, nil
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
	if err := CheckPath(p); err != nil {
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

// Within says which of the limits b exceeds, or nil.
func (b Bundle) Within(limits Limits) error {
	limits = limits.OrDefaults()
	files, total := b.Size()
	if err := limits.whole(files, b.declarationSize()); err != nil {
		return err
	}
	if total > limits.TotalBytes {
		return fmt.Errorf("%w: %d bytes in all, at most %d", ErrLimit, total, limits.TotalBytes)
	}
	for _, f := range b.entries() {
		if err := limits.check(f.path, int64(len(f.data))); err != nil {
			return err
		}
	}
	return nil
}

const domain = "tracon/bundle/1"

func (c *closed) manifest() []byte {
	n := len(domain) + 8 + len(c.declaration)
	for _, f := range c.files {
		n += 8 + len(f.path) + 8 + len(f.digest)
	}
	m := append(make([]byte, 0, n), domain...)
	for _, f := range c.files {
		m = binary.BigEndian.AppendUint64(m, uint64(len(f.path)))
		m = append(m, f.path...)
		m = binary.BigEndian.AppendUint64(m, uint64(len(f.data)))
		m = append(m, f.digest[:]...)
	}
	m = binary.BigEndian.AppendUint64(m, uint64(len(c.declaration)))
	return append(m, c.declaration...)
}

// Manifest returns the bytes whose SHA-256 is the digest; nil for the zero Bundle.
func (b Bundle) Manifest() []byte {
	if b.c == nil {
		return nil
	}
	return b.c.manifest()
}

// Digest returns what a grant pins: the SHA-256 of the manifest.
func (b Bundle) Digest() Digest {
	if b.c == nil {
		return Digest{}
	}
	return b.c.digest
}

// IsZero reports whether b is the zero Bundle.
func (b Bundle) IsZero() bool { return b.c == nil }

// Declaration returns a copy of the declaration.
func (b Bundle) Declaration() []byte {
	if b.c == nil {
		return nil
	}
	return []byte(b.c.declaration)
}

func (b Bundle) declarationSize() int64 {
	if b.c == nil {
		return 0
	}
	return int64(len(b.c.declaration))
}

// Size returns the number of files and the sum of their sizes in bytes.
func (b Bundle) Size() (files int, bytes int64) {
	if b.c == nil {
		return 0, 0
	}
	return len(b.c.files), b.c.total
}

// Paths returns the paths of all files in bytewise order.
func (b Bundle) Paths() []string {
	if b.c == nil {
		return nil
	}
	paths := make([]string, len(b.c.files))
	for i, f := range b.c.files {
		paths[i] = f.path
	}
	return paths
}

// Files returns a copy of all files in bytewise order of their paths.
func (b Bundle) Files() []File {
	if b.c == nil {
		return nil
	}
	files := make([]File, len(b.c.files))
	for i, f := range b.c.files {
		files[i] = File{f.path, []byte(f.data)}
	}
	return files
}

// Text returns the content of the file at path, without a copy, and its digest.
// The look-up is by exact bytes.
func (b Bundle) Text(path string) (data string, digest Digest, ok bool) {
	if b.c == nil {
		return "", Digest{}, false
	}
	i, ok := slices.BinarySearchFunc(b.c.files, path, func(f entry, p string) int { return strings.Compare(f.path, p) })
	if !ok {
		return "", Digest{}, false
	}
	return b.c.files[i].data, b.c.files[i].digest, true
}
