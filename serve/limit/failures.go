package limit

import (
	"container/list"
	"crypto/sha256"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of credentials that do not hold, of one machine.
const (
	FailedBurst = 20              // that are answered as what they are
	FailedEvery = time.Second     // one more
	MaxMachines = 16384           // that are remembered, those who failed last
	MaxHeld     = 16384           // credentials that held, those that came last
	tellEvery   = 1 * time.Minute // a line of the log
)

// Failures bounds what credentials that do not hold cost: a machine that sent too many is
// told to come later, before anybody looks at the next one. A credential that held before
// is looked at all the same, so that no stranger locks out who shares his address; and
// only those that could have held count against others that could. Those that are being
// looked at count as if they had failed until it is known, so that guesses side by side
// are bounded as well. Machines are told apart as [Listener] does. Failures are safe for
// concurrent use.
type Failures struct {
	log *slog.Logger

	mu       sync.Mutex
	machines recent[netip.Prefix, *machineFailed]
	held     recent[[sha256.Size]byte, struct{}]
	looking  map[guessers]map[[sha256.Size]byte]int // at which credentials now, in how many requests
	refused  int                                    // since the last line
	last     netip.Prefix                           // of them
	timer    *time.Timer                            // for the next line; nil: the next refusal is told at once
}

// guessers are those whose failures count together.
type guessers struct {
	from   netip.Prefix
	formed bool
}

// machineFailed is what one machine may still fail with.
type machineFailed struct{ formed, formless *rate.Limiter }

// NewFailures returns Failures that tell log of machines that are refused: at once, and
// then every minute, with how often.
func NewFailures(log *slog.Logger) *Failures {
	return &Failures{
		log: log, machines: recent[netip.Prefix, *machineFailed]{most: MaxMachines}, held: recent[[sha256.Size]byte, struct{}]{most: MaxHeld},
		looking: map[guessers]map[[sha256.Size]byte]int{},
	}
}

// Check returns when the machine at that address, as a request has it, may send the next
// credential; zero: this one is to be looked at, and release is called once after that,
// and after Held or Failed where one of them is: until then it counts as one that failed.
// Release is nil where after is not zero. Formed says that the credential has the form,
// and the checksum, of one that holds.
//
// The same credential in many requests counts once while it is looked at: it is one
// guess, and who has one key uses it for many things at a time.
func (f *Failures) Check(address, credential string, formed bool) (release func(), after time.Duration) {
	at, of := guessers{machineOf(address), formed}, sha256.Sum256([]byte(credential))
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.held.get(of); ok {
		return func() {}, 0
	}
	left := float64(FailedBurst)
	if m, ok := f.machines.get(at.from); ok {
		left = m.of(formed).Tokens()
	}
	now := f.looking[at]
	others := len(now)
	if now[of] > 0 {
		others--
	}
	if left-float64(others) < 1 {
		f.tell(at.from)
		return nil, FailedEvery
	}
	if now == nil {
		now = map[[sha256.Size]byte]int{}
		f.looking[at] = now
	}
	now[of]++
	return func() { f.release(at, of) }, 0
}

// release forgets that one request's credential is being looked at.
func (f *Failures) release(at guessers, of [sha256.Size]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.looking[at]
	if now[of]--; now[of] == 0 {
		delete(now, of)
	}
	if len(now) == 0 {
		delete(f.looking, at)
	}
}

// Held notes that the credential let somebody in.
func (f *Failures) Held(credential string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held.put(sha256.Sum256([]byte(credential)), struct{}{})
}

// Failed notes that the credential let nobody in.
func (f *Failures) Failed(address, credential string, formed bool) {
	from := machineOf(address)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held.drop(sha256.Sum256([]byte(credential)))
	m, ok := f.machines.get(from)
	if !ok {
		m = &machineFailed{rate.NewLimiter(rate.Every(FailedEvery), FailedBurst), rate.NewLimiter(rate.Every(FailedEvery), FailedBurst)}
		f.machines.put(from, m)
	}
	m.of(formed).Allow()
}

func (m *machineFailed) of(formed bool) *rate.Limiter {
	if formed {
		return m.formed
	}
	return m.formless
}

// tell counts a refusal for the log.
func (f *Failures) tell(from netip.Prefix) {
	f.refused++
	f.last = from
	if f.timer == nil {
		f.line()
		f.timer = time.AfterFunc(tellEvery, f.tellRest)
	}
}

// tellRest tells of those that came since the last line, if there are any.
func (f *Failures) tellRest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.timer = nil
	if f.refused > 0 {
		f.line()
		f.timer = time.AfterFunc(tellEvery, f.tellRest)
	}
}

func (f *Failures) line() {
	f.log.Warn("credentials were not looked at: too many from one machine did not hold", "count", f.refused, "last", f.last.String())
	f.refused = 0
}

// machineOf is where a request with that address comes from; zero where that is none.
func machineOf(address string) netip.Prefix {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Prefix{}
	}
	return machine(net.TCPAddrFromAddrPort(at))
}

// recent remembers so many things, those that were used last.
type recent[K comparable, V any] struct {
	most int
	at   map[K]*list.Element // of entry
	used list.List           // the last one first
}

type entry[K comparable, V any] struct {
	key K
	of  V
}

func (r *recent[K, V]) get(key K) (of V, ok bool) {
	e := r.at[key]
	if e == nil {
		return of, false
	}
	r.used.MoveToFront(e)
	return e.Value.(entry[K, V]).of, true
}

func (r *recent[K, V]) put(key K, of V) {
	r.drop(key)
	if r.at == nil {
		r.at = map[K]*list.Element{}
	}
	r.at[key] = r.used.PushFront(entry[K, V]{key, of})
	if len(r.at) > r.most {
		r.drop(r.used.Back().Value.(entry[K, V]).key)
	}
}

func (r *recent[K, V]) drop(key K) {
	if e := r.at[key]; e != nil {
		r.used.Remove(e)
		delete(r.at, key)
	}
}
