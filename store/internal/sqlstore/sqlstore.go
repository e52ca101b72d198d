// Package sqlstore is a store over SQL: what the rooms of the SQL stores share.
// The SQL is written by hand, one text for all engines; where they differ, the
// difference is a field of [Dialect].
//
// Changes go through one goroutine that puts those waiting into one transaction
// (see writer.go); reads go straight to a pool of connections.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/tracon-go/tracon/store"
)

// A Dialect is in what one engine differs from another. Every field is required
// but LockHead, Arrays, Snapshot and Flaws.
type Dialect struct {
	Name     string        // of the engine, and of its folder of migrations
	Goose    goose.Dialect // of the migrations
	LockHead string        // behind the reading of the log's head in a change: what locks it, where beginning does not

	// Arrays says that a parameter can be an array, as of PostgreSQL.
	Arrays bool

	// Snapshot begins a transaction that reads and sees the rows as they were at its
	// first read. Nil: any transaction does.
	Snapshot *sql.TxOptions

	// Flaws are queries of one column, of which every row but "ok" tells of something
	// amiss in how the rows lie.
	Flaws []string

	// Fault says what an error of the engine means for the changes to come.
	Fault func(error) Fault

	// Explain names the thing and the remedy in an error of the engine. What it
	// returns wraps err; of another error it returns err.
	Explain func(error) error
}

// A Fault says how far an error of the engine reaches.
type Fault int

const (
	Fatal     Fault = iota // nothing can be relied on from now on; whatever is not known is this
	Busy                   // the transaction failed; the next one may not
	Statement              // the statement alone failed: the transaction goes on behind its savepoint
	Lost                   // the connection is gone, and with it a transaction that was not committed
)

// A Config is what a store is made of. Every field is required but Check, Fence,
// Timeout and Answer.
type Config struct {
	Dialect Dialect
	Writer  *sql.DB // of one connection at most; closed with the store
	Readers *sql.DB // closed with the store

	// Check is called before each commit; its error fails the commit and is fatal.
	Check func() error

	// Fence is called in the transaction of changes, before Check: it says whether this
	// process may still make any. Its error fails the changes and is fatal, unless the
	// dialect knows it otherwise. Nil: it may.
	Fence func(ctx context.Context, tx *sql.Tx) error

	// Timeout is how long a transaction may take, and how long is inquired after a
	// commit that was not answered. What takes longer loses its connection. Zero
	// means no limit, for an engine that is in this process.
	Timeout time.Duration

	// Answer is how long the connection of changes may take to answer before the first
	// change after a while without any: one that died meanwhile and says nothing costs no
	// more than that. Zero means that it is not asked.
	Answer time.Duration
}

// A Store is a [store.Store] over SQL. It is safe for concurrent use.
type Store struct {
	dialect Dialect
	check   func() error
	readers *sql.DB
	read    prepared
	w       writer

	queue    chan *job
	closing  chan struct{}
	once     sync.Once
	done     chan struct{} // closed when the writer has ended
	poison   atomic.Pointer[poison]
	life     sync.RWMutex // held for reading by every read
	closed   bool
	closeErr error
}

var _ store.Store = (*Store)(nil)

type poison struct{ err error }

// Open prepares every statement, which checks it against the tables that are
// there, and starts the writer. When it fails, the databases of c are closed.
func Open(ctx context.Context, c Config) (*Store, error) {
	s := &Store{
		dialect: c.Dialect, check: c.Check, readers: c.Readers,
		queue: make(chan *job), closing: make(chan struct{}), done: make(chan struct{}),
	}
	s.w = writer{dialect: c.Dialect, db: c.Writer, timeout: c.Timeout, answer: c.Answer, fence: c.Fence}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(s.explain(ctx, err), s.w.close(), c.Readers.Close())
	}
	go s.write()
	return s, nil
}

func (s *Store) prepare(ctx context.Context) (err error) {
	if err := s.w.connect(ctx); err != nil {
		return err
	}
	s.read, err = prepare(ctx, s.readers, s.dialect, reading)
	return err
}

// Close takes no more calls, finishes the changes that have begun and the reads
// under way, and closes the databases. A second Close does nothing.
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.closing)
		<-s.done
		s.life.Lock()
		defer s.life.Unlock()
		s.closed = true
		s.read.close()
		s.closeErr = errors.Join(s.w.close(), s.readers.Close())
	})
	return s.closeErr
}

// reads calls f, which reads, and explains its error. It calls f again where a
// connection was lost.
func (s *Store) reads(ctx context.Context, what string, f func() error) error {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := f()
	if err != nil && s.dialect.Fault(err) == Lost && ctx.Err() == nil && s.readers != nil {
		// It was cut while nobody used it, as perhaps the others were.
		s.readers.SetMaxIdleConns(0)
		s.readers.SetMaxIdleConns(s.readers.Stats().MaxOpenConnections)
		err = f()
	}
	if r, ok := errors.AsType[refused](err); ok {
		return r.error
	}
	if err != nil {
		return fmt.Errorf("store: reading %s: %w", what, s.explain(ctx, err))
	}
	return nil
}

type scanner interface{ Scan(dest ...any) error }

// list reads the rows that a statement gives for args, each by scan, whose first error
// ends it: nothing is told of rows where one cannot be read.
func list[T any](ctx context.Context, s *Store, what string, scan func(scanner) (T, error), which statement, args ...any) (found []T, err error) {
	err = s.reads(ctx, what, func() error {
		found = nil // of a connection that was lost
		rows, err := s.read[which].QueryContext(ctx, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			one, err := scan(rows)
			if err != nil {
				return err
			}
			found = append(found, one)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// explain returns the cause of ctx for an error that came of its end, and else
// what the dialect says.
func (s *Store) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return s.dialect.Explain(err)
}

// damaged is the error for rows that cannot have been written as they are.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w; keep the file for the inquiry, and restore a backup", store.ErrCorrupt, fmt.Errorf(format, args...))
}
