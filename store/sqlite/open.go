package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/internal/sqlstore"
)

// applicationID marks a database as ours in its file's head: "Trac".
const applicationID = 0x54726163

// create makes an empty file where there is none. It never opens one that is
// there: when a process closes a file, the locks that the same process holds on
// it elsewhere are gone.
func (f file) create() error {
	folder := filepath.Dir(f.path)
	switch in, err := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: the folder %s is not there; make it, or name another one", store.ErrUnusable, folder)
	case err != nil:
		return f.explain(err)
	case !in.IsDir():
		return fmt.Errorf("%w: %s is not a folder; name another one", store.ErrUnusable, folder)
	}
	made, err := os.OpenFile(f.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		return f.explain(made.Close())
	}
	if !errors.Is(err, fs.ErrExist) {
		return f.explain(err)
	}
	in, err := os.Stat(f.path)
	if err != nil {
		return f.explain(err)
	}
	if !in.Mode().IsRegular() {
		return fmt.Errorf("%w: it is not a regular file; name another one", store.ErrUnusable)
	}
	// SQLite opens for reading what it may not write, and leaves files beside it
	// that its owner then cannot use. So nothing is opened that may not be written.
	if err := errors.Join(writable(folder), writable(f.path)); err != nil {
		return f.explain(err)
	}
	return nil
}

// A state says what a file is.
type state int

const (
	fresh   state = iota // it has no tables yet
	old                  // it is ours, of an older version
	current              // it is ours, of this version
)

// examine says what the file is. It writes nothing.
func (f file) examine(ctx context.Context) (state, error) {
	db, err := f.connect(1)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	st, err := f.look(ctx, db)
	if err == nil && st == current {
		// This touches no row, and yet fails where the file may not be written.
		_, err = db.ExecContext(ctx, `UPDATE `+sqlstore.VersionTable+` SET version_id = version_id WHERE FALSE`)
	}
	if err != nil {
		return 0, f.explain(err)
	}
	return st, nil
}

func (f file) look(ctx context.Context, db *sql.DB) (state, error) {
	var id, tables, versioned int64
	err := db.QueryRowContext(ctx, `SELECT COUNT(*), COUNT(*) FILTER (WHERE type = 'table' AND name = '`+sqlstore.VersionTable+`')
		FROM sqlite_schema`).Scan(&tables, &versioned)
	if err != nil {
		return 0, err
	}
	if err := db.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&id); err != nil {
		return 0, err
	}
	switch {
	case tables == 0 && (id == 0 || id == applicationID):
		return fresh, nil
	case id != applicationID:
		return 0, fmt.Errorf("%w: it is a database of another program; move it aside, or name another file", store.ErrCorrupt)
	case versioned == 0:
		return 0, fmt.Errorf("%w: its tables are incomplete; move it aside and restore a backup", store.ErrCorrupt)
	}
	has, want, err := sqlstore.Version(ctx, db, f.dialect())
	if err != nil {
		return 0, unread(ctx, err)
	}
	if has < want {
		return old, nil
	}
	return current, nil
}

// migrateTry is how long one attempt to migrate waits for the lock. It is short,
// because what waits for the exclusive lock keeps others from opening the file.
const migrateTry = 50 * time.Millisecond

// prepare sees to it that the file has the tables of this version. Of several
// processes that start at once one makes them; the others find them made when
// they look again.
func (f file) prepare(ctx context.Context) error {
	for began := time.Now(); ; {
		st, err := f.examine(ctx)
		if err != nil || st == current {
			return err
		}
		err = f.migrate(ctx)
		if err == nil || code(err) != sqlite3.SQLITE_BUSY {
			return err
		}
		if time.Since(began) > f.o.BusyTimeout {
			return fmt.Errorf("%w: it must be brought to this version, and another process has it open; stop that one first: %w", store.ErrUnusable, err)
		}
		select {
		case <-time.After(migrateTry / 5):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// migrate brings the tables to this version. It holds the file's exclusive lock
// from before its first look to its end, so that nobody else does the same, or
// has the file open meanwhile.
func (f file) migrate(ctx context.Context) error {
	db, err := file{path: f.path, o: Options{BusyTimeout: migrateTry}}.connect(1, "_pragma", "locking_mode(EXCLUSIVE)", "_txlock", "exclusive")
	if err != nil {
		return err
	}
	defer db.Close() // lets go of the lock
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		err = tx.Commit() // the lock stays with the connection
	}
	if err != nil {
		return f.explain(err)
	}
	if _, err := f.look(ctx, db); err != nil {
		return f.explain(err)
	}
	if _, err := db.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id = %d`, applicationID)); err != nil {
		return f.explain(err)
	}
	var mode string
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return f.explain(err)
	}
	if mode != "wal" {
		return fmt.Errorf("%w: its file system cannot share memory between processes (the journal mode stays %q); put it on a local disk", store.ErrUnusable, mode)
	}
	if err := sqlstore.Migrate(ctx, db, f.dialect()); err != nil {
		return f.explain(unread(ctx, err))
	}
	return nil
}

// unread makes damage of an error that is not the engine's: then the rows of the
// version are not what was written.
func unread(ctx context.Context, err error) error {
	if ctx.Err() != nil || code(err) != sqlite3.SQLITE_OK || errors.Is(err, store.ErrUnusable) {
		return err
	}
	return fmt.Errorf("%w: its version cannot be read; keep it for the inquiry, and restore a backup: %w", store.ErrCorrupt, err)
}
