package runs

import (
	"container/list"
	"time"
)

// keep holds what came of an admitted run, and lets go of what is too much then.
// Of a call that was not admitted nothing is kept.
func (r *Runs) keep(n *run) {
	admitted := closed(n.admitted)
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.tenants[n.call.Tenant]
	if !admitted || n.size > r.limits.BytesPerTenant {
		delete(s.runs, n.call.ID)
		r.release(n.call.Tenant)
		return
	}
	n.inAll, n.inTenant = r.kept.PushBack(n), s.kept.PushBack(n)
	s.bytes += n.size
	r.bytes += n.size
	for s.kept.Len() > r.limits.RunsPerTenant || s.bytes > r.limits.BytesPerTenant {
		r.forget(oldest(s.kept))
	}
	for r.kept.Len() > r.limits.Runs || r.bytes > r.limits.Bytes {
		r.forget(oldest(r.greediest().kept))
	}
	if r.timer == nil && r.kept.Len() > 0 {
		r.timer = time.AfterFunc(r.limits.Keep, r.expire)
	}
}

func oldest(l *list.List) *run { return l.Front().Value.(*run) }

// greediest returns the tenant that has the largest part of what is too much, so
// that one who keeps little is not displaced by one who keeps much.
func (r *Runs) greediest() (most *share) {
	more := func(a, b *share) bool { return a.bytes > b.bytes }
	if r.kept.Len() > r.limits.Runs {
		more = func(a, b *share) bool { return a.kept.Len() > b.kept.Len() }
	}
	for _, s := range r.tenants {
		if s.kept.Len() > 0 && (most == nil || more(s, most)) {
			most = s
		}
	}
	return most
}

// forget lets go of a kept run. Who follows it at the moment sees it to its end.
func (r *Runs) forget(n *run) {
	s := r.tenants[n.call.Tenant]
	r.kept.Remove(n.inAll)
	s.kept.Remove(n.inTenant)
	s.bytes -= n.size
	r.bytes -= n.size
	delete(s.runs, n.call.ID)
	r.release(n.call.Tenant)
}

// expire forgets what has been kept long enough, and comes again for the rest.
func (r *Runs) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer = nil
	for r.kept.Len() > 0 {
		n := oldest(r.kept)
		if left := r.limits.Keep - time.Since(n.ended); left > 0 {
			r.timer = time.AfterFunc(left, r.expire)
			return
		}
		r.forget(n)
	}
}

func (r *Runs) forgetAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	for r.kept.Len() > 0 {
		r.forget(oldest(r.kept))
	}
}
