package postgres_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/pgserver"
	"github.com/tracon-go/tracon/slot"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/postgres"
)

// hostVariable has the test binary be a host among others; its value is the
// host's number. The address is its last argument.
const hostVariable = "TRACON_POSTGRES_HOST"

func TestMain(m *testing.M) {
	if number := os.Getenv(hostVariable); number != "" {
		if err := beHost(number, os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(pgserver.Main(m, func() error { return goleak.Find() }))
}

// shared are the bounds of the hosts of a history. Each host has one caller more that
// keeps its slot, so that there is always one to be lost.
var shared = slot.Limits{Slots: 6, SlotsPerTenant: 2, Queue: 1000, QueuePerTenant: 1000}

const historyCallers = 6

// mono is a clock that all processes share, and that nobody sets.
func mono() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// A said is a line in which a host says what it did. That it gives a slot back it says
// before, because it may be killed in the middle.
type said struct {
	What      deedKind
	Slot      int64  `json:",omitempty"`
	Tenant    string `json:",omitempty"`
	Host      int    `json:",omitempty"` // that was fenced
	Call, End int64
}

// kept reports whether it is about the slot that a host keeps.
func (s said) kept() bool { return strings.HasPrefix(s.Tenant, "keeper") }

// refused is what a host says when it may change nothing any more.
const refused deedKind = "is refused"

// beHost takes slots and gives them back, and writes to the log, until its standard
// input ends or it is fenced.
func beHost(number, address string) error {
	ctx := context.Background()
	me, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return err
	}
	st, err := postgres.Open(ctx, address, postgres.Options{})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(s said) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(os.Stdout).Encode(s) // one write
	}
	h, err := st.Join(ctx, postgres.HostOptions{ID: "host-" + number, Limits: shared, Lease: long, Logger: slog.New(slog.DiscardHandler),
		Bury: func(_ context.Context, d postgres.Dead) error {
			n, err := strconv.Atoi(strings.TrimPrefix(d.ID, "host-"))
			say(said{What: fenced, Host: n, End: mono()})
			return err
		}})
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { close(stop) }) }
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	var slots atomic.Int64
	// use takes a slot and gives it back when done says so, or when it is lost.
	use := func(tenant string, done func(lost <-chan struct{})) {
		taking := said{What: taken, Slot: slots.Add(1)*100 + me, Tenant: tenant, Call: mono()}
		place, err := h.Enter(ctx, tenant)
		if err != nil {
			return
		}
		defer place.Leave()
		s, err := place.Wait(ctx, time.Hour)
		if err != nil {
			return
		}
		taking.End = mono()
		say(taking)
		done(s.Lost())
		// It counts as given back from here on, though it takes a while: nobody waits for that.
		giving := mono()
		say(said{What: released, Slot: taking.Slot, Tenant: tenant, Call: giving, End: giving})
		s.Release()
	}
	var wg sync.WaitGroup
	stopped := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	for c := range historyCallers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(me), uint64(c)))
			for !stopped() {
				use(fmt.Sprint("tenant-", random.IntN(3)/2), func(<-chan struct{}) { // two thirds are of the first
					time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) // a run's time
				})
			}
		})
	}
	wg.Go(func() {
		for !stopped() {
			use("keeper-"+number, func(lost <-chan struct{}) {
				select {
				case <-lost:
				case <-stop:
				}
			})
		}
	})
	wg.Go(func() {
		log := audit.NewLog(st)
		for !stopped() {
			writing := said{What: wrote, Call: mono()}
			_, err := log.Append(ctx, audit.Entry{Tenant: "acme", Kind: audit.Refusal, Subject: "host-" + number})
			if writing.End = mono(); errors.Is(err, store.ErrFenced) {
				writing.What = refused
				end()
			}
			if err == nil || writing.What == refused {
				say(writing)
			}
		}
	})
	wg.Wait()
	// Its slots are all given back. One that was fenced leaves nothing, either.
	return errors.Join(h.Close(ctx, false), st.Close())
}

