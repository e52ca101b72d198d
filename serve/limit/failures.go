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
// only those that could have held count against others that could. Machines are told
// apart as [Listener] does. Failures are safe for concurrent use.
type Failures struct {
	log *slog.Logger

	mu       sync.Mutex
	machines recent[netip.Prefix, *machineFailed]
	held     recent[[sha256.Size]byte, struct{}]
	refused  int          // since the last line
	last     netip.Prefix // of them
	timer    *time.Timer  // for the next line; nil: the next refusal is told at once
}

// machineFailed is what one machine may still fail with.
type machineFailed struct{ formed, formless *rate.Limiter }

// NewFailures returns Failures that tell log of machines that are refused: at once, and
// then every minute, with how often.
func NewFailures(log *slog.Logger) *Failures {
	return &Failures{log: log, machines: recent[netip.Prefix, *machineFailed]{most: MaxMachines}, held: recent[[sha256.Size]byte, struct{}]{most: MaxHeld}}
}

// Check returns when the machine at that address, as a request has it, may send the next
// credential; zero: this one is to be looked at. Formed says that the credential has the
// form, and the checksum, of one that holds.
func (f *Failures) Check(address, credential string, formed bool) (after time.Duration) {
	from := machineOf(address)
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.machines.get(from)
	if !ok || m.of(formed).Tokens() >= 1 {
		return 0
	}
	if _, ok := f.held.get(sha256.Sum256([]byte(credential))); ok {
		return 0
	}
	f.tell(from)
	return FailedEvery
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
