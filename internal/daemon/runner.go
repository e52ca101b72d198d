package daemon

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/internal/ownfile"
	"github.com/tracon-go/tracon/internal/telemetry"
	"github.com/tracon-go/tracon/observe"
	"github.com/tracon-go/tracon/serve/httpapi"
	"github.com/tracon-go/tracon/serve/limit"
	"github.com/tracon-go/tracon/serve/runnerapi"
	"github.com/tracon-go/tracon/wire/ticket"
)

// ServeRunner serves a runner service until ctx is done, and then stops as it should:
// it takes no more runs, waits for those under way as long as the configuration says,
// stops the others, at once where it is told again, and returns when the ending of each
// is written.
//
// # Errors
//
// *UnsafeError, ErrServing, and what kept it from starting; after that, only that
// something could not be written at the end, and ErrHurried.
func ServeRunner(ctx context.Context, c *config.Config, o RunnerOptions) (err error) {
	if err := checkRunner(c, time.Now(), false); err != nil {
		return err
	}
	if err := ownfile.MakeFolder(c.Data); err != nil {
		return fmt.Errorf("the data folder: %w; make it, or name another with --data", err)
	}
	lock, err := ownfile.TakeSigned(ctx, filepath.Join(c.Data, lockFile))
	if err != nil {
		return fmt.Errorf("the data folder: %w", err)
	}
	if lock == nil {
		return ErrServing
	}
	defer func() {
		if !errors.Is(err, ErrHurried) { // else the house is open still: the end of the process gives it back
			err = errors.Join(err, lock.Close())
		}
	}()
	tel, err := telemetry.New(ctx, telemetry.Config{Version: o.Version, Instance: id.New(), Traces: c.Serve.Traces, Share: c.Serve.TracesShare, Logger: o.Logger})
	if err != nil {
		return err
	}
	defer func() {
		words, stop := context.WithTimeout(context.Background(), lastWords)
		defer stop()
		_ = tel.Close(words) // a collector that is gone is told in the log
	}()
	observer, err := observe.New(observe.Config{Traces: tel.Traces, Metrics: tel.Metrics, Names: c.Serve.MetricNames})
	if err != nil {
		return err
	}
	h, err := Open(ctx, c, o.Logger)
	if err != nil {
		return err
	}
	defer func() {
		if !errors.Is(err, ErrHurried) {
			err = errors.Join(err, h.Close(context.WithoutCancel(ctx)))
		}
	}()
	h.Observer = observer
	h.Log.Watch(observer.Append)
	return h.serveRunner(ctx, observer, tel.Handler(), o)
}

// serveRunner opens the runner's one door.
func (h *House) serveRunner(ctx context.Context, observer *observe.Observer, metrics http.Handler, o RunnerOptions) error {
	c := h.Config
	s := &runnerServer{h: h, o: o, notify: newNotify()}
	s.life, s.endLife = context.WithCancel(context.Background())
	defer s.endLife()
	plan, err := s.prepare(ctx, c)
	if err != nil {
		return err
	}
	if s.tickets, err = ticket.NewVerifier(c.Runner.Name, plan.keys); err != nil {
		return err
	}
	s.started = time.Now() // not before the verifier was made: see joinFleet
	s.now.Store(plan)
	h.Gate = gate.NewReceiver(s, s.tickets, h.Log, h.id)
	runner, err := h.Start(ctx)
	if err != nil {
		return err
	}
	if err := s.warnOfWalls(ctx); err != nil {
		return err
	}
	if _, err := observer.Watch(observe.State{Stats: runner.Stats, Ready: runner.Ready}); err != nil {
		return err
	}
	s.service, err = runnerapi.New(runnerapi.Config{
		Name: c.Runner.Name, Runner: runner, Receptions: s, Metrics: metrics, Logger: o.Logger, Limiter: s, TicketKeys: s.tickets.Fingerprints,
		Peers: &runnerPeers{data: c.Data, clients: s.clients, failures: limit.NewFailures(o.Logger)},
	})
	if err != nil {
		return err
	}
	l, err := listen("runner_listen", c.Runner.Listen)
	if err != nil {
		return err
	}
	srv := limit.Server(httpapi.Door(o.Logger, s.service.Handler()), o.Logger)
	scheme, serve := "http", func() error { return srv.Serve(l) }
	if plan.tls != nil {
		scheme, serve = "https", func() error { return srv.ServeTLS(l, "", "") }
		srv.TLSConfig = s.serverTLS()
	}
	l = limit.Listener(l, c.Serve.Connections, c.Serve.ConnectionsPerPeer)
	if err := o.Started(scheme + "://" + l.Addr().String()); err != nil {
		return errors.Join(err, l.Close())
	}
	if err := s.join(ctx, plan); err != nil {
		return errors.Join(err, l.Close())
	}
	s.notify.tell("READY=1")
	o.Logger.Info("the runner serves", "name", c.Runner.Name, "address", l.Addr().String(), "runtimes", slices.Sorted(maps.Keys(plan.reception.Runtimes)), "version", o.Version)
	failed := make(chan error, 1)
	go func() { failed <- serve() }()
	err = s.look(ctx, failed)
	s.notify.tell("STOPPING=1")
	return errors.Join(err, s.stop(runner, srv))
}

