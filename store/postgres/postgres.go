// Package postgres keeps everything in a PostgreSQL database: the store of
// several hosts. Version 15 or newer.
//
// A change is durable when its method returns: the server's own flush is waited
// for, and a server that was told not to flush is refused. Those who wait in one
// process share a commit; between processes one lock on the head of the log, held
// for a commit, puts them in order.
//
// When the connection is lost at a commit, the database is asked again whether it
// was made, and nobody is told anything before it has said. Where it does not say
// in time, the store takes no more changes until it is opened again; see
// [store.ErrPoisoned]. A connection that is lost at any other time costs the
// changes that were under way, and the next ones get another.
//
// The connections must keep their state: a pooler in front of the server must
// give each its own session.
package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/internal/sqlstore"
)

// Defaults of [Options].
const (
	DefaultBusyTimeout = 10 * time.Second
	DefaultTimeout     = time.Minute
)

// Options are what may be set of a store. The zero Options are the defaults.
type Options struct {
	// Readers is how many reads run at once, each on a connection; others wait. One
	// connection more writes. Zero means one for each processor, and at least 4.
	Readers int

	// BusyTimeout is how long a change waits while other hosts write, to the
	// millisecond; then it fails and may be tried again. It is also, but for at least
	// 10 s, how long this host may pause in the middle of a change before the server
	// takes the change back, so that it keeps nobody waiting. Zero means 10 s.
	BusyTimeout time.Duration

	// Timeout is how long a commit of several changes may take in all, and how long
	// the server is asked for the outcome of one whose answer was lost. Zero means a
	// minute.
	Timeout time.Duration
}

// A Store is a [store.Store] in a database. Make one with [Open]; it is safe for
// concurrent use.
type Store struct {
	*sqlstore.Store
	d    database
	host *atomic.Pointer[Host] // this process, where it is one of the hosts
}

var _ store.Store = (*Store)(nil)

// Open opens the store in the database at address, and makes its tables where
// there are none. The address is as libpq takes it, postgres://… or words
// "host=…"; what it leaves out comes from the variables and files that libpq
// reads. Over a network it must say how the connection is protected: sslmode is
// verify-full, verify-ca, require or disable, and nothing in between.
//
// Tables of an older version are brought to this one, when no other process has
// them open.
//
// # Errors
//
// store.ErrNewer for tables of a newer version of this program; store.ErrUnusable
// for what cannot be used otherwise. The text names the remedy, and never the
// password.
func Open(ctx context.Context, address string, o Options) (*Store, error) {
	if o.Readers < 0 || o.BusyTimeout < 0 || o.Timeout < 0 {
		return nil, fmt.Errorf("store: %d readers and time-outs of %s and %s; zero means the default", o.Readers, o.BusyTimeout, o.Timeout)
	}
	o.Readers = cmp.Or(o.Readers, max(4, runtime.GOMAXPROCS(0)))
	o.BusyTimeout = max(cmp.Or(o.BusyTimeout, DefaultBusyTimeout), time.Millisecond)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	c, err := parse(address)
	if err != nil {
		return nil, err
	}
	s, err := database{c: c, o: o}.open(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("store: opening %s: %w", name(c), err)
	}
	return s, nil
}

// A database is where a store is, and how it is reached.
type database struct {
	c       *pgx.ConnConfig
	o       Options
	version int64 // of the tables, once they are prepared
}

func (d database) dialect() sqlstore.Dialect {
	return sqlstore.Dialect{Name: "postgres", Goose: dialectOfMigrations, LockHead: " FOR UPDATE", Arrays: true, Fault: fault, Explain: d.explain,
		Snapshot: &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}}
}

// connect returns connections, at most n, each of which begins with begin, if
// there is one. What parameters say in turn holds for each session.
func (d database) connect(n int, begin func(context.Context, *pgx.Conn) error, parameters ...string) *sql.DB {
	c := d.c.Copy()
	c.RuntimeParams["application_name"] = "tracon"
	c.RuntimeParams["lock_timeout"] = milliseconds(d.o.BusyTimeout)
	for i := 0; i < len(parameters); i += 2 {
		c.RuntimeParams[parameters[i]] = parameters[i+1]
	}
	options := []stdlib.OptionOpenDB{stdlib.OptionShouldPing(d.silent)}
	if begin != nil {
		options = append(options, stdlib.OptionAfterConnect(begin))
	}
	db := stdlib.OpenDB(*c, options...)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db
}

// silent reports whether a connection that nobody used for a second does not answer:
// it died, and perhaps nobody said so. Asked once more, the driver finds it closed.
func (d database) silent(ctx context.Context, p stdlib.ShouldPingParams) bool {
	if p.IdleDuration < time.Second {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, d.o.BusyTimeout)
	defer cancel()
	return p.Conn.Ping(ctx) != nil
}

// idle is how long the server bears a transaction in which nothing is said.
func (d database) idle() time.Duration { return max(d.o.BusyTimeout, DefaultBusyTimeout) }

func milliseconds(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }

func (d database) open(ctx context.Context) (_ *Store, err error) {
	if d.version, err = d.prepare(ctx); err != nil {
		return nil, err
	}
	writer := d.connect(1, d.beginWriter,
		// A host that stops in the middle of a change lets go of the head of the log.
		"idle_in_transaction_session_timeout", milliseconds(d.idle()))
	readers := d.connect(d.o.Readers, nil, "default_transaction_read_only", "on")
	host := new(atomic.Pointer[Host])
	s, err := sqlstore.Open(ctx, sqlstore.Config{Dialect: d.dialect(), Writer: writer, Readers: readers, Timeout: d.o.Timeout, Answer: d.o.BusyTimeout,
		Fence: func(ctx context.Context, tx *sql.Tx) error {
			if h := host.Load(); h != nil {
				return h.check(ctx, tx)
			}
			return nil
		}})
	if err != nil {
		return nil, err
	}
	return &Store{s, d, host}, nil
}
