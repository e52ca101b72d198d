package daemon

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/broker"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/internal/ownfile"
	"github.com/tracon-go/tracon/wire"
	"github.com/tracon-go/tracon/wire/ticket"
)

// A fleetExecutor is the executor with the server that it may have brought.
type fleetExecutor struct {
	*fleet.Executor
	leave func() // lets go of the server; nil: there is none
}

// Close ends the links, and the server where nobody else of this process needs it.
func (e *fleetExecutor) Close() error {
	err := e.Executor.Close()
	if e.leave != nil {
		e.leave()
	}
	return err
}

// openFleet opens the executor that the settings fleet… tell of. No runner needs to be
// there yet.
func openFleet(c *config.Config, logger *slog.Logger) (_ *fleetExecutor, err error) {
	f := c.Fleet
	e := &fleetExecutor{}
	var server *broker.Server
	if f.Within && f.Listen != "" {
		if server, e.leave, err = servers.enter(c, logger); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				e.leave()
			}
		}()
	}
	out := fleet.Config{Tier: f.Tier, Lost: f.Lost, Logger: logger}
	if out.Sign, err = fleetSigner(f.TicketKey); err != nil {
		return nil, fmt.Errorf("fleet_ticket_key: %w", err)
	}
	link, err := fleetLink(f, server)
	if err != nil {
		return nil, err
	}
	for _, p := range f.FleetPools() {
		l := link
		if server != nil {
			l.Seed = server.Host(p.Name)
		}
		out.Pools = append(out.Pools, fleet.Pool{Name: p.Name, Label: f.Label, Tenants: p.Tenants, Others: p.Others, Link: l})
	}
	e.Executor, err = fleet.New(out)
	return e, err
}

// fleetLink is the link to the servers that the settings name, or to that of this process.
func fleetLink(f config.Fleet, server *broker.Server) (fleet.Link, error) {
	if server != nil {
		return fleet.Link{Within: server}, nil
	}
	if len(f.URLs) == 0 || f.SeedFile == "" {
		return fleet.Link{}, errors.New("there is no server to speak to: set fleet_urls and fleet_seed_file; fleet_listen alone holds within `tracon serve`")
	}
	seed, err := fleet.ReadSeed(f.SeedFile)
	if err != nil {
		return fleet.Link{}, fmt.Errorf("fleet_seed_file: %w", err)
	}
	cas, err := fleet.LoadCAs(f.CAFile)
	if err != nil {
		return fleet.Link{}, fmt.Errorf("fleet_ca_file: %w", err)
	}
	return fleet.Link{URLs: f.URLs, Seed: seed, CAs: cas}, nil
}

func fleetTicketKey(path string) (ed25519.PrivateKey, error) {
	text, err := ownfile.ReadPrivate(path, 64<<10)
	if err != nil {
		return nil, err
	}
	return ticket.ReadPrivateKey(text)
}

// fleetSigner signs tickets with the key of the file; nil where there is none.
func fleetSigner(path string) (func(wire.Run, string) (string, error), error) {
	if path == "" {
		return nil, nil
	}
	key, err := fleetTicketKey(path)
	if err != nil {
		return nil, err
	}
	s, err := ticket.NewSigner(key)
	if err != nil {
		return nil, err
	}
	return func(run wire.Run, runner string) (string, error) {
		request, err := run.Commitment()
		if err != nil {
			return "", err
		}
		digest, err := run.More.Digest()
		if err != nil {
			return "", err
		}
		return s.Sign(ticket.Terms{Runner: runner, Tenant: run.Tenant, Run: run.More.ID, Digest: digest, Request: request})
	}, nil
}

// servers is the NATS server of this process. The houses before and after a reload
// share it, as an address can be listened at once.
var servers sharedServer

type sharedServer struct {
	mu     sync.Mutex
	server *broker.Server
	as     fleetServer
	users  int
}

// fleetServer is what the server was told, to see that it has changed.
type fleetServer struct {
	fleet     config.Fleet
	cert, key string
}

func (s *sharedServer) enter(c *config.Config, logger *slog.Logger) (*broker.Server, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	as := fleetServer{c.Fleet, c.Serve.TLSCert, c.Serve.TLSKey}
	if s.users > 0 && !reflect.DeepEqual(s.as, as) {
		return nil, nil, errors.New("the settings of the fleet have changed while its server runs: stop `tracon serve`, and start it again")
	}
	if s.users == 0 {
		b, err := brokerConfig(c, logger)
		if err != nil {
			return nil, nil, err
		}
		if s.server, err = broker.Start(b); err != nil {
			return nil, nil, err
		}
		s.as = as
		logger.Info("runners may join", "address", s.server.Address(), "cluster", s.server.ClusterAddress())
	}
	s.users++
	return s.server, sync.OnceFunc(s.leave), nil
}

func (s *sharedServer) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		s.server.Close()
		s.server = nil
	}
}