// warnOfWalls says which walls are asked for and do not stand. The runner serves all the
// same: it refuses each run, and says why to whoever asks.
func (s *runnerServer) warnOfWalls(ctx context.Context) error {
	p, err := s.h.Posture(ctx)
	if err != nil {
		return err
	}
	for _, name := range s.h.Config.RequireWalls {
		i := slices.IndexFunc(p.Walls, func(w executor.Wall) bool { return w.Name == name })
		switch {
		case i < 0:
			s.o.Logger.Warn("every run is refused: require_walls names a wall that the executor has not", "wall", name, "executor", p.Executor)
		case !p.Walls[i].Stands:
			s.o.Logger.Warn("every run is refused: a wall that require_walls names does not stand here", "wall", name, "proof", p.Walls[i].Proof, "remedy", p.Walls[i].Remedy)
		}
	}
	return nil
}

// stop drains: who asks meanwhile is told so, and those under way get their answers. When
// somebody is in a hurry, they are stopped at once, and their endings have a time.
func (s *runnerServer) stop(runner *tracon.Runner, srv *http.Server) error {
	drain := cmp.Or(s.now.Load().c.Serve.Drain, DefaultDrain)
	s.o.Logger.Info("the runner drains", "drain", drain.String())
	s.service.Drain()
	until, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.end(until, runner, srv) }()
	select {
	case err := <-ended:
		return err
	case <-s.o.Hurry:
	}
	s.o.Logger.Warn("told again to stop; runs are stopped now", "wait", hurryTime.String())
	cancel()
	select {
	case err := <-ended:
		return err
	case <-time.After(hurryTime):
		return ErrHurried
	}
}

// end waits for the runs, and stops those that go on when until is done.
func (s *runnerServer) end(until context.Context, runner *tracon.Runner, srv *http.Server) error {
	member := s.now.Load().member
	if member != nil {
		member.Drain()
	}
	err := runner.Close(until)
	if member != nil {
		err = errors.Join(err, member.Close(until)) // the ends are written; whoever waits for them is told
	}
	s.endLife()
	s.retiring.Wait()
	words, silence := context.WithTimeout(context.Background(), lastWords)
	defer silence()
	if srv.Shutdown(words) != nil {
		_ = srv.Close()
	}
	if err == nil {
		s.o.Logger.Info("the runner has stopped")
	}
	return err
}

// reception is what c lets others have run here. A runtime that is not there is an error.
func (h *House) reception(ctx context.Context, c *config.Config) (gate.Reception, error) {
	kept, err := h.Store.Host(ctx)
	if err != nil {
		return gate.Reception{}, err
	}
	r := gate.Reception{
		Enabled: c.Enabled, Runtimes: map[string]gate.Runtime{}, RequireWalls: c.RequireWalls, TrustClaimed: c.TrustClaimed, RequireTicket: c.Runner.Tickets,
		Network: c.Network, Content: c.Content, Timeout: c.Runner.MaxTimeout, MaxOutput: int(c.Runner.MaxOutput), Memory: c.Runner.MaxMemory, Processes: c.Runner.MaxProcesses,
	}
	for _, name := range slices.Sorted(maps.Keys(c.Runner.Runtimes)) {
		ext, _ := config.RuntimeExtension(name) // the configuration was read with it
		in, err := probe(ctx, ext, c.Runner.Runtimes[name], kept.Runtimes, h.Images, usable(h.Config))
		if err != nil {
			return gate.Reception{}, fmt.Errorf("the runtime %s: %w", name, err)
		}
		r.Runtimes[name] = gate.Runtime{Interpreter: in, Extension: ext}
	}
	return r, r.Validate()
}

// ticketKeys are those that sign tickets, by the peer's name.
type ticketKeys = map[string][]ed25519.PublicKey

// readTicketKeys reads them; there may be none, and then no ticket holds.
func readTicketKeys(c *config.Config) (ticketKeys, error) {
	keys := ticketKeys{}
	for name, path := range c.Runner.TicketKeys {
		text, err := ownfile.Read(path, 64<<10)
		if err != nil {
			return nil, fmt.Errorf("the keys of tickets of %s: %w", name, err)
		}
		if keys[name], err = ticket.ReadPublicKeys(text); err != nil {
			return nil, fmt.Errorf("the keys of tickets of %s: %w", name, err)
		}
	}
	return keys, nil
}

