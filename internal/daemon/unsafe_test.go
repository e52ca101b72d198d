package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/internal/config"
)

// certificate writes one for tracon.example.org that ends then, with its key.
func certificate(t *testing.T, ends time.Time) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tracon.example.org"}, DNSNames: []string{"tracon.example.org"},
		NotBefore: ends.Add(-48 * time.Hour), NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, about, about, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// good is a configuration for production with which nothing is wrong.
func good(data, cert, key string) map[string]string {
	return map[string]string{
		"data": data, "production": "true", "listen": "0.0.0.0:8787", "tls_cert": cert, "tls_key": key, "executor": "sandbox",
		"interpreters": "{py: /usr/bin/python3}", "require_walls": "[memory, processes]", "slots": "8", "drain": "1m", "keep_calls": "0s",
		"checkpoints": "checkpoints", "enabled": "true",
	}
}

// The start refuses each unsafe combination with a sentence that names the setting,
// and nothing else.
func TestUnsafe(t *testing.T) {
	now := time.Now()
	cert, key := certificate(t, now.Add(time.Hour))
	expired, itsKey := certificate(t, now.Add(-time.Hour))
	open := filepath.Join(t.TempDir(), "key.pem")
	if text, err := os.ReadFile(key); err != nil || os.WriteFile(open, text, 0o600) != nil || os.Chmod(open, 0o644) != nil {
		t.Fatal("copying the key")
	}
	shared, err := os.MkdirTemp("", "s") // short: a socket lies in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(shared) })
	if err := os.Chmod(shared, 0o770); err != nil {
		t.Fatal(err)
	}
	oidc := map[string]string{"oidc_issuer": "https://login.example.org", "oidc_audience": "tracon", "oidc_tenant_claim": "org", "oidc_roles_claim": "groups", "oidc_roles": "{staff: operator}"}
	with := func(more map[string]string, without ...string) map[string]string {
		all := map[string]string{}
		for k, v := range oidc {
			all[k] = v
		}
		for k, v := range more {
			all[k] = v
		}
		for _, k := range without {
			all[k] = ""
		}
		return all
	}
	tests := []struct {
		name   string
		change map[string]string // of good; empty takes it away
		want   []string          // one for each sentence, in their order
		unix   bool              // modes of files say it
	}{
		{name: "nothing"},
		{name: "behind a proxy on this machine", change: map[string]string{"listen": "127.0.0.1:1", "tls_cert": "", "tls_key": ""}},
		{name: "its socket alone", change: map[string]string{"listen": `""`, "tls_cert": "", "tls_key": ""}},
		{name: "an identity provider", change: oidc},
		{name: "open without TLS", change: map[string]string{"tls_cert": "", "tls_key": ""}, want: []string{"insecure_plaintext"}},
		{name: "open by a name", change: map[string]string{"listen": "tracon.example.org:1", "tls_cert": "", "tls_key": ""}, want: []string{"tls_cert"}},
		{name: "open, by the word", change: map[string]string{"tls_cert": "", "tls_key": "", "insecure_plaintext": "true", "production": "false"}},
		{name: "open, by the word, in production", change: map[string]string{"tls_cert": "", "tls_key": "", "insecure_plaintext": "true"}, want: []string{"production is true, and insecure_plaintext"}},
		{name: "the word and TLS", change: map[string]string{"insecure_plaintext": "true", "production": "false"}, want: []string{"take one of the two away"}},
		{name: "a certificate without its key", change: map[string]string{"tls_key": ""}, want: []string{"one is set"}},
		{name: "a key of another certificate", change: map[string]string{"tls_key": itsKey}, want: []string{"cannot be used"}},
		{name: "a certificate that is not there", change: map[string]string{"tls_cert": "nowhere.pem"}, want: []string{"cannot be used"}},
		{name: "a certificate that has expired", change: map[string]string{"tls_cert": expired, "tls_key": itsKey}, want: []string{"expired"}},
		{name: "a key that others read", change: map[string]string{"tls_key": open}, want: []string{"chmod 600"}, unix: true},
		{name: "metrics for everybody", change: map[string]string{"metrics_listen": "0.0.0.0:1"}, want: []string{"metrics_listen"}},
		{name: "metrics where the API is", change: map[string]string{"listen": "127.0.0.1:1", "metrics_listen": "127.0.0.1:1", "tls_cert": "", "tls_key": ""}, want: []string{"both"}},
		{name: "an identity provider that nobody named", change: with(nil, "oidc_issuer"), want: []string{"oidc_audience", "oidc_tenant_claim", "oidc_roles_claim", "oidc_roles"}},
		{name: "tokens for anybody", change: with(nil, "oidc_audience"), want: []string{"audience"}},
		{name: "a provider on this machine", change: with(map[string]string{"oidc_issuer": "http://127.0.0.1:1"}), want: []string{"loopback"}},
		{name: "a folder that others write", change: map[string]string{"data": shared}, want: []string{"chmod 700"}, unix: true},
		{name: "a folder too deep for a socket", change: map[string]string{"data": "/" + strings.Repeat("deep/", 20)}, want: []string{"shorter path"}, unix: true},
		{name: "no walls", change: map[string]string{"executor": "process"}, want: []string{"walls nothing off"}},
		{name: "walls by word of mouth", change: map[string]string{"trust_claimed": "true"}, want: []string{"trust_claimed"}},
		{name: "a log that nobody else knows", change: map[string]string{"checkpoints": ""}, want: []string{"witnesses"}},
		{name: "decisions that nobody took", change: map[string]string{"require_walls": "", "slots": "", "drain": "", "keep_calls": "", "interpreters": ""},
			want: []string{"interpreters", "require_walls", "slots", "drain", "keep_calls"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.unix && runtime.GOOS == "windows" {
				tt.want = nil
			}
			dir := t.TempDir()
			all := good("/nowhere/data", cert, key)
			for k, v := range tt.change {
				all[k] = v
			}
			text := ""
			for k, v := range all {
				if v != "" {
					text += k + ": " + v + "\n"
				}
			}
			file := filepath.Join(dir, "tracon.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := config.Load(config.Source{File: file, Getenv: func(string) string { return "" }})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			if err := checkServe(c, now); err != nil {
				u, ok := errors.AsType[*UnsafeError](err)
				if !ok {
					t.Fatal(err)
				}
				got = u.Problems
			}
			if len(got) != len(tt.want) {
				t.Fatalf("%d sentences, want %d:\n%s", len(got), len(tt.want), strings.Join(got, "\n"))
			}
			for i, want := range tt.want {
				if !strings.Contains(got[i], want) || !strings.HasSuffix(got[i], ".") || strings.Contains(got[i], "\n") {
					t.Errorf("%q, want one sentence with %q", got[i], want)
				}
			}
		})
	}
}

