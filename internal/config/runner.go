package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/gate"
)

// Defaults of `tracon runner serve`.
const (
	DefaultRunnerListen = "127.0.0.1:8788"
	DefaultRunnerName   = "runner"
)

// Runner is what `tracon runner serve` is told, besides what every server is.
type Runner struct {
	Listen   string
	Name     string
	Runtimes map[string]string // a runtime's name to an interpreter, as in Config.Interpreters

	MaxTimeout           time.Duration // zero: the defaults of gate.Reception
	MaxOutput, MaxMemory int64
	MaxProcesses         int

	ClientCA   string              // file; empty: no client certificates; absolute
	Clients    map[string][]string // a certificate's name to the tenants that it may ask for
	Tickets    bool                // each run has a ticket
	TicketKeys map[string]string   // a peer's name to the file with the keys that sign its tickets; absolute
}

// EveryTenant stands for all tenants in a list of them.
const EveryTenant = "*"

// runtimeKinds tells the extension of a runtime's scripts by how its name begins.
var runtimeKinds = map[string]string{"python": "py", "node": "js", "sh": "sh", "bash": "sh", "ruby": "rb", "perl": "pl", "deno": "ts", "bun": "ts"}

// RuntimeExtension returns the extension of the scripts of a runtime such as
// "python-3.12", and false where its name does not begin as one that is known.
func RuntimeExtension(name string) (string, bool) {
	kind, _, _ := strings.Cut(name, "-")
	ext, ok := runtimeKinds[kind]
	return ext, ok
}

// runnerSettings are the part of the table that `tracon runner serve` alone reads.
var runnerSettings = []Setting{
	{Key: "runner_listen", Doc: "`tracon runner serve`: address to listen at",
		set:  func(c *Config, s string, _ folder) error { c.Runner.Listen = s; return checkAddress(s) },
		text: func(c *Config) string { return c.Runner.Listen }},
	text("runner_name", "its name, which tickets are bound to", func(c *Config) *string { return &c.Runner.Name }),
	{Key: "runtimes", dict: true, Doc: "what it runs: a runtime's name, such as python-3.12, to an interpreter as in interpreters; empty, and nothing runs",
		set: func(c *Config, s string, _ folder) error {
			c.Runner.Runtimes = map[string]string{}
			return eachPair(s, func(name, text string) error {
				ext, ok := RuntimeExtension(name)
				if err := gate.CheckRuntime(name); err != nil || !ok {
					return fmt.Errorf("%q is not the name of a runtime; one begins with %s, such as python-3.12", name, strings.Join(slices.Sorted(maps.Keys(runtimeKinds)), ", "))
				}
				text, err := checkInterpreter(ext, text)
				c.Runner.Runtimes[name] = text
				return err
			})
		},
		text: func(c *Config) string { return pairs(c.Runner.Runtimes) }},
	duration("runner_max_timeout", "the longest timeout that a run may ask for; 0s: "+gate.DefaultMostTimeout.String(), func(c *Config) *time.Duration { return &c.Runner.MaxTimeout }),
	size("runner_max_output", "the most output of a stream that it may ask for; 0: "+FormatSize(gate.DefaultMostOutput), func(c *Config) *int64 { return &c.Runner.MaxOutput }),
	size("runner_max_memory", "the most memory that it may ask for; 0: "+FormatSize(gate.DefaultMostMemory), func(c *Config) *int64 { return &c.Runner.MaxMemory }),
	whole("runner_max_processes", "the most processes that it may ask for; 0: 256", func(c *Config) *int { return &c.Runner.MaxProcesses }),
	file("runner_client_ca", "file with the certificates that those of clients are signed by; empty: it takes keys alone", func(c *Config) *string { return &c.Runner.ClientCA }),
	{Key: "runner_clients", dict: true, Doc: "a client certificate's DNS name to the tenants that it may ask for, with blanks between; * is all of them",
		set: func(c *Config, s string, _ folder) error {
			c.Runner.Clients = map[string][]string{}
			return eachPair(s, func(name, text string) error {
				tenants := strings.Fields(text)
				if name == "" || len(tenants) == 0 {
					return fmt.Errorf("%q names no certificate or no tenant; write one such as control.example.com: acme", name)
				}
				c.Runner.Clients[name] = tenants
				return CheckTenants(tenants)
			})
		},
		text: func(c *Config) string {
			m := map[string]string{}
			for name, tenants := range c.Runner.Clients {
				m[name] = strings.Join(tenants, " ")
			}
			return pairs(m)
		}},
	boolean("runner_tickets", "each run must have a ticket, signed for it by whoever asks", func(c *Config) *bool { return &c.Runner.Tickets }),
	{Key: "runner_ticket_keys", dict: true, Doc: "name of a key or of a client certificate to the file with the public keys that sign its tickets",
		set: func(c *Config, s string, f folder) error {
			c.Runner.TicketKeys = map[string]string{}
			return eachPair(s, func(name, text string) error {
				if name == "" || text == "" {
					return fmt.Errorf("%q names no peer or no file", name)
				}
				c.Runner.TicketKeys[name] = f.abs(text)
				return nil
			})
		},
		text: func(c *Config) string { return pairs(c.Runner.TicketKeys) }},
}

// CheckTenants says why the list cannot be that of the tenants of a peer, or nil.
func CheckTenants(tenants []string) error {
	if len(tenants) == 0 {
		return fmt.Errorf("there is no tenant; name some, or %s for all of them", EveryTenant)
	}
	for _, t := range tenants {
		if t == EveryTenant {
			if len(tenants) > 1 {
				return fmt.Errorf("%s is all tenants, and stands alone", EveryTenant)
			}
			return nil
		}
		if err := gate.CheckTenant(t); err != nil {
			return err
		}
	}
	return nil
}

// RunnerReload returns started with everything of c that a runner takes without a restart,
// and the keys of what c says otherwise and a restart alone changes.
func (c *Config) RunnerReload(started *Config) (next *Config, kept []string) {
	n := *started
	n.Enabled, n.RequireWalls, n.TrustClaimed, n.Network, n.Content = c.Enabled, c.RequireWalls, c.TrustClaimed, c.Network, c.Content
	n.Runner, n.Fleet = c.Runner, c.Fleet
	n.Runner.Listen, n.Runner.Name = started.Runner.Listen, started.Runner.Name
	s := &n.Serve
	s.KeyRate, s.TenantRate, s.RunRate, s.AtOnce, s.Drain = c.Serve.KeyRate, c.Serve.TenantRate, c.Serve.RunRate, c.Serve.AtOnce, c.Serve.Drain
	if (c.Serve.TLSCert == "") == (started.Serve.TLSCert == "") { // whether there is TLS is decided by what is listened at
		s.TLSCert, s.TLSKey = c.Serve.TLSCert, c.Serve.TLSKey
	}
	for _, setting := range Settings {
		if setting.text(c) != setting.text(&n) {
			kept = append(kept, setting.Key)
		}
	}
	if c.DatabaseURL != n.DatabaseURL && !slices.Contains(kept, "database_url") { // whose text is never shown
		kept = append(kept, "database_url")
	}
	return &n, kept
}

func eachPair(s string, take func(name, text string) error) error {
	for pair := range strings.SplitSeq(s, ",") {
		if pair == "" {
			continue
		}
		name, text, _ := strings.Cut(pair, "=")
		if err := take(name, text); err != nil {
			return err
		}
	}
	return nil
}

func pairs(m map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+"="+m[name])
	}
	return strings.Join(list, ",")
}
