package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/serve/limit"
	"github.com/tracon-go/tracon/serve/runnerapi"
)

// newRunnerHouse is a house whose keys of a runner can be changed, and who then asks.
func newRunnerHouse(t *testing.T) (*House, *runnerPeers) {
	t.Helper()
	dir := t.TempDir()
	c, err := config.Load(config.Source{Flags: map[string]string{"data": filepath.Join(dir, "data"), "state": filepath.Join(dir, "state")}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	h, err := Open(t.Context(), c, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return h, &runnerPeers{data: c.Data, clients: func() map[string][]string {
		return map[string][]string{"control.example.com": {"acme"}, "all.example.com": {"*"}}
	}, failures: limit.NewFailures(quiet)}
}

func asking(token string) *http.Request {
	r := httptest.NewRequest("POST", "/runs", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// R20, M12: a key lets in for its tenants alone, as long as it is neither revoked nor
// expired, and each change stands in the log; no secret is kept.
func TestRunnerKeys(t *testing.T) {
	h, peers := newRunnerHouse(t)
	_, one, err := h.CreateRunnerKey(t.Context(), "op", "one", []string{"acme", "beta"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	_, all, err := h.CreateRunnerKey(t.Context(), "op", "all", []string{"*"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	_, expired, err := h.CreateRunnerKey(t.Context(), "op", "late", []string{"acme"}, time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	p, credential, err := peers.Peer(asking(one.Reveal()))
	if err != nil || p.Name != "one" || !slices.Equal(p.Tenants, []string{"acme", "beta"}) || p.AllTenants || credential != one.ID() {
		t.Errorf("one: %+v %q %v", p, credential, err)
	}
	if p, _, err := peers.Peer(asking(all.Reveal())); err != nil || !p.AllTenants || len(p.Tenants) != 0 {
		t.Errorf("all: %+v %v", p, err)
	}
	if _, err := h.RevokeRunnerKey(t.Context(), "op", one.ID()); err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(all.Reveal(), all.ID(), one.ID(), 1)
	for name, token := range map[string]string{"revoked": one.Reveal(), "expired": expired.Reveal(), "forged": forged, "none": "", "a word": "x"} {
		if p, _, err := peers.Peer(asking(token)); !errors.Is(err, runnerapi.ErrStranger) {
			t.Errorf("%s: it lets in %+v, %v", name, p, err)
		}
	}
	if _, err := h.RevokeRunnerKey(t.Context(), "op", "none"); !errors.Is(err, grant.ErrNotFound) {
		t.Errorf("a key that is not there: %v", err)
	}
	for _, bad := range [][]string{nil, {""}, {"*", "acme"}, {"@host"}, {"a\nb"}} {
		if _, _, err := h.CreateRunnerKey(t.Context(), "op", "bad", bad, time.Time{}); err == nil {
			t.Errorf("a key for the tenants %q is made", bad)
		}
	}
	var told []string
	for leaf, err := range h.Log.Entries(t.Context(), gate.HostTenant, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e := leaf.Entry; e.Kind == audit.Keeping && strings.HasPrefix(e.Subject, "runner key") {
			told = append(told, e.Subject+" "+e.Fact("name"))
		}
	}
	if want := []string{"runner key create one", "runner key create all", "runner key create late", "runner key revoke one"}; !slices.Equal(told, want) {
		t.Errorf("the log tells of %q, want %q", told, want)
	}
	path := filepath.Join(h.Config.Data, runnerKeysFile)
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), all.Reveal()[len(all.String()):]) {
		t.Errorf("the file holds a secret (%v)", err)
	}
	if list, err := h.RunnerKeys(); err != nil || len(list) != 3 || list[0].Name != "late" || list[0].Hash != "" {
		t.Errorf("the list is %+v, %v", list, err)
	}
	// What cannot be read lets nobody in, and says that it is no matter of the key.
	if err := os.WriteFile(path, []byte(`[{"id":"x","ID":"y"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, _, err := peers.Peer(asking(all.Reveal())); err == nil || errors.Is(err, runnerapi.ErrStranger) {
		t.Errorf("a damaged file: %+v, %v", p, err)
	}
}

// T09: a name stands for one peer: no key takes that of a key in force for other tenants,
// of a client certificate or of the fleet's control plane.
func TestRunnerKeyNames(t *testing.T) {
	h, _ := newRunnerHouse(t)
	h.Config.Runner.Clients = map[string][]string{"control.example.com": {"acme"}}
	first, _, err := h.CreateRunnerKey(t.Context(), "op", "prod", []string{"acme", "beta"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.CreateRunnerKey(t.Context(), "op", "old", []string{"acme"}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, peer string
		tenants    []string
		ok         bool
	}{
		{"another tenant", "prod", []string{"gamma"}, false},
		{"one of the tenants", "prod", []string{"acme"}, false},
		{"all tenants", "prod", []string{"*"}, false},
		{"a certificate's", "control.example.com", []string{"acme"}, false},
		{"the fleet's", config.FleetPeer, []string{"acme"}, false},
		{"the same tenants, to change the key", "prod", []string{"beta", "acme"}, true},
		{"of a key that expired", "old", []string{"beta"}, true},
	} {
		if _, _, err := h.CreateRunnerKey(t.Context(), "op", tt.peer, tt.tenants, time.Time{}); (err == nil) != tt.ok {
			t.Errorf("T09: %s: %v, want a key: %t", tt.name, err, tt.ok)
		}
	}
	keys, err := h.RunnerKeys()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if k.Name != first.Name {
			continue
		}
		if _, err := h.RevokeRunnerKey(t.Context(), "op", k.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := h.CreateRunnerKey(t.Context(), "op", "prod", []string{"gamma"}, time.Time{}); err != nil {
		t.Errorf("the name of keys that were revoked: %v", err)
	}
}

// M04, T11: a certificate that has expired lets in no more, on a connection that is open
// yet too, be it the client's or that of who signed it.
func TestRunnerCertificateExpires(t *testing.T) {
	_, peers := newRunnerHouse(t)
	now := time.Now()
	for _, tt := range []struct {
		name       string
		client, ca time.Time
		want       error
	}{
		{"both hold", now.Add(time.Hour), now.Add(time.Hour), nil},
		{"the client's has expired", now.Add(-time.Second), now.Add(time.Hour), runnerapi.ErrStranger},
		{"the authority's has expired", now.Add(time.Hour), now.Add(-time.Second), runnerapi.ErrStranger},
	} {
		r := httptest.NewRequest("POST", "/runs", nil)
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{
			{DNSNames: []string{"control.example.com"}, NotAfter: tt.client}, {IsCA: true, NotAfter: tt.ca}}}}
		if p, _, err := peers.Peer(r); !errors.Is(err, tt.want) || tt.want != nil && p.Name != "" {
			t.Errorf("%s: got %+v, %v, want %v", tt.name, p, err, tt.want)
		}
	}
}

// M04: a client certificate lets in by a DNS name that the configuration has, and only
// when one of runner_client_ca signed it; keys go on to work beside.
func TestRunnerCertificates(t *testing.T) {
	_, peers := newRunnerHouse(t)
	dir := t.TempDir()
	ca := newAuthority(t)
	cert, key := ca.sign(t, "localhost")
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	c := &config.Config{}
	c.Serve.TLSCert, c.Serve.TLSKey = write("cert.pem", "CERTIFICATE", cert), write("key.pem", "PRIVATE KEY", der)
	c.Runner.ClientCA = write("ca.pem", "CERTIFICATE", ca.cert.Raw)
	tlsConfig, err := runnerTLS(c)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _, err := peers.Peer(r)
		if err != nil {
			p.Name = err.Error()
		}
		_, _ = w.Write([]byte(p.Name))
	}))
	s.TLS = tlsConfig
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	stranger := newAuthority(t)
	for _, tt := range []struct {
		name string
		by   *authority
		dns  string
		want string // empty: no answer
	}{
		{"one that is known", ca, "control.example.com", "control.example.com"},
		{"one that is not", ca, "other.example.com", runnerapi.ErrStranger.Error()},
		{"none", nil, "", runnerapi.ErrStranger.Error()},
		{"signed by somebody else", stranger, "control.example.com", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			own := &tls.Config{RootCAs: roots, ServerName: "localhost"}
			if tt.by != nil {
				cert, key := tt.by.sign(t, tt.dns)
				pair := tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: key}
				own.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
			}
			transport := &http.Transport{TLSClientConfig: own}
			defer transport.CloseIdleConnections()
			res, err := (&http.Client{Transport: transport}).Get(s.URL)
			if err != nil {
				if tt.want != "" {
					t.Error(err)
				}
				return
			}
			defer res.Body.Close()
			b := make([]byte, 100)
			n, _ := res.Body.Read(b)
			if tt.want == "" || string(b[:n]) != tt.want {
				t.Errorf("got %q, want %q", b[:n], tt.want)
			}
		})
	}
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func (a *authority) sign(t *testing.T, dns string) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: []string{dns}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}