// brokerConfig is what the server within this process is told.
func brokerConfig(c *config.Config, logger *slog.Logger) (broker.Config, error) {
	f := c.Fleet
	host, err := os.Hostname()
	if err != nil {
		return broker.Config{}, err
	}
	b := broker.Config{Name: host + "-" + id.New(), Listen: f.Listen, Logger: logger}
	if c.Serve.TLSCert != "" {
		cert, err := loadCertificate(c.Serve)
		if err != nil {
			return b, err
		}
		b.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12}
	}
	for _, p := range f.FleetPools() {
		bp := broker.Pool{Name: p.Name}
		bp.HostHear, bp.HostSay = fleet.HostSubjects(p.Name)
		for _, line := range f.Members {
			name, key, _ := strings.Cut(line, " ")
			pool, runner, _ := strings.Cut(name, "/")
			if pool == p.Name {
				m := broker.Member{Name: runner, Key: strings.TrimSpace(key)}
				m.Hear, m.Say = fleet.RunnerSubjects(pool, runner)
				bp.Members = append(bp.Members, m)
			}
		}
		for _, line := range f.Hosts {
			if words := strings.Fields(line); words[0] == p.Name {
				bp.Hosts = append(bp.Hosts, broker.Member{Name: "host", Key: words[1]})
			}
		}
		b.Pools = append(b.Pools, bp)
	}
	if f.ClusterListen == "" {
		return b, nil
	}
	secret, err := ownfile.ReadPrivate(f.SecretFile, 1<<10)
	if err != nil {
		return b, fmt.Errorf("fleet_secret_file: %w", err)
	}
	b.Cluster = broker.Cluster{Listen: f.ClusterListen, Routes: f.Routes, Secret: strings.TrimSpace(string(secret))}
	if b.TLS != nil {
		// The servers of a cluster prove themselves to each other.
		cas, err := fleet.LoadCAs(f.CAFile)
		if err != nil {
			return b, fmt.Errorf("fleet_ca_file: %w", err)
		}
		b.Cluster.TLS = mutual(b.TLS, cas)
	}
	return b, nil
}

func mutual(c *tls.Config, cas *x509.CertPool) *tls.Config {
	c = c.Clone()
	c.RootCAs, c.ClientCAs, c.ClientAuth = cas, cas, tls.RequireAndVerifyClientCert
	return c
}

// checkFleet says what of the settings fleet… cannot hold together, for a server.
func checkFleet(u *UnsafeError, c *config.Config, _ time.Time) {
	f := c.Fleet
	if c.Executor != fleet.Name {
		if f.Listen != "" {
			u.add("fleet_listen is set, and the executor is %s: set executor: %s, or take it away.", c.Executor, fleet.Name)
		}
		return
	}
	if f.Listen != "" && !local(f.Listen) && c.Serve.TLSCert == "" {
		u.add("fleet_listen is %s, which other machines reach, and there is no TLS: set tls_cert and tls_key.", f.Listen)
	}
	pools := f.FleetPools()
	named := func(name string) bool {
		return slices.ContainsFunc(pools, func(p config.FleetPool) bool { return p.Name == name })
	}
	for _, line := range slices.Concat(f.Members, f.Hosts) {
		name, _, _ := strings.Cut(strings.Fields(line)[0], "/")
		if !named(name) {
			u.add("fleet_members or fleet_hosts names the pool %q, which fleet_pools has not.", name)
		}
	}
	if f.TicketKey == "" {
		u.add("fleet_ticket_key is not set, and runners of a fleet take no run without a ticket: name a key, such as `openssl genpkey -algorithm ed25519` writes.")
	}
}

// checkJoin says what of a runner's settings cannot hold in a fleet.
func checkJoin(u *UnsafeError, c *config.Config, _ time.Time) {
	f, r := c.Fleet, c.Runner
	if f.Join == "" {
		return
	}
	if len(f.URLs) == 0 || f.SeedFile == "" {
		u.add("fleet_join is %s, and it is not known where: set fleet_urls and fleet_seed_file.", f.Join)
	}
	if !r.Tickets || r.TicketKeys[config.FleetPeer] == "" {
		u.add("fleet_join is %s, where nobody but the ticket says who asks: set runner_tickets: true, and in runner_ticket_keys %s.", f.Join, config.FleetPeer)
	}
	if err := config.CheckTenants(f.Tenants); err != nil {
		u.add("fleet_tenants cannot be used: %v.", err)
	}
}

// joinFleet has the runner take runs of its pool, until the member is closed.
func joinFleet(ctx context.Context, p *runnerPlan, s *runnerServer) (*fleet.Member, error) {
	c, service, logger := p.c, s.service, s.o.Logger
	info, err := service.Info(ctx)
	if err != nil {
		return nil, err
	}
	peer := peerOf(config.FleetPeer, c.Fleet.Tenants)
	return fleet.Join(fleet.Joining{
		Link: p.link, Pool: c.Fleet.Join, Name: c.Runner.Name, Tier: grant.Tier(info.Tier), Labels: c.Fleet.Labels, Lost: c.Fleet.Lost, Logger: logger,
		Runtimes: slices.Sorted(maps.Keys(p.reception.Runtimes)), Content: p.reception.OrDefaults().Content, After: s.started.Add(ticket.Skew),
		Info: func(ctx context.Context) (wire.Info, error) {
			i, err := service.Info(ctx)
			i.TicketKeys = s.tickets.Fingerprints(peer.Name)
			return i, err
		},
		Explain: func(run wire.Run, err error) wire.Problem {
			p := service.Problem(run, err)
			logger.Warn("a delivered run has no answer", "peer", peer.Name, "code", p.Code, "run", p.ID, "notStarted", p.NotStarted, "err", err)
			return p
		},
		Work: func(ctx context.Context, run wire.Run, closure bundle.Bundle, show func(wire.Output)) (wire.Answer, error) {
			return service.Run(ctx, peer, run, closure, show)
		},
	})
}

// Fleet opens the links to the fleet's runners, to look at them. Close it.
func Fleet(c *config.Config, logger *slog.Logger) (*fleet.Executor, error) {
	e, err := openFleet(c, logger)
	if err != nil {
		return nil, err
	}
	return e.Executor, nil
}

// NewFleetSeed makes the seed of a key for a fleet, and its public half.
func NewFleetSeed() (seed []byte, public string, err error) { return fleet.NewSeed() }
