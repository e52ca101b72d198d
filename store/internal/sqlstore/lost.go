package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/audit"
)

// A stage says how far a transaction came.
type stage int

const (
	opening    stage = iota // no change was begun
	changing                // what was begun is gone without the commit
	committing              // the commit was sent; its answer alone says whether it was made
)

// sent is the last leaf of the transaction whose commit was sent last.
type sent struct {
	index int64 // below zero: it had none
	hash  audit.Hash
}

// errUnsettled: nobody knows what became of a commit. It is fatal.
var errUnsettled = errors.New("the connection was lost at the commit, and whether it was made could not be found out")

func (w *writer) context() (context.Context, context.CancelFunc) {
	if w.timeout == 0 {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), w.timeout)
}

// unused is after which time a connection may have died without a word.
const unused = time.Second

// alive gives up a connection that was not used for a while and does not answer.
func (w *writer) alive(ctx context.Context) {
	if w.answer == 0 || w.conn == nil || time.Since(w.used) < unused {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, w.answer)
	defer cancel()
	if err := w.conn.PingContext(ctx); err != nil {
		w.drop()
	}
}

// connect sees to it that there is a connection, with its statements.
func (w *writer) connect(ctx context.Context) (err error) {
	if w.conn != nil {
		return nil
	}
	if w.conn, err = w.db.Conn(ctx); err != nil {
		w.conn = nil
		return err
	}
	w.do, err = prepare(ctx, w.conn, w.dialect, writing)
	if err == nil && w.dialect.Arrays {
		w.arrays, err = prepareArrays(ctx, w.conn)
	}
	if err != nil {
		w.drop()
	}
	return err
}

// drop gives the connection up, and with it a transaction that is under way.
func (w *writer) drop() {
	w.do.close()
	w.arrays.close()
	w.do, w.arrays = prepared{}, nil
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

// settleTry is how long settle waits between two tries.
const settleTry = 100 * time.Millisecond

// settle finds out what became of the commit that was sent last and whose answer
// the error lost stands for. It returns nil where it was made, lost where it was
// not, and errUnsettled where the database did not tell in time.
func (w *writer) settle(lost error) error {
	if w.sent.index < 0 {
		return lost // what stands beside the record may be made a second time
	}
	ctx, cancel := w.context()
	defer cancel()
	for {
		made, err := w.made(ctx)
		switch {
		case err == nil && made:
			return nil
		case err == nil:
			return lost
		}
		w.drop()
		if f := w.dialect.Fault(err); f == Lost || f == Busy {
			select {
			case <-time.After(settleTry):
				continue
			case <-ctx.Done():
			}
		}
		return fmt.Errorf("%w: %w", errUnsettled, err)
	}
}

// made reports whether the leaf that was sent last is kept. The lock on the head
// is free only when the transaction that wrote it has ended one way or the other.
func (w *writer) made(ctx context.Context) (bool, error) {
	if err := w.connect(ctx); err != nil {
		return false, err
	}
	tx, err := w.conn.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := w.end(ctx); err != nil {
		return false, err
	}
	var hash []byte
	err = w.do[leafHash].QueryRowContext(ctx, w.sent.index).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return string(hash) == string(w.sent.hash[:]), err
}
