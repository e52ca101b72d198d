package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tracon-go/tracon/slot"
	"github.com/tracon-go/tracon/store"
)

// DefaultLease is how long a host holds its slots without a sign of life.
const DefaultLease = 15 * time.Second

// HostOptions say how a process takes part in running scripts.
type HostOptions struct {
	// ID is the process's own, as it stands in its admissions. Required.
	ID string

	// Limits are the bounds of runs and calls over all hosts. Where hosts differ, the
	// smallest of those that live hold.
	Limits slot.Limits

	// Lease is how long this process keeps its slots without reaching the database,
	// to the millisecond. After four fifths of it, it stops what it runs; at its end
	// others take the slots; after as long again, it is taken for dead. Zero means 15 s.
	Lease time.Duration

	// Bury closes what a dead process left. It is called for one at a time, and by one
	// host at a time; when it fails, it is called again later, and perhaps elsewhere.
	// Required.
	Bury func(context.Context, Dead) error

	// Logger is told what the operator should know. Nil means slog.Default().
	Logger *slog.Logger
}

// A Dead is a process that gave no sign of life for too long. It changes nothing
// any more: see store.ErrFenced.
type Dead struct {
	ID   string
	Size uint64 // of the log when it started
}

// A Host is one process among those that run scripts over one database. It is
// their [slot.Pool]. It is safe for concurrent use.
type Host struct {
	s  *Store
	d  database
	o  HostOptions
	db *sql.DB // of its own: one connection for the slots, the others for burying
	n  int64   // its number, which is its fence

	stop context.CancelCauseFunc
	wg   sync.WaitGroup
	kick chan struct{} // there is something to do

	mu     sync.Mutex
	ops    []*op
	calls  map[int64]*lease
	epoch  *epoch
	watch  *time.Timer
	held   time.Duration // how long a slot is held, as a moving average
	fenced bool

	// These are the steward's alone.
	renewed time.Time // when the last renewal was begun
	unclean bool      // rows may be there that calls does not have
}

// An epoch is the time between two losses of all slots.
type epoch struct {
	lost chan struct{}
	once sync.Once
}

func (e *epoch) end() { e.once.Do(func() { close(e.lost) }) }

func (e *epoch) ended() bool {
	select {
	case <-e.lost:
		return true
	default:
		return false
	}
}

var _ slot.Pool = (*Host)(nil)

// now is the database's clock, by which leases expire.
const now = `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`

// Join makes this process one of the hosts. Before, it closes what dead ones left,
// and fails where that fails. From then on the store takes changes only while this
// process is one of them.
func (s *Store) Join(ctx context.Context, o HostOptions) (*Host, error) {
	if o.ID == "" || o.Bury == nil || o.Lease < 0 {
		return nil, errors.New("store: HostOptions without ID or Bury, or with a negative Lease")
	}
	o.Lease = max(cmp.Or(o.Lease, DefaultLease), 10*time.Millisecond)
	o.Limits = o.Limits.OrDefaults()
	o.Logger = cmp.Or(o.Logger, slog.Default())
	tip, err := s.Tip(ctx)
	if err != nil {
		return nil, err
	}
	// A host that stops in the middle of a turn keeps the others from theirs: not until
	// they have to give up their slots, too.
	h := &Host{s: s, d: s.d, o: o, db: s.d.connect(4, nil,
		"synchronous_commit", "on", "idle_in_transaction_session_timeout", milliseconds(min(s.d.idle(), o.Lease/5))),
		kick: make(chan struct{}, 1), calls: map[int64]*lease{}, epoch: &epoch{lost: make(chan struct{})}}
	if err := h.join(ctx, tip.Size()); err != nil {
		return nil, fmt.Errorf("store: joining the hosts: %w", errors.Join(h.d.explain(err), h.db.Close()))
	}
	life, stop := context.WithCancelCause(context.Background())
	h.stop = stop
	h.wg.Go(func() { h.steward(life) })
	h.wg.Go(func() { h.listen(life) })
	h.wg.Go(func() { h.undertaker(life) })
	return h, nil
}

