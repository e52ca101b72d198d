package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/executor/remote"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/serve/oidc"
)

// An UnsafeError says why `tracon serve` does not start as it is told: each thing in
// a sentence that names the setting.
type UnsafeError struct{ Problems []string }

// Error returns the sentences, each on its line.
func (e *UnsafeError) Error() string {
	return "serve does not start as it is told:\n  " + strings.Join(e.Problems, "\n  ")
}

// checkServe says everything at once that c must not say for a server, or nil.
func checkServe(c *config.Config, now time.Time) error {
	u := &UnsafeError{}
	for _, check := range []func(*UnsafeError, *config.Config, time.Time){checkDoors, checkTLS, checkWho, checkRooms, checkRemote, checkFleet, checkProduction} {
		check(u, c, now)
	}
	if len(u.Problems) == 0 {
		return nil
	}
	return u
}

func (e *UnsafeError) add(format string, args ...any) {
	e.Problems = append(e.Problems, fmt.Sprintf(format, args...))
}

// local reports whether only this machine reaches the address.
func local(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

func checkDoors(u *UnsafeError, c *config.Config, _ time.Time) {
	s := c.Serve
	secure := s.TLSCert != ""
	if s.Listen != "" && !local(s.Listen) && !secure && !s.InsecurePlaintext {
		u.add("listen is %s, which other machines reach, and there is no TLS: set tls_cert and tls_key, or listen at 127.0.0.1 behind a proxy; insecure_plaintext: true lets keys travel for everybody to read.", s.Listen)
	}
	if secure && s.InsecurePlaintext {
		u.add("insecure_plaintext is true, and there is a tls_cert: take one of the two away.")
	}
	if s.MetricsListen != "" && !local(s.MetricsListen) && !s.InsecurePlaintext {
		u.add("metrics_listen is %s, which other machines reach without a key and without TLS: listen at 127.0.0.1, or leave it empty and have /metrics asked for with a key of the platform.", s.MetricsListen)
	}
	if s.MetricsListen != "" && s.MetricsListen == s.Listen && !strings.HasSuffix(s.Listen, ":0") {
		u.add("metrics_listen and listen are both %s: /metrics is there already, with a key of the platform.", s.Listen)
	}
	if socket := filepath.Join(c.Data, SocketFile); hasSocket && len(socket) > maxSocket {
		u.add("the path of the socket, %s, has more than %d bytes, which the system does not take: name a folder with a shorter path in data.", socket, maxSocket)
	}
}

func checkTLS(u *UnsafeError, c *config.Config, now time.Time) {
	s := c.Serve
	switch {
	case s.TLSCert == "" && s.TLSKey == "":
		return
	case s.TLSCert == "" || s.TLSKey == "":
		u.add("of tls_cert and tls_key one is set: set both, or none.")
		return
	}
	cert, err := loadCertificate(s)
	if err != nil {
		u.add("tls_cert and tls_key cannot be used: %v.", err)
		return
	}
	if now.After(cert.Leaf.NotAfter) {
		u.add("the certificate in tls_cert has expired on %s: renew it.", cert.Leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	if info, err := os.Stat(s.TLSKey); runtime.GOOS != "windows" && err == nil && info.Mode().Perm()&0o077 != 0 {
		u.add("others may read tls_key, %s: make it so that they do not, with chmod 600.", s.TLSKey)
	}
}

// loadCertificate reads the certificate and its key.
func loadCertificate(s config.Serve) (*tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(s.TLSCert, s.TLSKey)
	if err != nil {
		return nil, err
	}
	if cert.Leaf == nil {
		cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0])
	}
	return &cert, err
}

func checkWho(u *UnsafeError, c *config.Config, _ time.Time) {
	s := c.Serve
	if s.OIDCIssuer == "" {
		for _, key := range []string{"oidc_audience", "oidc_tenant", "oidc_tenant_claim", "oidc_roles_claim", "oidc_roles", "oidc_reach"} {
			if c.Given(key) {
				u.add("%s is set, and there is no oidc_issuer: name the identity provider, or take it away.", key)
			}
		}
		return
	}
	if _, err := newOIDC(c); err != nil {
		u.add("the identity provider cannot be used: %s.", strings.TrimPrefix(err.Error(), "oidc: "))
	}
}

func newOIDC(c *config.Config) (*oidc.Verifier, error) {
	s := c.Serve
	return oidc.New(oidc.Config{
		Issuer: s.OIDCIssuer, Audience: s.OIDCAudience, Tenant: s.OIDCTenant, TenantClaim: s.OIDCTenantClaim,
		RolesClaim: s.OIDCRolesClaim, Roles: s.OIDCRoles, Reach: s.OIDCReach, Skew: s.OIDCSkew,
	})
}

func checkRooms(u *UnsafeError, c *config.Config, _ time.Time) {
	if c.Executor == Process && !c.Given("executor") {
		u.add("this system has no sandbox, so scripts would run as this user, who owns the database and its keys: if that is meant, say executor: %s.", Process)
	}
	info, err := os.Stat(c.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		u.add("the data folder cannot be looked at: %v.", err)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0:
		u.add("others may write to the data folder, %s: make it so that they do not, with chmod 700.", c.Data)
	}
}

// checkProduction demands each decision that a laptop leaves to a default.
func checkProduction(u *UnsafeError, c *config.Config, _ time.Time) {
	if !c.Production {
		return
	}
	if c.File == "" {
		u.add("production is true, and there is no configuration file: the host's switch and its allow-list must stand in one, where changes are reviewed.")
	}
	for _, d := range []struct{ key, why string }{
		{"listen", "where it listens"},
		{"executor", "what scripts run in"},
		{"interpreters", "which interpreters there are"},
		{"require_walls", "which walls must stand, such as memory and processes"},
		{"slots", "how many scripts run at once"},
		{"drain", "how long runs may go on when it is told to stop"},
		{"keep_calls", "how long records of calls are kept; 0s says for ever"},
	} {
		if !c.Given(d.key) {
			u.add("production is true, and nobody has decided %s: set %s.", d.why, d.key)
		}
	}
	if c.Checkpoints == "" && len(c.Witnesses) == 0 {
		u.add("production is true, and nobody elsewhere knows the log: set checkpoints to a second folder, or name witnesses.")
	}
	if c.Executor == Process {
		u.add("production is true, and executor is %s, which walls nothing off: tenants would read the database and its keys.", Process)
	}
	if c.TrustClaimed {
		checkClaims(u, c)
	}
	if c.Serve.InsecurePlaintext {
		u.add("production is true, and insecure_plaintext lets keys travel for everybody to read: set tls_cert and tls_key, or listen at 127.0.0.1 behind a proxy.")
	}
}

// checkClaims says whose word for a tier production takes: of what runs elsewhere there is
// no more than its word, so it must be known whose it is, and no stolen key alone may have
// anything run there.
func checkClaims(u *UnsafeError, c *config.Config) {
	f, r := c.Fleet, c.Remote
	plain := func(url string) bool { return !strings.HasPrefix(url, "tls://") }
	switch c.Executor {
	case remote.Name:
		if !strings.HasPrefix(r.Address, "https://") || r.Name == "" || r.TicketKey == "" {
			u.add("production is true, and trust_claimed takes a runner's word for its walls: that takes an https address in remote, its name in remote_name, and remote_ticket_key; else set trust_claimed to false.")
		}
	case fleet.Name:
		within := f.Listen != "" && c.Serve.TLSCert != ""
		without := f.Listen == "" && len(f.URLs) > 0 && !slices.ContainsFunc(f.URLs, plain)
		if !within && !without || f.TicketKey == "" {
			u.add("production is true, and trust_claimed takes the word of a fleet's runners for their walls: that takes TLS, by tls_cert with fleet_listen or by tls:// in each of fleet_urls, and fleet_ticket_key; else set trust_claimed to false.")
		}
	default:
		u.add("production is true, and trust_claimed takes an executor's own word for its walls: set it to false.")
	}
}
