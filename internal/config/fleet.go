package config

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// Fleet is what the executor fleet, and a runner that joins one, are told.
type Fleet struct {
	// Of `tracon serve`, for a server within it.
	Listen        string   // empty: the server is elsewhere, at URLs
	Members       []string // runners that may join: POOL/NAME, a blank, and the public key
	Hosts         []string // other control planes, and operators: POOL, a blank, and the public key
	ClusterListen string   // empty: it is alone
	Routes        []string
	SecretFile    string // absolute

	// Of the control plane.
	Pools     []string // POOL, and its tenants, with blanks between; empty: DefaultPool for all
	Label     string
	Tier      grant.Tier
	TicketKey string // file; empty: none is signed; absolute

	// Of both sides, where the server is elsewhere.
	URLs     []string
	SeedFile string        // absolute
	CAFile   string        // absolute
	Lost     time.Duration // zero: ten seconds

	// Of a runner.
	Join    string // pool; empty: it does not join
	Labels  []string
	Tenants []string // whose runs it takes

	// Within says that this process is the server: `tracon serve` alone sets it.
	Within bool
}

// Defaults of a fleet.
const (
	DefaultFleetListen = "127.0.0.1:4222"
	DefaultPool        = "main"

	leastLost = 2 * time.Second
)

// UseFleet has scripts run by a fleet whose server is within this process.
func (c *Config) UseFleet() {
	c.Executor, c.Fleet.Listen = "fleet", cmp.Or(c.Fleet.Listen, DefaultFleetListen)
}

// FleetPeer is the name that a fleet's control plane has at its runners.
const FleetPeer = "fleet"

// A FleetPool is one of the setting fleet_pools.
type FleetPool struct {
	Name    string
	Tenants []string
	Others  bool // of every tenant that no other pool names
}

// FleetPools returns the pools.
func (f Fleet) FleetPools() []FleetPool {
	if len(f.Pools) == 0 {
		return []FleetPool{{Name: DefaultPool, Others: true}}
	}
	var list []FleetPool
	for _, line := range f.Pools {
		words := strings.Fields(line)
		p := FleetPool{Name: words[0]}
		for _, t := range words[1:] {
			if t == EveryTenant {
				p.Others = true
			} else {
				p.Tenants = append(p.Tenants, t)
			}
		}
		list = append(list, p)
	}
	return list
}

