package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/pgserver"
	"github.com/tracon-go/tracon/slot"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/postgres"
)

// long is a lease that no test outlives: what expires does so because a test says so.
const long = time.Hour

// aHost is one host of a test.
type aHost struct {
	*postgres.Host
	st     *postgres.Store
	id     string
	mu     sync.Mutex
	buried []postgres.Dead
}

// join opens the store at address and joins its hosts. It is closed with the test.
func join(t testing.TB, address, id string, lease time.Duration, l slot.Limits) *aHost {
	t.Helper()
	h := &aHost{st: open(t, address), id: id}
	var err error
	h.Host, err = h.st.Join(t.Context(), postgres.HostOptions{ID: id, Limits: l, Lease: lease, Logger: slog.New(slog.DiscardHandler), Bury: func(_ context.Context, d postgres.Dead) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.buried = append(h.buried, d)
		return nil
	}})
	if err != nil {
		t.Fatal(errors.Join(err, h.st.Close()))
	}
	t.Cleanup(func() {
		if err := errors.Join(h.Close(context.Background(), false), h.st.Close()); err != nil {
			t.Error(err)
		}
	})
	return h
}

func take(t testing.TB, p slot.Pool, tenant string) slot.Slot {
	t.Helper()
	place, err := p.Enter(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	defer place.Leave()
	s, err := place.Wait(t.Context(), 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// settled waits until what was given back is gone: nobody waits for that.
func settled(t testing.TB, address string, rows int64) {
	t.Helper()
	db := raw(t, address)
	for range 6000 {
		var n int64
		if err := db.QueryRow(`SELECT COUNT(*) FROM slot_lease`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == rows {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the leases never came to be %d", rows)
}

// TestSlotsAcrossHosts: B9, R17. Many calls on three hosts: at no time are more
// slots taken than there are, in all or by a tenant, and all come back. The history
// of takings and givings-back has an order that says so, because each is counted
// before the slot is given back and after it was taken.
func TestSlotsAcrossHosts(t *testing.T) {
	address := pgserver.New(t)
	limits := slot.Limits{Slots: 4, SlotsPerTenant: 3, Queue: 1000, QueuePerTenant: 1000}
	var hosts []*aHost
	for i := range 3 {
		hosts = append(hosts, join(t, address, fmt.Sprint("host-", i), long, limits))
	}
	var all, most atomic.Int64
	var tenants [2]atomic.Int64
	var wg sync.WaitGroup
	for c := range 24 {
		wg.Go(func() {
			for i := range 8 {
				who := (c + i) % 3 / 2 // two thirds are of the first
				s := take(t, hosts[c%3], fmt.Sprint("tenant-", who))
				n, mine := all.Add(1), tenants[who].Add(1)
				if n > 4 || mine > 3 {
					t.Errorf("%d slots are taken, %d of them by a tenant; want at most 4 and 3", n, mine)
				}
				for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
				}
				all.Add(-1)
				tenants[who].Add(-1)
				s.Release()
			}
		})
	}
	wg.Wait()
	settled(t, address, 0)
	for _, h := range hosts {
		if c := h.Count(); c.InUse != 0 || c.Waiting != 0 {
			t.Errorf("%s counts %+v, want that all came back", h.id, c)
		}
	}
}

// TestFairAcrossHosts: B10, one tenant's flood on one host does not keep another's
// call on another host waiting: it gets the next slot but one at the latest.
func TestFairAcrossHosts(t *testing.T) {
	address := pgserver.New(t)
	limits := slot.Limits{Slots: 1, SlotsPerTenant: 1, Queue: 100, QueuePerTenant: 90}
	one, two := join(t, address, "one", long, limits), join(t, address, "two", long, limits)
	first := take(t, one, "flood")
	order := make(chan string, 100)
	var wg sync.WaitGroup
	wait := func(h *aHost, tenant string) {
		place, err := h.Enter(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer place.Leave()
			s, err := place.Wait(t.Context(), 5*time.Minute)
			if err != nil {
				t.Error(err)
				return
			}
			order <- tenant
			s.Release()
		})
	}
	for range 20 {
		wait(one, "flood")
	}
	for range 3 {
		wait(two, "quiet")
	}
	db := raw(t, address)
	for waiting := int64(0); waiting < 23; {
		if err := db.QueryRow(`SELECT COUNT(*) FROM slot_lease WHERE waits = 1 AND turn IS NULL`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	first.Release()
	wg.Wait()
	close(order)
	var got []string
	for tenant := range order {
		got = append(got, tenant[:1])
	}
	if s := strings.Join(got, ""); len(s) != 23 || !strings.HasPrefix(s, "qfqfqf") {
		t.Errorf("they were served %s, want the quiet tenant in turn with the flood", s)
	}
}

// TestQueueAcrossHosts: B10, the bound of the queue is that of all hosts, and the
// smallest of theirs; whoever finds it full is told when to try again.
func TestQueueAcrossHosts(t *testing.T) {
	address := pgserver.New(t)
	one := join(t, address, "one", long, slot.Limits{Slots: 4, Queue: 5, QueuePerTenant: 3})
	two := join(t, address, "two", long, slot.Limits{Slots: 9, Queue: 9, QueuePerTenant: 9})
	var places []slot.Place
	enter := func(h *aHost, tenant string, ok bool) {
		t.Helper()
		p, err := h.Enter(t.Context(), tenant)
		busy, is := errors.AsType[*slot.BusyError](err)
		switch {
		case ok && err != nil:
			t.Fatal(err)
		case !ok && !is:
			t.Fatalf("got %v, want that it is busy", err)
		case !ok && busy.RetryAfter < time.Second:
			t.Errorf("it says to try again in %s", busy.RetryAfter)
		case ok:
			places = append(places, p)
		}
	}
	for range 3 {
		enter(two, "a", true)
	}
	enter(one, "a", false)
	enter(two, "a", false)
	enter(one, "b", true)
	enter(two, "b", true)
	enter(two, "c", false)
	places[0].Leave()
	settled(t, address, 4)
	enter(one, "c", true)
	for _, p := range places[1:] {
		p.Leave()
	}
	settled(t, address, 0)
	// Whoever stops waiting, by its own limit or its caller's word, leaves nothing.
	held := []slot.Slot{take(t, one, "a"), take(t, two, "a")}
	for _, limit := range []time.Duration{time.Millisecond, time.Hour} {
		ctx, cancel := t.Context(), func() {}
		if limit == time.Hour {
			ctx, cancel = context.WithTimeoutCause(ctx, 20*time.Millisecond, errGaveUp)
		}
		p, err := one.Enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Wait(ctx, limit)
		p.Leave()
		cancel()
		if limit < time.Second && !errors.Is(err, slot.ErrBusy) || limit > time.Second && !errors.Is(err, errGaveUp) {
			t.Errorf("after a limit of %s: %v", limit, err)
		}
	}
	settled(t, address, 2)
	for _, s := range held {
		s.Release()
	}
	settled(t, address, 0)
}

var errGaveUp = errors.New("gave up")

// expire has the lease of the host id end now, or long ago, as if it had been paused.
func expire(t testing.TB, address, id string, ago time.Duration) {
	t.Helper()
	n := execSQL(t, raw(t, address), `UPDATE host_instance SET expires = CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) - $2 WHERE id = $1`, id, ago.Microseconds())
	if n != 1 {
		t.Fatalf("%d hosts are called %s", n, id)
	}
}

// TestForgottenInTurn: B9, whoever closes what a dead host left takes the rows of its slots
// away in its turn, and no deadlock with one who sweeps them comes of it.
func TestForgottenInTurn(t *testing.T) {
	address := pgserver.New(t)
	if err := open(t, address).Close(); err != nil { // makes the tables
		t.Fatal(err)
	}
	db := raw(t, address)
	execSQL(t, db, `INSERT INTO host_instance (id, size, expires, fenced, slots, slots_per_tenant, queue, queue_per_tenant) VALUES ('dead', 0, 0, 0, 2, 2, 2, 2)`)
	execSQL(t, db, `INSERT INTO slot_lease (instance, tenant, waits) SELECT n, 'a', 1 FROM host_instance, generate_series(1, 2)`)
	turn, err := raw(t, address).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = turn.Rollback() }()
	do := func(query string) {
		t.Helper()
		if _, err := turn.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	do(postgres.TakeTurn)
	do(`DELETE FROM slot_lease WHERE n = (SELECT MAX(n) FROM slot_lease)`)
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		heir := &aHost{st: open(t, address)}
		var err error
		heir.Host, err = heir.st.Join(t.Context(), postgres.HostOptions{ID: "heir", Lease: long, Logger: slog.New(slog.DiscardHandler), Bury: func(context.Context, postgres.Dead) error { return nil }})
		if err != nil {
			t.Error(errors.Join(err, heir.st.Close()))
			return
		}
		if err := errors.Join(heir.Close(context.Background(), false), heir.st.Close()); err != nil {
			t.Error(err)
		}
	}()
	for waits := 0; waits == 0; {
		select {
		case <-joined:
			t.Fatal("it waits for no turn")
		default:
		}
		if err := db.QueryRow(`SELECT COUNT(*) FROM pg_locks WHERE NOT granted`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	do(`DELETE FROM slot_lease`)
	if err := turn.Commit(); err != nil {
		t.Fatal(err)
	}
	<-joined
}

// TestPausedHost: B9, a host that was paused past its lease has lost its slots to
// others. What it ran is told to stop, and it takes part again with new ones.
func TestPausedHost(t *testing.T) {
	address := pgserver.New(t)
	limits := slot.Limits{Slots: 1, SlotsPerTenant: 1}
	paused := join(t, address, "paused", long, limits)
	lost := take(t, paused, "a")
	expire(t, address, "paused", 0)
	other := take(t, join(t, address, "other", long, limits), "a") // which does not take the other for dead yet
	switch place, err := paused.Enter(t.Context(), "a"); {
	case err == nil: // it has looked by itself, and found out
		if _, err := place.Wait(t.Context(), time.Millisecond); err == nil {
			t.Error("I5: two hosts have the one slot")
		}
		place.Leave()
	case !errors.Is(err, slot.ErrUnavailable) && !errors.Is(err, slot.ErrLost):
		t.Errorf("the paused host's next call gets %v", err)
	}
	<-lost.Lost()
	lost.Release()
	other.Release()
	again := take(t, paused, "a")
	select {
	case <-again.Lost():
		t.Error("a slot that was given later is lost too")
	default:
	}
	again.Release()
}

// TestFencedHost: I5, once a host was taken for dead and what it left was closed, no
// change of its own is made: neither the ending of what it ran nor another admission.
func TestFencedHost(t *testing.T) {
	address := pgserver.New(t)
	paused := join(t, address, "paused", long, slot.Limits{Slots: 1})
	log := audit.NewLog(paused.st)
	appendTo(t, log, "while it lives")
	lost := take(t, paused, "a")
	// A host that has a slot looks every now and then, and renews its lease where it comes
	// before the other one: on a busy machine it may.
	var other *aHost
	var buried []postgres.Dead
	for i := 0; i < 20 && len(buried) == 0; i++ {
		expire(t, address, "paused", 2*long)
		other = join(t, address, fmt.Sprint("other", i), long, slot.Limits{Slots: 1})
		buried = append(buried, other.buried...)
	}
	if len(buried) != 1 || buried[0] != (postgres.Dead{ID: "paused"}) {
		t.Errorf("the other host closed %+v, want what the paused one left", buried)
	}
	take(t, other, "a").Release()
	for range 2 {
		_, err := log.Append(t.Context(), audit.Entry{Tenant: "acme", Kind: audit.Ending, Subject: "too late"})
		if !errors.Is(err, store.ErrFenced) || !errors.Is(err, audit.ErrUnavailable) {
			t.Errorf("its return says %v, want %q", err, store.ErrFenced)
		}
	}
	if _, err := paused.Enter(t.Context(), "a"); !errors.Is(err, slot.ErrUnavailable) {
		t.Errorf("its next call gets %v", err)
	}
	<-lost.Lost()
	lost.Release()
	if n := verified(t, audit.NewLog(other.st)); n != 1 {
		t.Errorf("the log has %d entries, want that from while it lived", n)
	}
	appendTo(t, audit.NewLog(other.st), "the other goes on")
}

// TestBuryFails: fail closed, where what a dead host left cannot be closed nobody
// joins, and it is found again.
func TestBuryFails(t *testing.T) {
	address := pgserver.New(t)
	join(t, address, "dead", long, slot.Limits{})
	expire(t, address, "dead", 2*long)
	st := open(t, address)
	defer st.Close()
	full := errors.New("no room")
	for range 2 {
		_, err := st.Join(t.Context(), postgres.HostOptions{ID: "next", Lease: long, Bury: func(context.Context, postgres.Dead) error { return full }})
		if !errors.Is(err, full) {
			t.Errorf("joining says %v, want why it could not be closed", err)
		}
	}
	if h := join(t, address, "later", long, slot.Limits{}); len(h.buried) != 1 {
		t.Errorf("closed: %v", h.buried)
	}
	if h := join(t, address, "last", long, slot.Limits{}); len(h.buried) != 0 {
		t.Errorf("closed twice: %v", h.buried)
	}
}

// TestPoolOutOfReach: where the database cannot be reached there are no slots, and
// at the end of its patience a host gives up those that it has.
func TestPoolOutOfReach(t *testing.T) {
	direct := pgserver.New(t)
	w, address := wired(t, direct)
	h := join(t, address, "far", 2*time.Second, slot.Limits{})
	var s slot.Slot
	for s == nil { // a slow machine may lose one before it has it
		if p, err := h.Enter(t.Context(), "a"); err == nil {
			s, _ = p.Wait(t.Context(), time.Minute)
			p.Leave()
		}
	}
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.end()
	<-s.Lost()
	s.Release()
	if _, err := h.Enter(t.Context(), "a"); !errors.Is(err, slot.ErrUnavailable) {
		t.Errorf("a call gets %v, want %q", err, slot.ErrUnavailable)
	}
	w.mu.Lock()
	w.ended = false
	w.mu.Unlock()
	for { // nobody has fenced it meanwhile, so it takes part again
		p, err := h.Enter(t.Context(), "a")
		if err == nil {
			p.Leave()
			break
		}
		if !errors.Is(err, slot.ErrUnavailable) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestPausedTurn: B9, a host that is paused in the middle of a turn, with the lock of
// all hosts in hand, is let go by the server before the others lose their slots too.
func TestPausedTurn(t *testing.T) {
	w, address := wired(t, pgserver.New(t))
	st := open(t, address)
	defer st.Close()
	w.at("idle_in_transaction_session_timeout\x003000\x00", unsent) // as the connection begins
	_, err := st.Join(t.Context(), postgres.HostOptions{ID: "one", Lease: 15 * time.Second, Bury: func(context.Context, postgres.Dead) error { return nil }})
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil || w.cut != 0 {
		t.Errorf("joining says %v: it did not tell the server to wait for a fifth of its lease at most", err)
	}
}
