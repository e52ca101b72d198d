package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/internal/sqlstore"
)

// code returns SQLite's primary result code of err, and 0 where it has none.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return sqlite3.SQLITE_OK
}

func fault(err error) sqlstore.Fault {
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return sqlstore.Busy
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG:
		return sqlstore.Statement
	}
	return sqlstore.Fatal
}

// explain names the thing and the remedy.
func (f file) explain(err error) error {
	if errors.Is(err, store.ErrUnusable) {
		return err
	}
	switch code(err) {
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %s is not a database; move it aside to start a new one, or restore a backup: %w", store.ErrCorrupt, f.path, err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%w: %s; keep it for the inquiry, and restore a backup: %w", store.ErrCorrupt, f.path, err)
	case sqlite3.SQLITE_ERROR: // the statements are fixed, so it is the tables
		return fmt.Errorf("%w: the tables of %s are not those of this version; keep it for the inquiry, and restore a backup: %w", store.ErrCorrupt, f.path, err)
	case sqlite3.SQLITE_FULL:
		return f.full(err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN:
		return f.unwritable(err)
	case sqlite3.SQLITE_IOERR:
		return fmt.Errorf("%w: the disk of %s failed; look at the system's log, then start again: %w", store.ErrUnusable, filepath.Dir(f.path), err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("another process has been writing to %s for %s; try again: %w", f.path, f.o.BusyTimeout, err)
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return f.full(err)
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return f.unwritable(err)
	}
	return err
}

func (f file) full(err error) error {
	return fmt.Errorf("%w: the disk of %s is full; make room there, then start again: %w", store.ErrUnusable, filepath.Dir(f.path), err)
}

func (f file) unwritable(err error) error {
	if f.reads {
		return fmt.Errorf("%w: it cannot be read; this user needs the right to read the folder %s and %s* in it: %w",
			store.ErrUnusable, filepath.Dir(f.path), filepath.Base(f.path), err)
	}
	return fmt.Errorf("%w: it cannot be written; this user needs the right to write to the folder %s and to %s* in it: %w",
		store.ErrUnusable, filepath.Dir(f.path), filepath.Base(f.path), err)
}
