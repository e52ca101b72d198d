package mcpserver

import (
	"context"
	"slices"
	"time"

	"github.com/tracon-go/tracon/access"
)

// key is what two principals must have in common to share a server.
type key struct {
	tenant, actor, id string
	run               bool
}

type held struct {
	*server
	used     time.Time
	inside   int      // requests that wait for an answer
	sessions []string // by id, the oldest first; some may be over
}

// room reports whether a session may begin. Where the principal has as many as it may,
// its oldest ends; where all have, nobody begins one.
func (h *Handler) room(s *held) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := 0
	for _, other := range h.servers {
		other.forgetEnded()
		all += len(other.sessions)
	}
	if len(s.sessions) >= mostSessions || all >= mostSessionsInAll && len(s.sessions) > 0 {
		oldest := s.sessions[0]
		s.sessions = s.sessions[1:]
		h.done.Go(func() { s.endOne(oldest) })
		return true
	}
	return all < mostSessionsInAll
}

func (h *Handler) began(s *held, session string) {
	if session == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.sessions = append(s.sessions, session)
}

// forgetEnded leaves out the sessions that are over. The caller has the Handler's lock.
func (s *held) forgetEnded() {
	living := map[string]bool{}
	for session := range s.Sessions() {
		living[session.ID()] = true
	}
	s.sessions = slices.DeleteFunc(s.sessions, func(id string) bool { return !living[id] })
}

func (s *held) endOne(id string) {
	for session := range s.Sessions() {
		if session.ID() == id {
			_ = session.Close()
			return
		}
	}
}

// enter returns what p is shown. Waits says that there will be an answer that a
// stopping server lets come.
func (h *Handler) enter(p access.Principal, run, waits bool) *held {
	k := key{p.Tenant, p.Actor, p.Key, run}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.servers[k]
	if s == nil {
		h.makeRoom()
		s = &held{server: newServer(p, run, h.mayRun, h.c.Tools, h.c.Version, h.c.Logger)}
		h.servers[k] = s
	}
	s.used = time.Now()
	if waits {
		s.inside++
	}
	return s
}

func (h *Handler) leave(s *held, waits bool) {
	if !waits {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.inside--; s.inside == 0 && h.retired {
		h.done.Go(s.end)
	}
}

// makeRoom forgets one that nobody uses of the tenant that has the most.
func (h *Handler) makeRoom() {
	if len(h.servers) < maxServers {
		return
	}
	count := map[string]int{}
	most := ""
	for k := range h.servers {
		if count[k.tenant]++; count[k.tenant] > count[most] {
			most = k.tenant
		}
	}
	var oldest key
	var at time.Time
	for k, s := range h.servers {
		if k.tenant == most && s.inside == 0 && (at.IsZero() || s.used.Before(at)) {
			oldest, at = k, s.used
		}
	}
	if s := h.servers[oldest]; s != nil { // else every one waits for an answer, and the limits bound them
		h.done.Go(s.end)
		delete(h.servers, oldest)
	}
}

// look refreshes what connected clients are shown, so that they hear of a grant that was
// made or revoked.
func (h *Handler) look(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range h.connected() {
			s.refresh(ctx)
		}
	}
}

func (h *Handler) connected() (list []*server) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.servers {
		for range s.Sessions() {
			list = append(list, s.server)
			break
		}
	}
	return list
}