func (h *Host) join(ctx context.Context, size uint64) error {
	if err := h.buryAll(ctx); err != nil {
		return err
	}
	h.renewed = time.Now()
	l := h.o.Limits
	err := h.db.QueryRowContext(ctx, `INSERT INTO host_instance (id, size, expires, fenced, slots, slots_per_tenant, queue, queue_per_tenant)
		VALUES ($1, $2, `+now+` + $3, 0, $4, $5, $6, $7) RETURNING n`,
		h.o.ID, int64(size), h.o.Lease.Microseconds(), l.Slots, l.SlotsPerTenant, l.Queue, l.QueuePerTenant).Scan(&h.n)
	if err != nil {
		return err
	}
	h.watch = time.AfterFunc(h.patience(), h.lose)
	h.s.host.Store(h)
	return nil
}

// patience is how long this process keeps its slots by its own clock. The rest of
// the lease is for what runs in them to be stopped.
func (h *Host) patience() time.Duration { return h.o.Lease / 5 * 4 }

// lose gives up every slot: the lease was not renewed in time.
func (h *Host) lose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.epoch.end()
}

// check says, inside of a change, whether this process may still make one. It keeps
// others from fencing it until the change has ended.
func (h *Host) check(ctx context.Context, tx *sql.Tx) error {
	var fenced int64
	err := tx.QueryRowContext(ctx, `SELECT fenced FROM host_instance WHERE n = $1 FOR KEY SHARE`, h.n).Scan(&fenced)
	if errors.Is(err, sql.ErrNoRows) || err == nil && fenced != 0 {
		return store.ErrFenced
	}
	return err
}

// Close takes this process out of the hosts. With left, something of it has no
// ending: then others take it for dead at once, and close it.
func (h *Host) Close(ctx context.Context, left bool) error {
	h.stop(errors.New("the host stops"))
	h.wg.Wait()
	h.watch.Stop()
	h.lose()
	var err error
	if left {
		_, err = h.db.ExecContext(ctx, `UPDATE host_instance SET expires = 0 WHERE n = $1`, h.n)
	} else {
		err = forget(ctx, h.db, h.n)
	}
	if err == nil && !left {
		h.s.host.Store(nil) // whoever runs nothing may change things as everybody
	}
	if err != nil {
		err = fmt.Errorf("store: leaving the hosts: %w", h.d.explain(err))
	}
	return errors.Join(err, h.db.Close())
}

// undertaker closes what dead hosts left, now and then.
func (h *Host) undertaker(ctx context.Context) {
	tick := time.NewTicker(h.o.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := h.buryAll(ctx); err != nil && ctx.Err() == nil {
			h.o.Logger.Error("what a dead host left could not be closed; it is tried again", "err", h.d.explain(err))
		}
	}
}

// dead is the condition for a host that others may fence: its lease expired as long
// ago as this one's lasts.
const dead = `(fenced = 1 OR expires <= ` + now + ` - $1)`

