package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracon-go/tracon/access"
)

// DefaultListen is where `tracon serve` listens when nobody says: this machine alone.
const DefaultListen = "127.0.0.1:8787"

// Serve is what `tracon serve` is told, besides what every verb is.
type Serve struct {
	Listen            string // address; empty: the socket in the data folder alone
	PublicURL         string // address by which clients reach it; empty: they are not told
	TLSCert, TLSKey   string // files; empty: without TLS; absolute
	InsecurePlaintext bool   // other machines may be listened to without TLS
	MetricsListen     string // address of /metrics without a key; empty: none
	Drain             time.Duration

	KeyRate, TenantRate, RunRate, AtOnce int // zero: those of serve/limit
	Connections, ConnectionsPerPeer      int // the same

	Traces      string // address for spans by OTLP; empty: none
	TracesShare float64
	MetricNames bool

	OIDCIssuer, OIDCAudience                    string // of the identity provider; empty: none
	OIDCTenant, OIDCTenantClaim, OIDCRolesClaim string
	OIDCRoles                                   map[string]access.Role
	OIDCReach                                   []string
	OIDCSkew                                    time.Duration
}

// serveSettings are the part of the table that `tracon serve` reads.
var serveSettings = []Setting{
	{Key: "listen", Doc: "`tracon serve`: address to listen at; empty: its socket in the folder of data alone",
		set:  func(c *Config, s string, _ folder) error { c.Serve.Listen = s; return checkAddress(s) },
		text: func(c *Config) string { return c.Serve.Listen }},
	{Key: "public_url", Doc: "address by which clients reach it, such as https://tracon.example.com: what clients of the Model Context Protocol are told",
		set:  func(c *Config, s string, _ folder) error { c.Serve.PublicURL = s; return checkURL(s) },
		text: func(c *Config) string { return c.Serve.PublicURL }},
	file("tls_cert", "file of its certificate, with those between it and the root; read again on SIGHUP", func(c *Config) *string { return &c.Serve.TLSCert }),
	file("tls_key", "file of the certificate's key, which nobody else may read", func(c *Config) *string { return &c.Serve.TLSKey }),
	boolean("insecure_plaintext", "lets it listen to other machines without TLS: keys and output are read by whoever is between", func(c *Config) *bool { return &c.Serve.InsecurePlaintext }),
	{Key: "metrics_listen", Doc: "address for /metrics without a key; empty: /metrics takes a key of the platform",
		set:  func(c *Config, s string, _ folder) error { c.Serve.MetricsListen = s; return checkAddress(s) },
		text: func(c *Config) string { return c.Serve.MetricsListen }},
	duration("drain", "how long runs may go on when it is told to stop; 0s: 30s", func(c *Config) *time.Duration { return &c.Serve.Drain }),
	whole("rate_key", "requests a second of one key; 0: 200", func(c *Config) *int { return &c.Serve.KeyRate }),
	whole("rate_tenant", "requests a second of one tenant, where it has no rate of its own; 0: 400", func(c *Config) *int { return &c.Serve.TenantRate }),
	whole("rate_runs", "runs a second that one tenant starts, where it has no rate of its own; 0: 200", func(c *Config) *int { return &c.Serve.RunRate }),
	whole("requests", "requests under way, a quarter of them of one tenant, an eighth for the platform alone; 0: 1024", func(c *Config) *int { return &c.Serve.AtOnce }),
	whole("connections", "connections that are open; 0: 4096", func(c *Config) *int { return &c.Serve.Connections }),
	whole("connections_per_peer", "of them from one machine, a proxy too; 0: 2048", func(c *Config) *int { return &c.Serve.ConnectionsPerPeer }),
	{Key: "traces", Doc: "address that spans are posted to by OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces; empty: none",
		set:  func(c *Config, s string, _ folder) error { c.Serve.Traces = s; return nil },
		text: func(c *Config) string { return c.Serve.Traces }},
	{Key: "traces_share", Doc: "share of calls that have spans, from 0 to 1",
		set: func(c *Config, s string, _ folder) error {
			f, err := strconv.ParseFloat(s, 64)
			if err != nil || !(f >= 0 && f <= 1) {
				return fmt.Errorf("%q is not a share from 0 to 1, such as 0.1", s)
			}
			c.Serve.TracesShare = f
			return nil
		},
		text: func(c *Config) string { return strconv.FormatFloat(c.Serve.TracesShare, 'g', -1, 64) }},
	boolean("metric_names", "puts the names of tenants, skills and scripts on the metrics of runs", func(c *Config) *bool { return &c.Serve.MetricNames }),
	text("oidc_issuer", "identity provider whose tokens are taken beside keys; empty: none", func(c *Config) *string { return &c.Serve.OIDCIssuer }),
	text("oidc_audience", "whom its tokens must be for", func(c *Config) *string { return &c.Serve.OIDCAudience }),
	text("oidc_tenant", "tenant of everybody that it knows; empty: oidc_tenant_claim says it", func(c *Config) *string { return &c.Serve.OIDCTenant }),
	text("oidc_tenant_claim", "claim that names somebody's tenant", func(c *Config) *string { return &c.Serve.OIDCTenantClaim }),
	text("oidc_roles_claim", "claim with somebody's roles or groups, such as groups or realm_access.roles", func(c *Config) *string { return &c.Serve.OIDCRolesClaim }),
	{Key: "oidc_roles", dict: true, Doc: "which of them is which role here: reader, operator, approver, admin or platform",
		set: func(c *Config, s string, _ folder) error {
			c.Serve.OIDCRoles = map[string]access.Role{}
			for pair := range strings.SplitSeq(s, ",") {
				if pair == "" {
					continue
				}
				at := strings.LastIndexByte(pair, '=')
				if at <= 0 || !slices.Contains(access.Roles(), access.Role(pair[at+1:])) {
					return fmt.Errorf("%q names no role; write one such as platform-team: platform; there is: %s", pair, access.List(access.Roles()))
				}
				c.Serve.OIDCRoles[pair[:at]] = access.Role(pair[at+1:])
			}
			return nil
		},
		text: func(c *Config) string {
			var pairs []string
			for _, name := range slices.Sorted(maps.Keys(c.Serve.OIDCRoles)) {
				pairs = append(pairs, name+"="+string(c.Serve.OIDCRoles[name]))
			}
			return strings.Join(pairs, ",")
		}},
	{Key: "oidc_reach", list: true, Doc: "where the provider may be besides the public internet: loopback, private",
		set: func(c *Config, s string, _ folder) error {
			c.Serve.OIDCReach = nil
			for word := range strings.SplitSeq(s, ",") {
				if word != "" {
					c.Serve.OIDCReach = append(c.Serve.OIDCReach, word)
				}
			}
			return nil
		},
		text: func(c *Config) string { return strings.Join(c.Serve.OIDCReach, ",") }},
	duration("oidc_skew", "how far its clock may differ, 5m0s at most; 0s: 1m0s", func(c *Config) *time.Duration { return &c.Serve.OIDCSkew }),
}

