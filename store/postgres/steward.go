package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/slot"
	"github.com/tracon-go/tracon/store"
)

// look is how often the steward looks by itself while a call waits.
const look = time.Second

// Second halves of the advisory locks: see lockKey.
const (
	slotsKey = lockKey + 1 // who changes the slots
	buryKey  = lockKey + 2 // who closes what a dead host left
)

// steward is the goroutine that speaks with the database of slots. It takes what
// calls ask for into one transaction, as the writer of the log does.
func (h *Host) steward(ctx context.Context) {
	timer := time.NewTimer(h.o.Lease / 3)
	defer timer.Stop()
	for {
		select {
		case <-h.kick:
		case <-timer.C:
		case <-ctx.Done():
			h.refuseAll(context.Cause(ctx))
			return
		}
		h.mu.Lock()
		ops := h.ops
		h.ops = nil
		h.mu.Unlock()
		h.serve(ctx, ops)
		timer.Reset(h.next())
	}
}

// next is how long nothing may happen.
func (h *Host) next() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.o.Lease / 3
	if len(h.calls) > 0 || len(h.ops) > 0 {
		d = min(d, look)
	}
	return d
}

func (h *Host) refuseAll(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.ops {
		o.done <- fmt.Errorf("%w: %w", slot.ErrUnavailable, err)
	}
	h.ops = nil
}

// A turn is one transaction of the steward.
type turn struct {
	h       *Host
	tx      *sql.Tx
	now     int64
	renewed bool
	again   bool    // every slot was lost, and the process takes part again
	stale   bool    // there are rows of hosts whose lease has expired
	free    bool    // a slot may be free, or a call waits that did not
	answers []error // of the ops
	limits  slot.Limits
	mine    map[int64]bool // leases of this process that were given a slot
	others  bool           // a call of another host was given one
}

func (h *Host) serve(ctx context.Context, ops []*op) {
	began := time.Now()
	t, err := h.turn(ctx, ops)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.unclean = true
		if h.fenced = errors.Is(err, store.ErrFenced); h.fenced {
			h.epoch.end()
		}
		for _, o := range ops {
			if o.what == remove && !h.fenced {
				h.ops = append(h.ops, o)
				continue
			}
			o.done <- fmt.Errorf("%w: %w", slot.ErrUnavailable, h.d.explain(err))
		}
		return
	}
	h.unclean = false
	if t.again {
		h.epoch.end()
		h.epoch = &epoch{lost: make(chan struct{})}
		clear(h.calls)
	}
	if t.renewed {
		h.renewed = began
		h.watch.Reset(time.Until(began.Add(h.patience())))
	}
	for i, o := range ops {
		switch {
		case t.answers[i] != nil:
		case o.what == enter:
			h.calls[o.lease.n] = o.lease
		case o.what == wait:
			o.lease.waits = true
		}
		o.done <- t.answers[i]
	}
	for n := range t.mine {
		if l := h.calls[n]; l != nil && !l.given {
			l.given, l.since = true, time.Now()
			close(l.ready)
		}
	}
}