// A player is a host in a process of its own.
type player struct {
	*exec.Cmd
	number int
	stdin  io.Closer
	heard  chan struct{} // closed when it has said its last word

	mu    sync.Mutex
	words []said
}

// A match is a history while it is made.
type match struct {
	*testing.T
	address string
	db      *sql.DB
	players []*player
	paused  int // which of them is, last
	lost    []loss
	dead    map[int]int64 // the host, and when it may have been fenced at the earliest
}

// A loss says that a host's lease expired, and not before when.
type loss struct {
	host int
	at   int64
}

func (m *match) enters() *player {
	m.Helper()
	p := &player{number: len(m.players) + 1, heard: make(chan struct{})}
	u, err := url.Parse(m.address)
	if err != nil {
		m.Fatal(err)
	}
	u.User = url.UserPassword(m.user(p.number), pgserver.Password)
	execSQL(m.T, m.db, `CREATE ROLE `+m.user(p.number)+` SUPERUSER LOGIN PASSWORD '`+pgserver.Password+`'`)
	p.Cmd = exec.CommandContext(m.Context(), "/proc/self/exe", "-test.run=^$", u.String())
	p.Env = append(os.Environ(), fmt.Sprintf("%s=%d", hostVariable, p.number))
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		m.Fatal(err)
	}
	if p.stdin, err = p.StdinPipe(); err != nil {
		m.Fatal(err)
	}
	if err := p.Start(); err != nil {
		m.Fatal(err)
	}
	go func() {
		defer close(p.heard)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var s said
			if json.Unmarshal(lines.Bytes(), &s) != nil {
				return // cut by a kill: nobody was told what it says
			}
			p.mu.Lock()
			p.words = append(p.words, s)
			p.mu.Unlock()
		}
	}()
	m.players = append(m.players, p)
	return p
}

// user is whom the host of that number is to the server, which tells by it whose
// connections there are.
func (m *match) user(number int) string {
	u, err := url.Parse(m.address)
	if err != nil {
		m.Fatal(err)
	}
	return fmt.Sprintf("%s_host_%d", u.Query().Get("search_path"), number)
}

func (p *player) said(match func(said) bool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.words {
		if match(s) {
			n++
		}
	}
	return n
}

// until waits until p has said n things more that match.
func (m *match) until(p *player, n int, match func(said) bool) {
	m.Helper()
	n += p.said(match)
	for i := range 30_000 {
		if p.said(match) >= n {
			return
		}
		if i%20 == 19 {
			m.impatient()
		}
		time.Sleep(10 * time.Millisecond)
	}
	m.Fatalf("host %d never said the %d things that are waited for", p.number, n)
}

