package limit

import (
	"cmp"
	"container/list"
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tracon-go/tracon/access"
)

// What a [Config] means by zero.
const (
	DefaultKeyRate    = 200  // requests a second of one key
	DefaultTenantRate = 400  // of one tenant
	DefaultRunRate    = 200  // runs a second that one tenant starts
	DefaultAtOnce     = 1024 // requests under way
	MaxBuckets        = 16384
	ratesHold         = 10 * time.Second // how long a tenant's own rates are remembered
	retryCrowd        = time.Second      // when to try again where too many are under way
)

// Config bounds the requests of all. Bursts are twice the rates.
type Config struct {
	// KeyRate is how many requests a second one key may make, or one person where
	// there is no key. Zero means 200.
	KeyRate int

	// TenantRate is how many requests a second one tenant's keys may make together, and
	// RunRate how many of them may start runs. Zero means 400, and 200. The platform is
	// one tenant more.
	TenantRate, RunRate int

	// AtOnce is how many requests may be under way. One tenant has a quarter of them at
	// most, all tenants together seven eighths, so that the platform gets in whatever they
	// do, and the platform a half. Zero means 1,024.
	AtOnce int

	// Tenant returns a tenant's own rates, whose zero fields mean those above. Where it
	// fails, those above hold. Nil: no tenant has any.
	Tenant func(ctx context.Context, tenant string) (access.Rates, error)
}

// Limits are in force. They are safe for concurrent use.
type Limits struct {
	c Config

	mu      sync.Mutex
	buckets map[string]*list.Element // of *bucket
	used    *list.List               // the bucket that was used last first
	under   int                      // requests under way
	tenants map[string]int           // of them, those of each tenant; the platform's name is empty
}

// A bucket is what one key or one tenant has left.
type bucket struct {
	name     string
	requests *rate.Limiter
	runs     *rate.Limiter // nil for a key
	asked    time.Time     // for the tenant's own rates
}

// New returns limits for c.
func New(c Config) *Limits {
	c.KeyRate = cmp.Or(c.KeyRate, DefaultKeyRate)
	c.TenantRate, c.RunRate = cmp.Or(c.TenantRate, DefaultTenantRate), cmp.Or(c.RunRate, DefaultRunRate)
	c.AtOnce = cmp.Or(c.AtOnce, DefaultAtOnce)
	return &Limits{c: c, buckets: map[string]*list.Element{}, used: list.New(), tenants: map[string]int{}}
}

// Enter takes a request of p in; run says that it starts a run. Leave is called once
// when it is answered. Leave is nil where it is too much, and the request may be sent
// again after that time.
func (l *Limits) Enter(ctx context.Context, p access.Principal, run bool) (leave func(), after time.Duration) {
	own := l.ownRates(ctx, p.Tenant)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.full(p.Tenant) {
		return nil, retryCrowd
	}
	tenant := l.tenant(p.Tenant, own, now)
	asked := []*rate.Limiter{l.key(p).requests, tenant.requests}
	if run {
		asked = append(asked, tenant.runs)
	}
	if after := take(now, asked); after > 0 {
		return nil, after
	}
	l.under++
	l.tenants[p.Tenant]++
	return sync.OnceFunc(func() { l.leave(p.Tenant) }), 0
}

// full reports whether no more requests of the tenant may be under way.
func (l *Limits) full(tenant string) bool {
	most, platform := l.c.AtOnce, l.tenants[""]
	if tenant == "" {
		return l.under >= most || platform >= max(most/2, 1)
	}
	kept := min((most+7)/8, most-1) // for the platform: a tenant's requests never have these
	return l.under >= most || l.under-platform >= most-kept || l.tenants[tenant] >= max(most/4, 1)
}

func (l *Limits) leave(tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.under--
	if l.tenants[tenant]--; l.tenants[tenant] == 0 {
		delete(l.tenants, tenant)
	}
}

// take takes one from each, or nothing from any, and says when there is something in
// the one that lacks it longest.
func take(now time.Time, from []*rate.Limiter) (after time.Duration) {
	var taken []*rate.Reservation
	for _, f := range from {
		r := f.ReserveN(now, 1)
		taken = append(taken, r)
		if !r.OK() {
			after = max(after, time.Second) // a burst of nothing
			continue
		}
		after = max(after, r.DelayFrom(now))
	}
	if after > 0 {
		for _, r := range taken {
			r.CancelAt(now)
		}
	}
	return after
}

// ownRates asks for the tenant's own rates now and then; nil where it need not.
func (l *Limits) ownRates(ctx context.Context, tenant string) *access.Rates {
	if l.c.Tenant == nil || tenant == "" {
		return nil
	}
	l.mu.Lock()
	if e := l.buckets["t"+tenant]; e != nil && time.Since(e.Value.(*bucket).asked) < ratesHold {
		l.mu.Unlock()
		return nil
	}
	l.mu.Unlock()
	own, err := l.c.Tenant(ctx, tenant)
	if err != nil {
		return nil
	}
	return &own
}

// tenant returns the tenant's bucket, with its own rates where own is not nil.
func (l *Limits) tenant(name string, own *access.Rates, now time.Time) *bucket {
	b, made := l.bucket("t" + name)
	if own == nil && !made {
		return b
	}
	var r access.Rates
	if own != nil {
		r, b.asked = *own, now
	}
	set := func(to **rate.Limiter, perSecond float64, burst, host int) {
		if perSecond == 0 {
			perSecond = float64(host)
		}
		if burst == 0 {
			burst = max(int(2*perSecond), 1)
		}
		if *to == nil {
			*to = rate.NewLimiter(rate.Limit(perSecond), burst)
		} else if (*to).Limit() != rate.Limit(perSecond) || (*to).Burst() != burst {
			(*to).SetLimitAt(now, rate.Limit(perSecond))
			(*to).SetBurstAt(now, burst)
		}
	}
	set(&b.requests, r.Requests, r.Burst, l.c.TenantRate)
	set(&b.runs, r.Runs, r.RunBurst, l.c.RunRate)
	return b
}

// key returns the bucket of the key, or of the person.
func (l *Limits) key(p access.Principal) *bucket {
	name := "k" + p.Key
	if p.Key == "" {
		name = "p" + p.Tenant + "\x00" + p.Actor
	}
	b, made := l.bucket(name)
	if made {
		b.requests = rate.NewLimiter(rate.Limit(l.c.KeyRate), 2*l.c.KeyRate)
	}
	return b
}

// bucket returns the bucket of that name. Where there are too many, the one that was
// not used for the longest goes: it is full again, or whoever drained it waited
// while thousands of others asked.
func (l *Limits) bucket(name string) (b *bucket, made bool) {
	if e := l.buckets[name]; e != nil {
		l.used.MoveToFront(e)
		return e.Value.(*bucket), false
	}
	if len(l.buckets) >= MaxBuckets {
		oldest := l.used.Back()
		delete(l.buckets, l.used.Remove(oldest).(*bucket).name)
	}
	b = &bucket{name: name}
	l.buckets[name] = l.used.PushFront(b)
	return b, true
}
