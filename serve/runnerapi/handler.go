package runnerapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/wire"
)

// Times in which a request's body must have come: a start, and a rate.
const (
	BodyTime = 10 * time.Second
	BodyRate = 256 << 10 // bytes a second, at least
)

// Handler returns the service's HTTP. Whoever serves it bounds connections and
// headers: see package limit.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /runs", s.known(true, s.postRun))
	mux.HandleFunc("PUT /bundles/{digest}", s.known(false, s.putBundle))
	mux.HandleFunc("HEAD /bundles/{digest}", s.known(false, s.headBundle))
	mux.HandleFunc("GET /info", s.known(false, s.getInfo))
	mux.HandleFunc("GET /metrics", s.known(false, s.getMetrics))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { send(w, http.StatusOK, []byte(`{"status":"ok"}`+"\n")) })
	mux.HandleFunc("GET /readyz", s.getReady)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, wire.Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "there is POST runs, PUT and HEAD bundles/{digest}, GET info, healthz and readyz", NotStarted: true})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Header.Get("Origin") != "" { // no page of a browser has business here
			refuse(w, wire.Problem{Status: http.StatusForbidden, Code: "forbidden", Detail: "requests of web pages are not taken", NotStarted: true})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// known lets in whom the credential names, as often as the limits say.
func (s *Service) known(run bool, next func(http.ResponseWriter, *http.Request, gate.Peer)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		peer, credential, err := s.c.Peers.Peer(r)
		if err != nil {
			if !errors.Is(err, ErrStranger) && !errors.Is(err, tracon.ErrBusy) {
				s.c.Logger.Error("who asks could not be found out", "err", err)
			}
			refuse(w, s.Problem(wire.Run{}, err))
			return
		}
		leave, after := s.c.Limiter.Enter(r.Context(), access.Principal{Tenant: peer.Name, Actor: peer.Name, Key: credential}, run)
		if leave == nil {
			refuse(w, s.Problem(wire.Run{}, &tracon.BusyError{RetryAfter: after}))
			return
		}
		defer leave()
		peer.Still = func(ctx context.Context) error { return s.still(r.WithContext(ctx), peer.Name) }
		next(w, r, peer)
	}
}

// still says whether r's credential lets the peer in yet (T11).
func (s *Service) still(r *http.Request, name string) error {
	now, _, err := s.c.Peers.Peer(r)
	if errors.Is(err, ErrStranger) || err == nil && now.Name != name {
		return fmt.Errorf("%w: the peer's credential lets it in no more", gate.ErrDenied)
	}
	return err
}