// runnerTLS is how the runner proves itself, and whom it asks for a certificate.
func runnerTLS(c *config.Config) (*tls.Config, error) {
	cert, err := loadCertificate(c.Serve)
	if err != nil {
		return nil, err
	}
	t := &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12}
	if c.Runner.ClientCA == "" {
		return t, nil
	}
	text, err := os.ReadFile(c.Runner.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("runner_client_ca: %w", err)
	}
	t.ClientCAs, t.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !t.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("runner_client_ca, %s, holds no certificate in PEM", c.Runner.ClientCA)
	}
	return t, nil
}

// runnerPeers says who sends a request, by its key or its client certificate. The keys
// are read at each, so that one that was revoked lets nobody in any more.
type runnerPeers struct {
	data     string
	keys     parsedKeys
	clients  func() map[string][]string
	failures *limit.Failures
}

// Peer implements [runnerapi.Peers].
func (p *runnerPeers) Peer(r *http.Request) (gate.Peer, string, error) {
	if len(r.Header.Values("Authorization")) == 0 {
		return p.certificate(r)
	}
	token, _ := httpapi.Bearer(r)
	secret, err := access.ParseSecret(token)
	formed := err == nil
	release, after := p.failures.Check(r.RemoteAddr, token, formed)
	if after > 0 {
		return gate.Peer{}, "", &tracon.BusyError{RetryAfter: after}
	}
	defer release()
	if formed {
		keys, err := p.keys.read(p.data)
		if err != nil {
			return gate.Peer{}, "", err
		}
		for _, k := range keys {
			hash, err := access.ParseHash(k.Hash)
			if k.ID == secret.ID() && err == nil && hash.Equal(secret.Hash()) && k.InForce(time.Now()) {
				p.failures.Held(token)
				return k.Peer(), k.ID, nil
			}
		}
	}
	p.failures.Failed(r.RemoteAddr, token, formed)
	return gate.Peer{}, "", runnerapi.ErrStranger
}

// certificate is whom a verified client certificate is of, by the first of its DNS
// names that the configuration has.
func (p *runnerPeers) certificate(r *http.Request) (gate.Peer, string, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return gate.Peer{}, "", runnerapi.ErrStranger
	}
	// The handshake looked at the times, and a connection may stay open for longer.
	now := time.Now()
	for _, c := range r.TLS.VerifiedChains[0] {
		if now.After(c.NotAfter) {
			return gate.Peer{}, "", runnerapi.ErrStranger
		}
	}
	for _, name := range r.TLS.VerifiedChains[0][0].DNSNames {
		if tenants, ok := p.clients()[name]; ok {
			return peerOf(name, tenants), "certificate " + name, nil
		}
	}
	return gate.Peer{}, "", runnerapi.ErrStranger
}

// checkRunner says everything at once that c must not say for a runner, or nil. One that
// serves already may be switched off.
func checkRunner(c *config.Config, now time.Time, serves bool) error {
	u := &UnsafeError{}
	r, secure := c.Runner, c.Serve.TLSCert != ""
	if _, _, err := net.SplitHostPort(r.Listen); err != nil {
		u.add("runner_listen is %q, which is no address: write one such as %s.", r.Listen, config.DefaultRunnerListen)
	} else if !local(r.Listen) && !secure && !c.Serve.InsecurePlaintext {
		u.add("runner_listen is %s, which other machines reach, and there is no TLS: set tls_cert and tls_key, or listen at 127.0.0.1 behind a proxy; insecure_plaintext: true lets keys and scripts travel for everybody to read and change.", r.Listen)
	}
	if err := grant.CheckName("runner", r.Name); err != nil {
		u.add("runner_name cannot be used: %v.", err)
	}
	if !c.Enabled && !serves {
		u.add("enabled is false, so that nothing would run: set enabled: true.")
	}
	if len(r.Runtimes) == 0 {
		u.add("runtimes is empty, so that nothing would run: name some, such as python-3.12: /usr/bin/python3.")
	}
	if (r.ClientCA == "") != (len(r.Clients) == 0) {
		u.add("of runner_client_ca and runner_clients one is set: set both, or none.")
	}
	if _, ok := r.Clients[config.FleetPeer]; ok {
		u.add("runner_clients has %s, which is the name of the fleet's control plane: have the certificate name another.", config.FleetPeer)
	}
	if r.ClientCA != "" && !secure {
		u.add("runner_client_ca is set, and there is no TLS: set tls_cert and tls_key.")
	}
	if r.Tickets && len(r.TicketKeys) == 0 {
		u.add("runner_tickets is true, and nobody's keys are known: set runner_ticket_keys.")
	}
	for _, check := range []func(*UnsafeError, *config.Config, time.Time){checkTLS, checkRooms, checkJoin} {
		check(u, c, now)
	}
	if len(u.Problems) == 0 {
		return nil
	}
	return u
}
