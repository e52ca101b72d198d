package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/internal/sqlstore"
)

// States of the server's errors that mean more than their class.
const (
	lockNotAvailable = "55P03"
	queryCanceled    = "57014"
	tooManyConns     = "53300"
	diskFull         = "53100"
	noPrivilege      = "42501"
	noDatabase       = "3D000"
	readOnly         = "25006"
)

// state returns the server's code of err, and "" where it is not the server's.
func state(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

func class(code string) string {
	if len(code) < 2 {
		return ""
	}
	return code[:2]
}

func fault(err error) sqlstore.Fault {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		if lost(err) {
			return sqlstore.Lost
		}
		return sqlstore.Fatal
	}
	switch class(e.Code) {
	case "08", "57", "28": // of the connection, the operator's word, who may connect
		if e.Code == queryCanceled {
			return sqlstore.Busy
		}
		return sqlstore.Lost
	case "40": // serialization, deadlock
		return sqlstore.Busy
	case "22", "23", "54": // a value, a constraint, a limit
		return sqlstore.Statement
	}
	switch e.Code {
	case lockNotAvailable:
		return sqlstore.Busy
	case tooManyConns, "25P03", "25P04": // it ended the session, because it idled or took too long
		return sqlstore.Lost
	}
	return sqlstore.Fatal
}

// lost reports whether err, which is not the server's, tells of the connection.
func lost(err error) bool {
	for _, one := range []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded, pgconn.ErrConnClosed} {
		if errors.Is(err, one) {
			return true
		}
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	return pgconn.SafeToRetry(err) // it was closed before anything was sent
}

// explain names the thing and the remedy, and never the password.
func (d database) explain(err error) error {
	if err == nil || errors.Is(err, store.ErrUnusable) {
		return err
	}
	err = d.scrub(err)
	name := name(d.c)
	switch code := state(err); {
	case code == lockNotAvailable:
		return fmt.Errorf("another host has been writing to %s for %s; try again: %w", name, d.o.BusyTimeout, err)
	case code == diskFull:
		return fmt.Errorf("%w: the disk of %s is full; make room there, then start again: %w", store.ErrUnusable, name, err)
	case code == noPrivilege:
		return fmt.Errorf("%w: this user needs the right to read and write the tables of %s, and to make them: %w", store.ErrUnusable, name, err)
	case code == noDatabase:
		return fmt.Errorf("%w: there is no such database; make it with CREATE DATABASE, or name another: %w", store.ErrUnusable, err)
	case code == readOnly:
		return fmt.Errorf("%w: %s takes no changes now; name the primary: %w", store.ErrUnusable, name, err)
	case code == tooManyConns:
		return fmt.Errorf("%s takes no more connections; raise max_connections there, or stop another host: %w", name, err)
	case class(code) == "28":
		return fmt.Errorf("%w: %s refuses this user; look at the user and the password in the address: %w", store.ErrUnusable, name, err)
	case class(code) == "58", code == "XX001", code == "XX002":
		return fmt.Errorf("%w: %s; look at the server's log, keep it for the inquiry, and restore a backup: %w", store.ErrCorrupt, name, err)
	case class(code) == "42": // the statements are fixed, so it is the tables
		return fmt.Errorf("%w: the tables of %s are not those of this version; keep it for the inquiry, and restore a backup: %w", store.ErrCorrupt, name, err)
	case fault(err) == sqlstore.Lost:
		return fmt.Errorf("%s cannot be reached, or ended the connection; look whether it runs, and at its log: %w", name, err)
	}
	return err
}

// scrubbed is an error whose text held the password.
type scrubbed struct {
	error
	text string
}

func (s scrubbed) Error() string { return s.text }
func (s scrubbed) Unwrap() error { return s.error }

func (d database) scrub(err error) error {
	if p := d.c.Password; p != "" && strings.Contains(err.Error(), p) {
		return scrubbed{err, strings.ReplaceAll(err.Error(), p, "(password)")}
	}
	return err
}