// turn renews the lease where it is time, does what ops say, and gives slots away.
// One process of all does so at a time.
func (h *Host) turn(ctx context.Context, ops []*op) (*turn, error) {
	ctx, cancel := context.WithTimeout(ctx, h.d.o.Timeout)
	defer cancel()
	tx, err := h.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	t := &turn{h: h, tx: tx, answers: make([]error, len(ops)), mine: map[int64]bool{}}
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1, `+schema+`)`, slotsKey); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{t.live, t.sweep, func(ctx context.Context) error { return t.all(ctx, ops) }, t.give, t.tell} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return t, tx.Commit()
}

// live renews the lease where it is time, and reads what holds for this turn. A process that lost its slots, by its own
// clock or the database's, gets none of them back.
func (t *turn) live(ctx context.Context) error {
	h := t.h
	var fenced, expires int64
	l := &t.limits
	err := t.tx.QueryRowContext(ctx, `SELECT fenced, expires, `+now+`, s, st, q, qt,
			EXISTS (SELECT 1 FROM slot_lease JOIN host_instance AS d ON d.n = instance WHERE d.fenced = 1 OR d.expires <= `+now+`)
		FROM host_instance, (SELECT MIN(slots) AS s, MIN(slots_per_tenant) AS st, MIN(queue) AS q, MIN(queue_per_tenant) AS qt
			FROM host_instance WHERE fenced = 0 AND (n = $1 OR expires > `+now+`)) AS least
		WHERE n = $1`, h.n).Scan(&fenced, &expires, &t.now, &l.Slots, &l.SlotsPerTenant, &l.Queue, &l.QueuePerTenant, &t.stale)
	if errors.Is(err, sql.ErrNoRows) || err == nil && fenced != 0 {
		return store.ErrFenced
	}
	if err != nil {
		return err
	}
	h.mu.Lock()
	t.again = h.epoch.ended() || expires <= t.now
	h.mu.Unlock()
	if t.again {
		if _, err := t.tx.ExecContext(ctx, `DELETE FROM slot_lease WHERE instance = $1`, h.n); err != nil {
			return err
		}
	}
	if !t.again && time.Since(h.renewed) < h.o.Lease/4 {
		return nil
	}
	t.renewed = true
	n, err := affected(t.tx.ExecContext(ctx, `UPDATE host_instance SET expires = $2 WHERE n = $1 AND fenced = 0`, h.n, t.now+h.o.Lease.Microseconds()))
	if err == nil && n == 0 {
		err = store.ErrFenced
	}
	return err
}

func affected(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// sweep takes away the rows of hosts whose lease has expired, and those of this one
// that no call has, where an answer of the database was lost.
func (t *turn) sweep(ctx context.Context) error {
	if t.stale {
		_, err := t.tx.ExecContext(ctx, `DELETE FROM slot_lease WHERE instance IN (SELECT n FROM host_instance WHERE fenced = 1 OR expires <= $1)`, t.now)
		if err != nil {
			return err
		}
	}
	if !t.h.unclean {
		return nil
	}
	known := []int64{}
	t.h.mu.Lock()
	for n := range t.h.calls {
		known = append(known, n)
	}
	t.h.mu.Unlock()
	_, err := t.tx.ExecContext(ctx, `DELETE FROM slot_lease WHERE instance = $1 AND NOT n = ANY ($2)`, t.h.n, known)
	return err
}

// all does what ops say, in their order.
func (t *turn) all(ctx context.Context, ops []*op) error {
	t.free = len(ops) == 0 || t.stale || t.again || t.h.unclean
	for i, o := range ops {
		var err error
		t.free = t.free || o.what != enter
		switch {
		case o.what == remove:
			_, err = t.tx.ExecContext(ctx, `DELETE FROM slot_lease WHERE n = $1 AND instance = $2`, o.lease.n, t.h.n)
		case o.lease.epoch.ended() || t.again:
			t.answers[i] = fmt.Errorf("%w: %w", slot.ErrUnavailable, slot.ErrLost)
		case o.what == enter:
			t.answers[i], err = t.enter(ctx, o.lease)
		case o.what == wait:
			t.answers[i], err = t.wait(ctx, o.lease)
		}
		if err != nil {
			return err
		}
	}
	if !t.free {
		return nil
	}
	_, err := t.tx.ExecContext(ctx, `DELETE FROM slot_tenant AS s WHERE NOT EXISTS (SELECT 1 FROM slot_lease AS l WHERE l.tenant = s.tenant)`)
	return err
}

func (t *turn) enter(ctx context.Context, l *lease) (answer, err error) {
	err = t.tx.QueryRowContext(ctx, `INSERT INTO slot_lease (instance, tenant, waits)
		SELECT $1, $2, 0 FROM (SELECT COUNT(*) AS places, COUNT(*) FILTER (WHERE tenant = $2) AS mine FROM slot_lease WHERE turn IS NULL) AS q
		WHERE places < $3 AND mine < $4 RETURNING n`, t.h.n, l.tenant, t.limits.Queue, t.limits.QueuePerTenant).Scan(&l.n)
	if errors.Is(err, sql.ErrNoRows) {
		return t.h.busyNow(t.limits.Queue), nil
	}
	return nil, err
}

func (t *turn) wait(ctx context.Context, l *lease) (answer, err error) {
	n, err := affected(t.tx.ExecContext(ctx, `UPDATE slot_lease SET waits = 1 WHERE n = $1 AND instance = $2`, l.n, t.h.n))
	if err == nil && n == 0 {
		answer = fmt.Errorf("%w: %w", slot.ErrUnavailable, slot.ErrLost)
	}
	return answer, err
}

// give gives free slots away: to the waiting tenant that has the fewest, among those
// to the one whose last is longest ago, and there to the call that came first.
func (t *turn) give(ctx context.Context) error {
	for t.free {
		var n, instance int64
		err := t.tx.QueryRowContext(ctx, `WITH given AS (UPDATE slot_lease SET turn = nextval('slot_turn') WHERE n = (
				SELECT w.n FROM (SELECT tenant, MIN(n) AS n FROM slot_lease WHERE waits = 1 AND turn IS NULL GROUP BY tenant) AS w
				LEFT JOIN (SELECT tenant, COUNT(*) AS used FROM slot_lease WHERE turn IS NOT NULL GROUP BY tenant) AS u ON u.tenant = w.tenant
				LEFT JOIN slot_tenant AS s ON s.tenant = w.tenant
				WHERE COALESCE(u.used, 0) < $2 AND (SELECT COUNT(*) FROM slot_lease WHERE turn IS NOT NULL) < $1
				ORDER BY COALESCE(u.used, 0), COALESCE(s.turn, 0), w.n LIMIT 1)
			RETURNING n, instance, tenant, turn),
			served AS (INSERT INTO slot_tenant (tenant, turn) SELECT tenant, turn FROM given
				ON CONFLICT (tenant) DO UPDATE SET turn = excluded.turn)
			SELECT n, instance FROM given`, t.limits.Slots, t.limits.SlotsPerTenant).Scan(&n, &instance)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if instance == t.h.n {
			t.mine[n] = true
		} else {
			t.others = true
		}
	}
	return nil
}

// tell reads which calls of this process others gave a slot to, and wakes the hosts
// whose calls were given one.
func (t *turn) tell(ctx context.Context) error {
	if t.h.Count().Waiting > 0 {
		if err := t.read(ctx); err != nil {
			return err
		}
	}
	if !t.others {
		return nil
	}
	_, err := t.tx.ExecContext(ctx, `SELECT pg_notify('tracon_slots_' || `+schema+`, '')`)
	return err
}

func (t *turn) read(ctx context.Context) error {
	rows, err := t.tx.QueryContext(ctx, `SELECT n FROM slot_lease WHERE instance = $1 AND turn IS NOT NULL`, t.h.n)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return err
		}
		t.mine[n] = true
	}
	return rows.Err()
}

// busyNow is the answer where the queue is full.
func (h *Host) busyNow(waiting int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.busy(waiting)
}
