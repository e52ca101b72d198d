package bundle

import (
	"errors"
	"fmt"
	"io/fs"
)

// A Content is the files of a bundle to be read one at a time, wherever they are:
// a [Bundle] in memory, files that were read from elsewhere and put aside, what a
// store keeps. Whoever takes a Content reads its files with [Read]. It is safe for
// concurrent use.
type Content interface {
	// Listing returns what there is to know of the files; the same at each call.
	Listing() Listing

	// ReadFile returns the bytes of the file at path, which are the caller's. One
	// that the Listing does not have is an error that wraps fs.ErrNotExist.
	ReadFile(path string) ([]byte, error)
}

// ErrAltered is wrapped by the error of [Read] for bytes that are not those of the
// listing. It is no ErrContent: nothing is wrong with the skill.
var ErrAltered = errors.New("bundle: the bytes are not those that were listed")

// Read returns the bytes of the file at path in c, after it has compared them with
// the entry in the listing of c.
//
// # Errors
//
// One that wraps ErrAltered, fs.ErrNotExist, or what c says.
func Read(c Content, path string) ([]byte, error) {
	e, ok := c.Listing().Entry(path)
	if !ok {
		return nil, notThere(path)
	}
	data, err := c.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != e.Size || Sum(data) != e.Digest {
		return nil, fmt.Errorf("%w: %q", ErrAltered, path)
	}
	return data, nil
}

// Load returns c in memory, each file read once.
func Load(c Content) (Bundle, error) {
	if b, ok := c.(Bundle); ok {
		return b, nil
	}
	l := c.Listing()
	data := make(map[Digest]string, len(l.entries()))
	for _, e := range l.entries() {
		if _, ok := data[e.Digest]; ok {
			continue
		}
		text, err := Read(c, e.Path)
		if err != nil {
			return Bundle{}, err
		}
		data[e.Digest] = string(text)
	}
	if l.IsZero() {
		return Bundle{}, nil
	}
	return Bundle{&closed{l, data}}, nil
}

func notThere(path string) error {
	return &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
}