// body reads the request's body with read, within the peer's share and in time. The
// share is kept until leave is called. A body counts as it comes: what is announced
// takes nothing yet, and many clients announce nothing.
func (s *Service) body(w http.ResponseWriter, r *http.Request, peer gate.Peer, most int64, read func(io.Reader) error) (leave func(), err error) {
	if r.ContentLength > most {
		return nil, fmt.Errorf("%w: more than %d bytes", wire.ErrTooLarge, most)
	}
	m := &metered{body: r.Body, budget: s.bodies, peer: peer.Name, control: http.NewResponseController(w), since: time.Now()}
	m.hurry()
	err = read(m)
	_ = m.control.SetReadDeadline(time.Time{}) // a caller who hangs up is seen by reading on
	leave = sync.OnceFunc(func() { s.bodies.give(peer.Name, m.came) })
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// metered takes what it reads from the peer's share, and gives a slow sender the time
// of [BodyTime] and [BodyRate].
type metered struct {
	body    io.Reader
	budget  *budget
	peer    string
	control *http.ResponseController
	since   time.Time
	came    int64
}

func (m *metered) hurry() {
	// A writer that knows no deadlines is one of a test: its body is there already.
	_ = m.control.SetReadDeadline(m.since.Add(BodyTime + time.Duration(m.came)*time.Second/BodyRate))
}

// Read implements io.Reader.
func (m *metered) Read(b []byte) (int, error) {
	n, err := m.body.Read(b)
	if n == 0 {
		return 0, err
	}
	if err := m.budget.take(m.peer, int64(n)); err != nil {
		return 0, err
	}
	m.came += int64(n)
	m.hurry()
	return n, err
}

func (s *Service) postRun(w http.ResponseWriter, r *http.Request, peer gate.Peer) {
	if s.Draining() { // before anything is read
		refuse(w, s.Problem(wire.Run{}, ErrDraining))
		return
	}
	var run wire.Run
	leave, err := s.body(w, r, peer, wire.MaxRun, func(body io.Reader) (err error) {
		run, err = wire.ReadRun(body, wire.MaxRun)
		return err
	})
	if err != nil {
		refuse(w, s.reading(err))
		return
	}
	defer leave()
	s.answer(w, r, peer, run)
}

// reading is the problem of a body that could not be read.
func (s *Service) reading(err error) wire.Problem {
	switch _, busy := errors.AsType[*tracon.BusyError](err); {
	case busy, errors.Is(err, wire.ErrTooLarge), errors.Is(err, wire.ErrMalformed), errors.Is(err, bundle.ErrContent):
		if errors.Is(err, bundle.ErrContent) {
			return wire.Problem{Status: http.StatusUnprocessableEntity, Code: string(gate.ContentGate), Detail: err.Error(), NotStarted: true}
		}
		return s.Problem(wire.Run{}, err)
	}
	return wire.Problem{Status: http.StatusRequestTimeout, Code: "malformed", Detail: "the body did not come, or not in time", NotStarted: true}
}

func (s *Service) putBundle(w http.ResponseWriter, r *http.Request, peer gate.Peer) {
	want, err := bundle.ParseDigest(r.PathValue("digest"))
	if err != nil {
		refuse(w, wire.Problem{Status: http.StatusBadRequest, Code: "malformed", Detail: "the digest is sha256: and 64 hex digits", NotStarted: true})
		return
	}
	if s.Draining() {
		refuse(w, s.Problem(wire.Run{}, ErrDraining))
		return
	}
	reception, err := s.c.Receptions.Reception(r.Context())
	if err != nil || !reception.Enabled {
		refuse(w, wire.Problem{Status: http.StatusForbidden, Code: string(gate.SwitchGate), Detail: "the runner is off", NotStarted: true})
		return
	}
	var b bundle.Bundle
	leave, err := s.body(w, r, peer, wire.MaxClosure, func(body io.Reader) error {
		c, err := wire.ReadClosure(body, wire.MaxClosure)
		if err != nil {
			return err
		}
		b, err = c.Bundle(reception.OrDefaults().Content)
		return err
	})
	if err != nil {
		refuse(w, s.reading(err))
		return
	}
	defer leave()
	if b.Digest() != want {
		refuse(w, wire.Problem{Status: http.StatusUnprocessableEntity, Code: string(gate.PinGate), Detail: "the bytes are not those of the digest", NotStarted: true})
		return
	}
	if err := s.Keep(peer, b); err != nil {
		refuse(w, s.reading(err))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Service) headBundle(w http.ResponseWriter, r *http.Request, peer gate.Peer) {
	d, err := bundle.ParseDigest(r.PathValue("digest"))
	if err != nil || !s.Kept(peer, d) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Service) getInfo(w http.ResponseWriter, r *http.Request, peer gate.Peer) {
	i, err := s.Info(r.Context())
	if err != nil {
		s.c.Logger.Error("the runner cannot tell of itself", "err", err)
		refuse(w, s.Problem(wire.Run{}, err))
		return
	}
	if s.c.TicketKeys != nil {
		i.TicketKeys = s.c.TicketKeys(peer.Name)
	}
	b, err := i.Encode()
	if err != nil {
		refuse(w, s.Problem(wire.Run{}, err))
		return
	}
	send(w, http.StatusOK, b)
}

func (s *Service) getMetrics(w http.ResponseWriter, r *http.Request, peer gate.Peer) {
	if s.c.Metrics == nil || !peer.AllTenants {
		refuse(w, wire.Problem{Status: http.StatusForbidden, Code: "forbidden", Detail: "metrics take a key for all tenants", NotStarted: true})
		return
	}
	s.c.Metrics.ServeHTTP(w, r)
}

func (s *Service) getReady(w http.ResponseWriter, r *http.Request) {
	err := s.c.Runner.Ready(r.Context())
	if err == nil && s.Draining() {
		err = ErrDraining
	}
	if err == nil {
		send(w, http.StatusOK, []byte(`{"status":"ready"}`+"\n"))
		return
	}
	// Why stands in the log of whoever runs this, not before everybody.
	send(w, http.StatusServiceUnavailable, []byte(`{"status":"not ready"}`+"\n"))
}

func send(w http.ResponseWriter, status int, b []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // who does not listen hears nothing
}

func refuse(w http.ResponseWriter, p wire.Problem) {
	b, err := p.Encode()
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if p.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.RetryAfterSeconds))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(b)
}
