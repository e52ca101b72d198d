package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/internal/sqlstore"
)

// MaxCopy is the most bytes that [OpenToRead] copies: 16 GiB.
const MaxCopy = 16 << 30

// OpenToRead opens the store in the file at path, which must be there, to read it:
// every change fails, and the tables stay as they are. It is for one that is in
// use, which others go on changing, and for a copy that this user may not write.
//
// What stands in a write-ahead log beside the file is part of the store, and stays
// there. Where nobody has the file open, or it or its folder may not be written, both
// are copied into a folder of the user's own below [os.TempDir], up to MaxCopy; Close
// removes the copy. If there is none, the file is read where it lies; where it may not
// be written nothing is made beside it, and Close is an error when somebody else
// changed it meanwhile.
//
// # Errors
//
// Those of [Open]; store.ErrOlder for the store of an older version, which Open
// would bring to this one.
func OpenToRead(ctx context.Context, path string, o Options) (*Store, error) {
	return openAs(ctx, path, o, file.openToRead)
}

// Copied reports whether a copy of the file is read: see [OpenToRead].
func (s *Store) Copied() bool { return s.copied }

// Close closes the store as [sqlstore.Store.Close] does.
func (s *Store) Close() error {
	err := s.Store.Close()
	if s.leave == nil {
		return err
	}
	return errors.Join(err, s.leave())
}

func (f file) openToRead(ctx context.Context) (*Store, error) {
	f.reads = true
	in, err := os.Stat(f.path)
	if err != nil {
		return nil, f.explain(err)
	}
	if !in.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is not a regular file; name another one", store.ErrUnusable)
	}
	was, err := f.pieces()
	if err != nil {
		return nil, f.explain(err)
	}
	how, leave := []string{"mode", "rw"}, func() error { return nil }
	switch locked := errors.Join(writable(filepath.Dir(f.path)), writable(f.path)) != nil; {
	case was.whole() && locked:
		how = []string{"mode", "ro", "immutable", "1"}
		leave = func() error { return f.still(was) }
	case was.whole(): // there is nothing that could be written into the file
	case locked || !f.inUse(was):
		if f.copy, err = f.duplicate(ctx, was); err != nil {
			return nil, err
		}
		folder := filepath.Dir(f.copy)
		leave = func() error { return os.RemoveAll(folder) }
	default: // who closes the file last writes its log into it, and that must not be who reads
		how = []string{"mode", "ro"}
	}
	s, err := f.read(ctx, append(how, asReader...))
	if err != nil {
		return nil, errors.Join(err, leave())
	}
	return &Store{Store: s, leave: leave, copied: f.copy != ""}, nil
}

// read opens the file for reading with those parameters.
func (f file) read(ctx context.Context, how []string) (*sqlstore.Store, error) {
	db, err := f.connect(1, how...)
	if err != nil {
		return nil, err
	}
	st, err := f.look(ctx, db)
	switch {
	case err != nil:
		return nil, errors.Join(f.explain(err), db.Close())
	case st == fresh:
		return nil, errors.Join(fmt.Errorf("%w: it is empty: nothing was ever kept in it; name another one", store.ErrUnusable), db.Close())
	case st == old:
		return nil, errors.Join(fmt.Errorf("%w: reading leaves it as it is; `tracon doctor` brings it to this version: where it is evidence, do that with a copy that may be written",
			store.ErrOlder), db.Close())
	}
	readers, err := f.connect(f.o.Readers, how...)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return sqlstore.Open(ctx, sqlstore.Config{Dialect: f.dialect(), Writer: db, Readers: readers})
}

// beside are the ends of the names of the files that a store consists of: its own,
// and those with what was written and does not stand there yet, or not any more.
var beside = [...]string{"", "-wal", "-journal"}

// pieces are those files as they are at a moment. The zero piece is not there, or empty.
type pieces [len(beside)]struct {
	size    int64
	changed time.Time
}

// whole reports whether everything stands in the file itself.
func (p pieces) whole() bool { return p[1].size == 0 && p[2].size == 0 }

// inUse reports whether somebody may have the file open: whoever has, has the index of
// the write-ahead log beside it.
func (f file) inUse(p pieces) bool {
	_, err := os.Lstat(f.path + "-shm")
	return err == nil && p[2].size == 0
}

func (f file) pieces() (p pieces, err error) {
	for i, end := range beside {
		in, err := os.Stat(f.path + end)
		switch {
		case errors.Is(err, fs.ErrNotExist) && i > 0:
			continue
		case err != nil:
			return p, err
		case !in.Mode().IsRegular():
			return p, fmt.Errorf("%w: %s is not a regular file", store.ErrUnusable, f.path+end)
		case in.Size() > 0:
			p[i].size, p[i].changed = in.Size(), in.ModTime()
		}
	}
	return p, nil
}

func (f file) still(was pieces) error {
	now, err := f.pieces()
	if err != nil {
		return f.explain(err)
	}
	if now != was {
		return fmt.Errorf("store: %s was changed while it was read, so what was read may be of no one moment; try again, or as a user who may write to it", f.path)
	}
	return nil
}

// copyTries is how often a file that is being written is copied anew.
const copyTries = 5

// duplicate copies the pieces into a folder of their own and returns the path there.
func (f file) duplicate(ctx context.Context, was pieces) (string, error) {
	for range copyTries {
		if was[0].size+was[1].size+was[2].size > MaxCopy {
			return "", fmt.Errorf("%w: it may not be written, and is above %d bytes, the most that is copied to be read; copy it to where this user may write", store.ErrUnusable, int64(MaxCopy))
		}
		folder, err := os.MkdirTemp("", "tracon-read-")
		if err != nil {
			return "", fmt.Errorf("%w: it may not be written, and there is no room for a copy: %w", store.ErrUnusable, err)
		}
		path := filepath.Join(folder, "copy.db")
		err = f.copyTo(ctx, path, was)
		now, lookErr := f.pieces()
		if err == nil && lookErr == nil && now == was {
			return path, nil
		}
		if err := errors.Join(err, lookErr, os.RemoveAll(folder)); err != nil && now == was || ctx.Err() != nil {
			return "", fmt.Errorf("%w: it may not be written, and copying it to %s failed: %w", store.ErrUnusable, folder, err)
		}
		was = now
	}
	return "", fmt.Errorf("%w: it is written to all the time, so that it cannot be copied; read it as a user who may write to it", store.ErrUnusable)
}

func (f file) copyTo(ctx context.Context, path string, p pieces) error {
	for i, end := range beside {
		if p[i].size == 0 && i > 0 {
			continue
		}
		if err := copyFile(ctx, f.path+end, path+end, p[i].size); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies that many bytes, into a new file.
func copyFile(ctx context.Context, from, to string, size int64) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for size > 0 && ctx.Err() == nil {
		n, err := io.CopyN(out, in, min(size, 64<<20))
		if err != nil {
			return err
		}
		size -= n
	}
	return context.Cause(ctx)
}