// checkAddress says why s is nothing to listen at. Every host is named: what is left
// out would mean all.
func checkAddress(s string) error {
	if s == "" {
		return nil
	}
	at := strings.LastIndexByte(s, ':')
	host, port := s[:max(at, 0)], s[at+1:]
	if bracketed := strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]"); host == "" || strings.ContainsAny(host, ":/[]") && !bracketed {
		return fmt.Errorf("%q is not an address; write one such as 127.0.0.1:8787, or 0.0.0.0:8787 for every network of this machine", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is not a port from 0 to 65535", port)
	} else if n == 0 && port != "0" {
		return fmt.Errorf("%q is not a port", port)
	}
	return nil
}

// checkURL says why s is not the address of a server.
func checkURL(s string) error {
	if s == "" {
		return nil
	}
	if u, err := url.Parse(s); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q is not an address; write one such as https://tracon.example.com", s)
	}
	return nil
}

func text(key, doc string, field func(*Config) *string) Setting {
	return Setting{Key: key, Doc: doc,
		set:  func(c *Config, s string, _ folder) error { *field(c) = s; return nil },
		text: func(c *Config) string { return *field(c) }}
}

func file(key, doc string, field func(*Config) *string) Setting {
	return Setting{Key: key, Doc: doc,
		set:  func(c *Config, s string, f folder) error { *field(c) = f.abs(s); return nil },
		text: func(c *Config) string { return *field(c) }}
}

// KeepFromStart has c say what started says, where that holds from the start of a
// process to its end: where everything is kept, and what is listened at. It returns
// the keys of what c said otherwise.
func (c *Config) KeepFromStart(started *Config) (changed []string) {
	for _, k := range []struct {
		key  string
		copy func(to, from *Config)
	}{
		{"data", func(to, from *Config) { to.Data = from.Data }},
		{"store", func(to, from *Config) { to.Store = from.Store }},
		{"state", func(to, from *Config) { to.State = from.State }},
		{"checkpoints", func(to, from *Config) { to.Checkpoints = from.Checkpoints }},
		{"listen", func(to, from *Config) { to.Serve.Listen = from.Serve.Listen }},
		{"metrics_listen", func(to, from *Config) { to.Serve.MetricsListen = from.Serve.MetricsListen }},
		{"connections", func(to, from *Config) { to.Serve.Connections = from.Serve.Connections }},
		{"connections_per_peer", func(to, from *Config) { to.Serve.ConnectionsPerPeer = from.Serve.ConnectionsPerPeer }},
		{"traces", func(to, from *Config) { to.Serve.Traces = from.Serve.Traces }},
		{"traces_share", func(to, from *Config) { to.Serve.TracesShare = from.Serve.TracesShare }},
		{"metric_names", func(to, from *Config) { to.Serve.MetricNames = from.Serve.MetricNames }},
	} {
		i := slices.IndexFunc(Settings, func(s Setting) bool { return s.Key == k.key })
		if Settings[i].text(c) != Settings[i].text(started) {
			changed = append(changed, k.key)
			k.copy(c, started)
		}
	}
	if c.DatabaseURL != started.DatabaseURL { // whose text is never shown
		changed = append(changed, "database_url")
		c.DatabaseURL = started.DatabaseURL
	}
	// Whether there is TLS is decided by what is listened at; its files are read again.
	if (c.Serve.TLSCert == "") != (started.Serve.TLSCert == "") {
		changed = append(changed, "tls_cert", "tls_key")
		c.Serve.TLSCert, c.Serve.TLSKey = started.Serve.TLSCert, started.Serve.TLSKey
	}
	if c.Serve.InsecurePlaintext != started.Serve.InsecurePlaintext {
		changed = append(changed, "insecure_plaintext")
		c.Serve.InsecurePlaintext = started.Serve.InsecurePlaintext
	}
	return changed
}