// fleetSettings are the part of the table that a fleet has.
var fleetSettings = []Setting{
	{Key: "fleet_listen", Doc: "`tracon serve`: address at which its NATS server takes runners, such as " + DefaultFleetListen + "; it has TLS by tls_cert; empty: the server is elsewhere",
		set: func(c *Config, s string, _ folder) error {
			c.Fleet.Listen = s
			if s == "" {
				return nil
			}
			return checkAddress(s)
		},
		text: func(c *Config) string { return c.Fleet.Listen }},
	words("fleet_members", "runners that may join that server, each as POOL/NAME, a blank, and the public key that `tracon runner join-key` shows", checkMember, func(c *Config) *[]string { return &c.Fleet.Members }),
	words("fleet_hosts", "other control planes and operators at that server, each as POOL, a blank, and a public key", checkHost, func(c *Config) *[]string { return &c.Fleet.Hosts }),
	text("fleet_cluster_listen", "address at which that server meets the others of its cluster; empty: it is alone", func(c *Config) *string { return &c.Fleet.ClusterListen }),
	words("fleet_routes", "addresses of the others, HOST:PORT", nil, func(c *Config) *[]string { return &c.Fleet.Routes }),
	file("fleet_secret_file", "file with the secret that all of the cluster have, which nobody else may read", func(c *Config) *string { return &c.Fleet.SecretFile }),
	words("fleet_pools", "pools of runners, each as its name and its tenants, with blanks between; * is every tenant that no other pool names; empty: "+DefaultPool+" *", checkPool, func(c *Config) *[]string { return &c.Fleet.Pools }),
	text("fleet_label", "label that a runner must have; empty: any runner of the pool", func(c *Config) *string { return &c.Fleet.Label }),
	{Key: "fleet_tier", Doc: "tier that a runner must stand at, which it claims",
		set: func(c *Config, s string, _ folder) error {
			if c.Fleet.Tier = grant.Tier(s); !c.Fleet.Tier.Valid() {
				return fmt.Errorf("%q is no tier; the tiers are %q", s, grant.Tiers())
			}
			return nil
		},
		text: func(c *Config) string { return string(c.Fleet.Tier) }},
	file("fleet_ticket_key", "file with the private key that signs each run's ticket, which nobody else may read; the runners have its public key as that of "+FleetPeer, func(c *Config) *string { return &c.Fleet.TicketKey }),
	words("fleet_urls", "NATS servers of the fleet, where they are elsewhere: tls://HOST:PORT, or nats://127.0.0.1:PORT", nil, func(c *Config) *[]string { return &c.Fleet.URLs }),
	file("fleet_seed_file", "file with the seed by which this host may speak there, which nobody else may read", func(c *Config) *string { return &c.Fleet.SeedFile }),
	file("fleet_ca_file", "file with the certificates that theirs may be signed by; empty: the system's", func(c *Config) *string { return &c.Fleet.CAFile }),
	{Key: "fleet_lost", Doc: "how long the other side of a run may say nothing before it counts as gone, 2s at least, and the same at both; 0s: 10s",
		set: func(c *Config, s string, _ folder) (err error) {
			if c.Fleet.Lost, err = time.ParseDuration(s); err != nil || c.Fleet.Lost != 0 && c.Fleet.Lost < leastLost {
				return fmt.Errorf("%q is no duration of %s or more, such as 10s", s, leastLost)
			}
			return nil
		},
		text: func(c *Config) string { return c.Fleet.Lost.String() }},
	text("fleet_join", "`tracon runner serve`: pool that it joins; empty: none", func(c *Config) *string { return &c.Fleet.Join }),
	words("fleet_labels", "labels that it has", nil, func(c *Config) *[]string { return &c.Fleet.Labels }),
	words("fleet_tenants", "tenants whose runs it takes from the fleet; * is all of them; empty: nobody's", nil, func(c *Config) *[]string { return &c.Fleet.Tenants }),
}

// words is a setting of a list of texts, each of which check may refuse.
func words(key, doc string, check func(string) error, field func(*Config) *[]string) Setting {
	return Setting{Key: key, Doc: doc, list: true,
		set: func(c *Config, s string, _ folder) error {
			*field(c) = nil
			for one := range strings.SplitSeq(s, ",") {
				if one == "" {
					continue
				}
				if check != nil {
					if err := check(one); err != nil {
						return err
					}
				}
				*field(c) = append(*field(c), one)
			}
			return nil
		},
		text: func(c *Config) string { return strings.Join(*field(c), ",") }}
}

func checkMember(s string) error {
	name, key, ok := strings.Cut(s, " ")
	pool, runner, two := strings.Cut(name, "/")
	if !ok || !two || pool == "" || runner == "" || strings.TrimSpace(key) == "" {
		return fmt.Errorf("%q is no runner; write one as POOL/NAME, a blank, and its public key", s)
	}
	return nil
}

func checkHost(s string) error {
	if len(strings.Fields(s)) != 2 {
		return fmt.Errorf("%q is no host; write one as POOL, a blank, and its public key", s)
	}
	return nil
}

func checkPool(s string) error {
	fields := strings.Fields(s)
	if len(fields) < 2 {
		return fmt.Errorf("%q is no pool; write one as its name and its tenants, with blanks between, or *", s)
	}
	for _, t := range fields[1:] {
		if t != EveryTenant {
			if err := gate.CheckTenant(t); err != nil {
				return err
			}
		}
	}
	return nil
}
