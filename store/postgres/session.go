package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/internal/sqlstore"
)

const dialectOfMigrations = goose.DialectPostgres

// lockKey is the first half of the advisory locks of this program: "Trac". The
// second is the schema's number. Who has the tables open shares the lock; who
// changes them has it alone.
const (
	lockKey     = 0x54726163
	schema      = `(SELECT oid::int FROM pg_namespace WHERE nspname = current_schema())`
	lockShared  = `SELECT pg_advisory_lock_shared($1, ` + schema + `)`
	unlockAlone = `SELECT pg_advisory_unlock($1, ` + schema + `)`
	tryAlone    = `SELECT pg_try_advisory_lock($1, ` + schema + `)`
)

// server says why a server cannot hold a store, or nil.
func server(ctx context.Context, c *pgx.Conn) error {
	for _, s := range []struct{ name, bad, remedy string }{
		{"fsync", "off", "what is acknowledged could be lost; set fsync = on in the server's configuration"},
		{"full_page_writes", "off", "a crash could tear what is kept; set full_page_writes = on in the server's configuration"},
		{"in_hot_standby", "on", "it is a standby, which takes no changes; name the primary, or add target_session_attrs=read-write"},
		{"transaction_read_only", "on", "the server or this user may only read; name another one"},
	} {
		var value string
		if err := c.QueryRow(ctx, `SELECT current_setting($1)`, s.name).Scan(&value); err != nil {
			return err
		}
		if value == s.bad {
			return fmt.Errorf("%w: %s is %s: %s", store.ErrUnusable, s.name, value, s.remedy)
		}
	}
	var encoding, schema string
	err := c.QueryRow(ctx, `SELECT pg_encoding_to_char(encoding), COALESCE(current_schema(), '') FROM pg_database WHERE datname = current_database()`).
		Scan(&encoding, &schema)
	if err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("%w: the database holds %s; make one with ENCODING 'UTF8'", store.ErrUnusable, encoding)
	}
	if schema == "" {
		return fmt.Errorf("%w: no schema of its search_path is there; make one, or name another", store.ErrUnusable)
	}
	return nil
}

// beginWriter makes of a new connection the one that changes things: it flushes
// what it commits, and keeps others from changing the tables.
func (d database) beginWriter(ctx context.Context, c *pgx.Conn) error {
	if err := server(ctx, c); err != nil {
		return err
	}
	// Local, remote_write and remote_apply wait for the flush here too.
	_, err := c.Exec(ctx, `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`)
	if err != nil {
		return err
	}
	if _, err := c.Exec(ctx, lockShared, lockKey); err != nil {
		return err
	}
	// While there was no connection, a newer program may have changed the tables.
	var has int64
	if err := c.QueryRow(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM `+sqlstore.VersionTable).Scan(&has); err != nil {
		return err
	}
	if has != d.version {
		return fmt.Errorf("%w: its tables were brought to version %d, and this program is of %d; start the newer program", store.ErrNewer, has, d.version)
	}
	return nil
}

// migrateTry is how long is waited between two tries to migrate.
const migrateTry = 20 * time.Millisecond

// prepare sees to it that the tables are those of this version, which it returns.
// Of several processes that start at once one makes them; the others find them
// made when they look again.
func (d database) prepare(ctx context.Context) (version int64, err error) {
	db := d.connect(2, server) // one holds the lock, and one changes the tables
	defer func() { err = errors.Join(err, db.Close()) }()
	for began := time.Now(); ; {
		has, want, err := d.look(ctx, db)
		if err != nil || has == want {
			return want, d.explain(err)
		}
		done, err := d.migrate(ctx, db)
		switch {
		case err != nil:
			return 0, d.explain(err)
		case done:
			continue // look says what it is now
		case time.Since(began) > d.o.BusyTimeout:
			return 0, fmt.Errorf("%w: its tables must be brought to this version, and another process has them open; stop that one first", store.ErrUnusable)
		}
		select {
		case <-time.After(migrateTry):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// look returns the version of the tables, 0 where there are none, and that of
// this program.
func (d database) look(ctx context.Context, db *sql.DB) (has, want int64, err error) {
	var there bool
	err = db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = $1
		AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()))`, sqlstore.VersionTable).Scan(&there)
	if err != nil || !there {
		return 0, -1, err
	}
	return sqlstore.Version(ctx, db, d.dialect())
}

// migrate brings the tables to this version, unless somebody has them open.
func (d database) migrate(ctx context.Context, db *sql.DB) (done bool, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		// The lock is the connection's. Where it cannot be given back, that goes.
		if _, unlock := conn.ExecContext(context.WithoutCancel(ctx), unlockAlone, lockKey); unlock == nil {
			_ = conn.Close()
			return
		}
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		_ = conn.Close()
	}()
	if err := conn.QueryRowContext(ctx, tryAlone, lockKey).Scan(&done); err != nil || !done {
		return false, err
	}
	return true, sqlstore.Migrate(ctx, db, d.dialect())
}