// impatient ends what the server ends by itself after some seconds: the connection of the
// host that is paused, if it was in the middle of a change, and so keeps all others waiting.
func (m *match) impatient() {
	m.Helper()
	_, err := m.db.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE usename = $1 AND state = 'idle in transaction' AND state_change < clock_timestamp() - interval '200 milliseconds'`, m.user(m.paused))
	if err != nil {
		m.Fatal(err)
	}
}

// busy waits until p has had n slots more, and one that it keeps.
func (m *match) busy(p *player, n int) {
	m.Helper()
	m.until(p, n, func(s said) bool { return s.What == taken && !s.kept() })
	kept := func(s said) bool { return s.What == taken && s.kept() }
	given := func(s said) bool { return s.What == released && s.kept() }
	for p.said(kept) <= p.said(given) {
		m.until(p, 1, func(said) bool { return true })
	}
}

func (m *match) signal(p *player, sig os.Signal) {
	m.Helper()
	if err := p.Process.Signal(sig); err != nil {
		m.Fatal(err)
	}
}

// expires ends p's lease at the database: others may have its slots, and where it is
// dead, fence it.
func (m *match) expires(p *player, dead bool) {
	m.Helper()
	now := mono()
	m.lost = append(m.lost, loss{p.number, now})
	ago := time.Microsecond
	if dead {
		m.dead[p.number] = now
		ago = 2 * long
	}
	expire(m.T, m.address, fmt.Sprint("host-", p.number), ago)
}

// history is what the hosts said and what was done to them, as operations. All of them
// have ended.
//
// Where it is open when a slot was taken, the end of the call is the moment with which
// there is an order if there is one with any: the fewest are out. So it is that moment,
// but for a call in the middle of which its host lost what it had, or was fenced. The
// check would find that by itself, and take very long where there is no order.
func (m *match) history() (all []porcupine.Operation) {
	for _, p := range m.players {
		given := map[int64]int64{}
		for _, s := range p.words {
			if s.What == released {
				given[s.Slot] = s.Call
			}
		}
		add := func(call, end int64, d deed) {
			all = append(all, porcupine.Operation{ClientId: p.number, Call: call, Return: end, Input: d})
		}
		for _, s := range p.words {
			d := deed{s.What, p.number, s.Slot, s.Tenant}
			switch s.What {
			case fenced:
				add(m.dead[s.Host], s.End, deed{what: fenced, host: s.Host})
			case taken:
				call := s.End
				for _, l := range m.lost {
					back, ok := given[s.Slot]
					switch gone := (deed{lost, p.number, s.Slot, s.Tenant}); {
					case l.host != p.number || s.Call > l.at || ok && back < l.at:
					case s.End > l.at:
						call = s.Call
						add(l.at, never, gone)
					default: // what it had it has lost, whatever it knows of it
						add(l.at, l.at, gone)
					}
				}
				add(call, s.End, d)
			case released, wrote:
				add(s.Call, s.End, d)
			}
		}
	}
	return all
}

// TestHistoryOfHosts: B9, R17, linearizability. Hosts in processes of their own share
// slots over one database; one is killed, one is paused past its lease, comes back, and
// is paused until it is taken for dead. What they say has an order in which no slot is
// out twice, and in which nobody has or changes anything who is fenced. With
// TRACON_FAULTS=full it is done many times.
func TestHistoryOfHosts(t *testing.T) {
	rounds, slots := 1, 15
	if os.Getenv("TRACON_FAULTS") == "full" {
		rounds, slots = 60, 100
	}
	for range rounds {
		if historyOfHosts(t, slots); t.Failed() {
			return
		}
	}
}

func historyOfHosts(t *testing.T, slots int) {
	m := &match{T: t, address: pgserver.New(t), dead: map[int]int64{}}
	m.db = raw(t, m.address)
	if err := open(t, m.address).Close(); err != nil { // makes the tables
		t.Fatal(err)
	}
	lives, paused, killed := m.enters(), m.enters(), m.enters()
	for _, p := range m.players {
		m.busy(p, slots)
	}
	m.paused = paused.number
	m.signal(paused, syscall.SIGSTOP)
	m.signal(killed, syscall.SIGKILL)
	m.expires(paused, false)
	m.expires(killed, false)
	m.busy(lives, slots) // with what they had
	m.signal(paused, syscall.SIGCONT)
	m.busy(paused, slots) // it takes part again
	m.signal(paused, syscall.SIGSTOP)
	m.expires(paused, true)
	m.expires(killed, true)
	heir := m.enters() // who joins closes first what the dead left
	m.busy(heir, slots)
	m.signal(paused, syscall.SIGCONT)
	m.until(paused, 1, func(s said) bool { return s.What == refused })
	for _, p := range m.players {
		_ = p.stdin.Close()
		<-p.heard
		if err := p.Wait(); err != nil && p != killed {
			t.Errorf("host %d ended with %v", p.number, err)
		}
	}
	history := m.history()
	count := map[deedKind]int{}
	for _, o := range history {
		count[o.Input.(deed).what]++
	}
	t.Logf("%d operations: %v", len(history), count)
	if count[lost] < 3 || count[fenced] != 2 {
		t.Errorf("%d slots were lost and %d hosts fenced, want at least 3, and 2: the history shows nothing", count[lost], count[fenced])
	}
	if why := unordered(history, shared); why != "" {
		t.Error(why)
	}
	if n := lives.said(func(s said) bool { return s.What == fenced }); n != 0 {
		t.Errorf("the host that lives fenced %d others, before one joined", n)
	}
	settled(t, m.address, 0)
}