func (h *Host) buryAll(ctx context.Context) error {
	rows, err := h.db.QueryContext(ctx, `SELECT n FROM host_instance WHERE n <> $2 AND `+dead, h.o.Lease.Microseconds(), h.n)
	if err != nil {
		return err
	}
	var all []int64
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return errors.Join(err, rows.Close())
		}
		all = append(all, n)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, n := range all {
		if err := h.bury(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// bury fences the host n, closes what it left, and forgets it. Only one host does so
// at a time; where another is at it, it does nothing.
func (h *Host) bury(ctx context.Context, n int64) error {
	conn, err := h.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() {
		// The lock is the connection's, so that goes, and not back to the pool.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		_ = conn.Close()
	}()
	var alone bool
	if err := conn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1, $2)`, buryKey, int32(n)).Scan(&alone); err != nil || !alone {
		return err
	}
	d, err := h.fence(ctx, conn, n)
	if err != nil || d.ID == "" {
		return err
	}
	if err := h.o.Bury(ctx, d); err != nil {
		return fmt.Errorf("closing what host %s left: %w", d.ID, err)
	}
	return forget(ctx, conn, n)
}

// forget takes away the host n, and with it the rows of its slots. Others sweep those and
// give them slots in an order of their own, so it waits for its turn as they do: each
// would come to wait for the other.
func forget(ctx context.Context, db interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}, n int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `SELECT 1 FROM host_instance WHERE n = $1 FOR UPDATE`, n); err != nil { // before the turn: a change of its may have to end
		return err
	}
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1, `+schema+`)`, slotsKey); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM host_instance WHERE n = $1`, n); err != nil {
		return err
	}
	return tx.Commit()
}

// fence sees to it that the host n changes nothing any more. A change of its that
// is under way ends first. It returns the zero Dead where the host lives after all.
func (h *Host) fence(ctx context.Context, conn *sql.Conn, n int64) (d Dead, err error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return Dead{}, err
	}
	defer func() { _ = tx.Rollback() }()
	err = tx.QueryRowContext(ctx, `SELECT id, size FROM host_instance WHERE n = $2 AND `+dead+` FOR UPDATE`, h.o.Lease.Microseconds(), n).Scan(&d.ID, &d.Size)
	if errors.Is(err, sql.ErrNoRows) {
		return Dead{}, nil
	}
	if err != nil {
		return Dead{}, err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE host_instance SET fenced = 1 WHERE n = $1`, n); err != nil {
		return Dead{}, err
	}
	return d, tx.Commit()
}

// Bury fences the host id and forgets it, of which this process knows that it is
// dead, and has close close what it left.
func (h *Host) Bury(ctx context.Context, id string, close func(context.Context) error) error {
	if _, err := h.db.ExecContext(ctx, `UPDATE host_instance SET expires = 0 WHERE id = $1 AND n <> $2`, id, h.n); err != nil {
		return fmt.Errorf("store: %w", h.d.explain(err))
	}
	for {
		var there bool
		if err := h.buryAll(ctx); err != nil {
			return fmt.Errorf("store: %w", h.d.explain(err))
		}
		if err := h.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM host_instance WHERE id = $1)`, id).Scan(&there); err != nil {
			return fmt.Errorf("store: %w", h.d.explain(err))
		}
		if !there {
			return close(ctx) // what another host closed is closed
		}
		select {
		case <-time.After(settle): // another host is at it
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settle is how long is waited between two looks at what another host does.
const settle = 50 * time.Millisecond

// channel is where hosts tell each other that slots were given, for the schema.
func (h *Host) channel(ctx context.Context, c *pgx.Conn) (name string, err error) {
	err = c.QueryRow(ctx, `SELECT 'tracon_slots_' || `+schema).Scan(&name)
	return name, err
}

// listen wakes the steward when another host gave a slot to a call of this one.
// Without it the steward looks by itself, later.
func (h *Host) listen(ctx context.Context) {
	for ctx.Err() == nil {
		_ = h.hear(ctx)
		select {
		case <-time.After(look):
		case <-ctx.Done():
		}
	}
}

func (h *Host) hear(ctx context.Context) error {
	c, err := pgx.ConnectConfig(ctx, h.d.c.Copy())
	if err != nil {
		return err
	}
	defer func() { // a server that does not answer keeps nobody from stopping
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), look)
		defer cancel()
		_ = c.Close(bye)
		select { // a wait that was broken off is cleaned up by a goroutine of the driver
		case <-c.PgConn().CleanupDone():
		case <-bye.Done():
		}
	}()
	name, err := h.channel(ctx, c)
	if err != nil {
		return err
	}
	if _, err := c.Exec(ctx, `LISTEN `+pgx.Identifier{name}.Sanitize()); err != nil {
		return err
	}
	for {
		if _, err := c.WaitForNotification(ctx); err != nil {
			return err
		}
		h.wake()
	}
}

// wake has the steward look whether there is something to do.
func (h *Host) wake() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}
