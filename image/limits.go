package image

import (
	"cmp"
	"errors"
)

// Defaults of [Limits]. A Debian with Python has 11,000 entries and 260 MB.
const (
	DefaultEntries   = 200_000
	DefaultBytes     = 4 << 30
	DefaultPathBytes = 1024
	DefaultDepth     = 64
	DefaultTextBytes = 64 << 20
)

// Limits bound what is imported. A zero field means its default; a negative one
// admits nothing.
type Limits struct {
	Entries   int   // files, folders and links, and what is left out; zero: 200,000
	Bytes     int64 // of all files, holes too, and of a file with several names for each; zero: 4 GiB
	PathBytes int   // of one path, and of the text of one link; zero: 1,024
	Depth     int   // elements of a path; zero: 64
	TextBytes int   // of all paths and texts of links together, which are kept in memory; zero: 64 MiB
}

func (l Limits) orDefaults() Limits {
	l.Entries = cmp.Or(l.Entries, DefaultEntries)
	l.Bytes = cmp.Or(l.Bytes, DefaultBytes)
	l.PathBytes = cmp.Or(l.PathBytes, DefaultPathBytes)
	l.Depth = cmp.Or(l.Depth, DefaultDepth)
	l.TextBytes = cmp.Or(l.TextBytes, DefaultTextBytes)
	return l
}

// Errors of this package.
var (
	// ErrContent is wrapped by the error for what cannot be imported: the archive or
	// the folder must be another one.
	ErrContent = errors.New("image: it cannot be imported")

	// ErrNotFound: there is no such image here.
	ErrNotFound = errors.New("image: not found")

	// ErrInUse: a run has the image, or an import has just made it.
	ErrInUse = errors.New("image: in use")

	// ErrDamaged: what lies there is not what was imported. End what has it, and
	// import the same again: that puts what was imported in its place.
	ErrDamaged = errors.New("image: it is not what was imported")
)