// A server for production that is told nothing is told everything that it lacks.
func TestProductionDemands(t *testing.T) {
	c, err := config.Load(config.Source{Flags: map[string]string{"data": "/nowhere/data", "production": "true"}, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	u, ok := errors.AsType[*UnsafeError](checkServe(c, time.Now()))
	if !ok || len(u.Problems) < 9 {
		t.Fatalf("%v", u)
	}
}

// M09, M10: in production the word of a runner for its walls is taken where TLS says whose
// it is, and tickets keep a stolen key from having anything run; never that of an executor
// of this host. Elsewhere than in production an operator's word is enough.
func TestWhoseWordProductionTakes(t *testing.T) {
	remote := config.Remote{Address: "https://runner.example.org", Name: "runner-1", TicketKey: "/ticket.pem"}
	outside := config.Fleet{URLs: []string{"tls://a.example.org:4222", "tls://b.example.org:4222"}, TicketKey: "/ticket.pem"}
	inside := config.Fleet{Listen: "10.0.0.1:4222", TicketKey: "/ticket.pem"}
	for _, tt := range []struct {
		name     string
		executor string
		change   func(*config.Config)
		want     string // empty: it is taken
	}{
		{"a sandbox's", "sandbox", func(*config.Config) {}, "set it to false"},
		{"a container's", "container", func(*config.Config) {}, "set it to false"},
		{"a runner's", "remote", func(c *config.Config) { c.Remote = remote }, ""},
		{"a runner's by http", "remote", func(c *config.Config) { c.Remote = remote; c.Remote.Address = "http://127.0.0.1:8788" }, "https"},
		{"a runner's without a name", "remote", func(c *config.Config) { c.Remote = remote; c.Remote.Name = "" }, "remote_name"},
		{"a runner's without tickets", "remote", func(c *config.Config) { c.Remote = remote; c.Remote.TicketKey = "" }, "remote_ticket_key"},
		{"a fleet's, over servers elsewhere", "fleet", func(c *config.Config) { c.Fleet = outside }, ""},
		{"a fleet's, one of whose servers speaks plain text", "fleet", func(c *config.Config) {
			c.Fleet = outside
			c.Fleet.URLs = []string{"tls://a.example.org:4222", "nats://127.0.0.1:4222"}
		}, "tls://"},
		{"a fleet's, whose servers nobody names", "fleet", func(c *config.Config) { c.Fleet.TicketKey = "/ticket.pem" }, "fleet_urls"},
		{"a fleet's, over the server within", "fleet", func(c *config.Config) { c.Fleet, c.Serve.TLSCert = inside, "/cert.pem" }, ""},
		{"a fleet's, over a server within without TLS", "fleet", func(c *config.Config) { c.Fleet = inside }, "tls_cert"},
		{"a fleet's without tickets", "fleet", func(c *config.Config) { c.Fleet = outside; c.Fleet.TicketKey = "" }, "fleet_ticket_key"},
	} {
		for _, production := range []bool{true, false} {
			c := &config.Config{Executor: tt.executor, TrustClaimed: true, Production: production}
			tt.change(c)
			u := &UnsafeError{}
			checkProduction(u, c, time.Now())
			var told []string
			for _, p := range u.Problems {
				if strings.Contains(p, "trust_claimed") {
					told = append(told, p)
				}
			}
			if want := tt.want != "" && production; want != (len(told) == 1) || want && !strings.Contains(told[0], tt.want) {
				t.Errorf("M09: %s, production %t: it says %q, want %q", tt.name, production, told, tt.want)
			}
		}
	}
}
