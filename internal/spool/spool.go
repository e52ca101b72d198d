// Package spool puts the files of a skill aside on disk while it is read, so that a
// skill that is imported is never whole in memory, and the store's lock is not held
// while its source is read: that may be slow, or may never end.
package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/tracon-go/tracon/bundle"
)

// A Spool takes the files of one skill, one by one, and gives them back as a
// [bundle.Content]. Make one with [New] and close it when the content is no longer
// needed. It is not safe for concurrent use; its content is.
type Spool struct {
	folder string
	list   *bundle.Lister
	file   *os.File // nil until the first byte comes
	named  bool     // the file has a name still
	at     map[bundle.Digest]int64
	size   int64
	err    error // of the medium, the first one
}

// New returns an empty Spool for a skill within limits. Its file is made in folder
// when there is a byte to keep: nobody else may read it, and it has no name, so that
// nothing is left when the process dies. (On Windows it has one until Close.)
func New(folder string, limits bundle.Limits) *Spool {
	return &Spool{folder: folder, list: bundle.NewLister(limits), at: map[bundle.Digest]int64{}}
}

// Add puts the file path aside, and equal files once. Data stays the caller's.
//
// # Errors
//
// Those of [bundle.Lister.Add] for what cannot be in a bundle; another one where
// there is no room.
func (s *Spool) Add(path string, data []byte) error {
	if s.err != nil {
		return s.err
	}
	e, err := s.list.Add(path, data)
	if err != nil {
		return err
	}
	if _, ok := s.at[e.Digest]; ok {
		return nil
	}
	if err := s.write(data); err != nil {
		s.err = fmt.Errorf("the file for what is imported, in %s: %w; see that it can be written and has room", s.folder, err)
		return s.err
	}
	s.at[e.Digest] = s.size
	s.size += e.Size
	return nil
}

func (s *Spool) write(data []byte) (err error) {
	if len(data) == 0 {
		return nil
	}
	if s.file == nil {
		if s.file, err = os.CreateTemp(s.folder, "import-*"); err != nil {
			return err
		}
		s.named = os.Remove(s.file.Name()) != nil
	}
	_, err = s.file.WriteAt(data, s.size)
	return err
}

// Content returns the files that were added, with the declaration; they can be read
// until the Spool is closed. It is the last call before that. Its errors are those
// of [bundle.Lister.Listing].
func (s *Spool) Content(declaration []byte) (bundle.Content, error) {
	if s.err != nil {
		return nil, s.err
	}
	l, err := s.list.Listing(declaration)
	if err != nil {
		return nil, err
	}
	return content{l, s.file, s.at}, nil
}

// Close forgets the files. A second Close does nothing.
func (s *Spool) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	if s.named {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	return err
}

type content struct {
	listing bundle.Listing
	file    *os.File // nil where no file has a byte
	at      map[bundle.Digest]int64
}

var _ bundle.Content = content{}

// Listing implements [bundle.Content].
func (c content) Listing() bundle.Listing { return c.listing }

// ReadFile implements [bundle.Content].
func (c content) ReadFile(path string) ([]byte, error) {
	e, ok := c.listing.Entry(path)
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	}
	data := make([]byte, e.Size)
	if e.Size == 0 {
		return data, nil
	}
	if _, err := io.ReadFull(io.NewSectionReader(c.file, c.at[e.Digest], e.Size), data); err != nil {
		return nil, fmt.Errorf("what was put aside of %s: %w", path, err)
	}
	return data, nil
}
