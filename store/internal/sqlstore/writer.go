package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/store"
)

// maxBatch is how many changes one transaction takes. What a commit costs is the
// disk's answer; at 256 its share is small beside that of the statements.
const maxBatch = 256

// A job is one change on its way into a transaction.
type job struct {
	entry  audit.Pending
	change func(context.Context, *writer) error // nil: the entry alone
	beside bool                                 // a change beside the record, without an entry
	begun  atomic.Bool                          // taken, by the writer or by a caller that has left
	done   chan error                           // of capacity 1
	err    error                                // why the change was refused, where it alone was
}

// refused is the answer of what is kept to a change that it does not allow, or to
// a question for what is not there. It ends that change and no other of its
// transaction.
type refused struct{ error }

// commit has the writer make change and seal entry in one transaction. It
// returns after the commit has succeeded, or with an error and nothing kept. A
// caller whose ctx ends before its change was begun gets the cause at once;
// after that it waits for the truth.
func (s *Store) commit(ctx context.Context, entry audit.Pending, change func(context.Context, *writer) error) error {
	return s.make(ctx, &job{entry: entry, change: change})
}

// beside has the writer make change, which is no part of the record and has no entry:
// nothing of it lets anybody in, or lets anything run.
func (s *Store) beside(ctx context.Context, change func(context.Context, *writer) error) error {
	return s.make(ctx, &job{change: change, beside: true})
}

func (s *Store) make(ctx context.Context, j *job) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p := s.poison.Load(); p != nil {
		return p.err
	}
	j.done = make(chan error, 1)
	select {
	case s.queue <- j:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.closing:
		return store.ErrClosed
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		if j.begun.CompareAndSwap(false, true) {
			return context.Cause(ctx)
		}
		return <-j.done
	}
}

// A batch is the changes of one transaction.
type batch struct {
	jobs  []*job
	queue <-chan *job
}

// fill takes what waits, as far as there is room.
func (b *batch) fill() {
	for len(b.jobs) < maxBatch {
		select {
		case j := <-b.queue:
			b.jobs = append(b.jobs, j)
		default:
			return
		}
	}
}

// write is the writer's goroutine.
func (s *Store) write() {
	defer close(s.done)
	for {
		b := &batch{queue: s.queue}
		select {
		case j := <-s.queue:
			b.jobs = append(b.jobs, j)
		case <-s.closing:
			return
		}
		err := s.transact(b)
		for _, j := range b.jobs {
			if err != nil {
				j.done <- err
			} else {
				j.done <- j.err
			}
		}
	}
}

// transact makes the changes of b in one transaction. When it fails, none
// of them was made, and no refusal counts: it may lean on a change that is gone.
func (s *Store) transact(b *batch) error {
	if p := s.poison.Load(); p != nil {
		return p.err
	}
	at, err := s.w.transact(b, s.check)
	if err != nil && at == opening && s.dialect.Fault(err) == Lost {
		// It was cut while it was idle. No change was begun, so another may be tried.
		at, err = s.w.transact(b, s.check)
	}
	if err != nil && at == committing && s.dialect.Fault(err) == Lost {
		if err = s.w.settle(err); err == nil {
			return nil
		}
	}
	if err == nil {
		return nil
	}
	err = s.dialect.Explain(err)
	if f := s.dialect.Fault(err); (f == Busy || f == Lost) && !errors.Is(err, errUnsettled) {
		return fmt.Errorf("store: writing: %w", err)
	}
	// After a failed write or sync the next one may succeed and yet not be on the
	// disk, so the first failure is the last change of this Store.
	err = fmt.Errorf("%w: %w", store.ErrPoisoned, err)
	s.poison.Store(&poison{err})
	_ = s.w.close() // lets go of the lock, for the other processes
	return err
}

// A writer is the one connection that changes anything.
type writer struct {
	dialect Dialect
	db      *sql.DB
	conn    *sql.Conn // nil: there is none now
	do      prepared
	arrays  *arrays       // nil: the engine has none
	timeout time.Duration // of a transaction; zero: none
	answer  time.Duration // that the connection may take after a while; zero: it is not asked
	used    time.Time     // the connection, last
	sent    sent
	fence   func(context.Context, *sql.Tx) error // nil: none
}

func (w *writer) close() error {
	w.drop()
	return w.db.Close()
}

// transact takes no context of a caller: a commit that is broken off half-way
// leaves nobody who knows what became of it.
func (w *writer) transact(b *batch, check func() error) (at stage, err error) {
	ctx, cancel := w.context()
	defer cancel()
	w.alive(ctx)
	if err := w.connect(ctx); err != nil {
		return opening, err
	}
	defer func() {
		w.used = time.Now()
		if err != nil && w.dialect.Fault(err) == Lost {
			w.drop()
		}
	}()
	tx, err := w.conn.BeginTx(ctx, nil)
	if err != nil {
		return opening, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	e, err := w.end(ctx)
	if err != nil {
		return opening, err
	}
	// Those whom the last commit answered come back one by one, while this one began:
	// taken before, a batch would be the few that were the fastest, each second time.
	b.fill()
	if w.arrays != nil {
		if err := w.arrays.read(ctx, b.jobs, e); err != nil {
			return opening, err
		}
	}
	before, made := e.frontier.Size(), false
	for _, j := range b.jobs {
		if !j.begun.CompareAndSwap(false, true) {
			continue
		}
		err := w.one(ctx, j, e)
		if r, ok := errors.AsType[refused](err); ok {
			j.err = r.error
		} else if err != nil {
			return changing, err
		} else {
			made = true
		}
	}
	if !made {
		return changing, nil // every change was refused
	}
	w.sent = sent{-1, audit.Hash{}}
	if e.frontier.Size() > before {
		if err := w.setEnd(ctx, e); err != nil {
			return changing, err
		}
		w.sent = sent{int64(e.frontier.Size()) - 1, e.last}
	}
	if check != nil {
		if err := check(); err != nil {
			return changing, err
		}
	}
	if w.fence != nil {
		if err := w.fence(ctx, tx); err != nil {
			return changing, err
		}
	}
	return committing, tx.Commit()
}

// one makes one change. A savepoint keeps what it wrote apart until its leaf is
// there; the entry alone is one statement and needs none.
func (w *writer) one(ctx context.Context, j *job, e *end) error {
	if j.change == nil {
		return w.seal(ctx, j.entry, e)
	}
	if _, err := w.do[savepoint].ExecContext(ctx); err != nil {
		return err
	}
	err := w.own(j.change(ctx, w))
	if err == nil && !j.beside {
		err = w.seal(ctx, j.entry, e)
	}
	if err != nil {
		if _, ok := errors.AsType[refused](err); !ok {
			return err
		}
		if _, err := w.do[rollbackTo].ExecContext(ctx); err != nil {
			return err
		}
	}
	if _, failed := w.do[release].ExecContext(ctx); failed != nil {
		return failed
	}
	return err
}

// own makes a refusal of the error of a change's statement that failed alone. A
// leaf that does not fit behind the head is no such thing: see seal.
func (w *writer) own(err error) error {
	if _, ok := errors.AsType[refused](err); err == nil || ok || w.dialect.Fault(err) != Statement {
		return err
	}
	return refused{w.dialect.Explain(err)}
}
