package remote_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor/remote"
)

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	c := a.sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, time.Hour)
	a.cert, a.key = c.Leaf, c.PrivateKey.(*ecdsa.PrivateKey)
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) sign(t testing.TB, c *x509.Certificate, life time.Duration) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "a test's"}
	c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(life)
	parent, by := c, key
	if a.cert != nil {
		parent, by = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// M04: only a runner with a certificate of ours for its name, by TLS 1.2 at least, is
// told anything; one that asks for a client's certificate gets it, and no key is sent
// to anybody else.
func TestTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	here := func() *x509.Certificate { return &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}} }
	client := ours.sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, time.Hour)
	tests := []struct {
		name   string
		conf   *tls.Config
		client *tls.Certificate
		ok     bool
	}{
		{"ours", &tls.Config{Certificates: []tls.Certificate{ours.sign(t, here(), time.Hour)}}, nil, true},
		{"TLS 1.2", &tls.Config{Certificates: []tls.Certificate{ours.sign(t, here(), time.Hour)}, MaxVersion: tls.VersionTLS12}, nil, true},
		{"TLS 1.1", &tls.Config{Certificates: []tls.Certificate{ours.sign(t, here(), time.Hour)}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, nil, false},
		{"another authority's", &tls.Config{Certificates: []tls.Certificate{theirs.sign(t, here(), time.Hour)}}, nil, false},
		{"signed by itself", &tls.Config{Certificates: []tls.Certificate{(&authority{}).sign(t, here(), time.Hour)}}, nil, false},
		{"expired", &tls.Config{Certificates: []tls.Certificate{ours.sign(t, here(), -time.Hour)}}, nil, false},
		{"for another name", &tls.Config{Certificates: []tls.Certificate{ours.sign(t, &x509.Certificate{DNSNames: []string{"other.example.org"}}, time.Hour)}}, nil, false},
		{"asks for a client's, and gets it", &tls.Config{Certificates: []tls.Certificate{ours.sign(t, here(), time.Hour)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ours.pool}, &client, true},
		{"asks for a client's, and there is none", &tls.Config{Certificates: []tls.Certificate{ours.sign(t, here(), time.Hour)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ours.pool}, nil, false},
	}
	req := admit(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				if r.URL.Path == "/info" {
					_, _ = io.WriteString(w, knows)
					return
				}
				_, _ = w.Write(good(t, r, nil))
			}))
			s.TLS, s.Config.ErrorLog = tt.conf, log.New(io.Discard, "", 0)
			s.StartTLS()
			_, err := open(t, s.URL, func(c *remote.Config) { c.Roots, c.Certificate = ours.pool, tt.client }).Execute(t.Context(), req)
			s.Close()
			if tt.ok {
				if err != nil {
					t.Error(err)
				}
				return
			}
			check(t, err, remote.Unreachable, false)
			if asked != 0 {
				t.Errorf("somebody was asked %d times", asked)
			}
		})
	}
	plain := newFake(t, knows, answering(t, nil))
	_, err := open(t, strings.Replace(plain.URL, "http:", "https:", 1), nil).Execute(t.Context(), req)
	check(t, err, remote.Unreachable, false)
}

// M04, M05, M10: an address that must not be is refused when the executor is opened, one
// that leads where it must not when a connection is made; no error shows a password.
func TestAddress(t *testing.T) {
	key := func() (string, error) { return testKey, nil }
	for _, c := range []remote.Config{
		{}, {Address: "runner.example.org", Key: key}, {Address: "http://runner.example.org", Key: key}, {Address: "https://u:secret@runner.example.org", Key: key},
		{Address: "https://runner.example.org/?secret=1", Key: key}, {Address: "ftp://runner.example.org", Key: key}, {Address: "https://runner.example.org"},
		{Address: "http://127.0.0.1:1", Key: key}, {Address: "https://runner.example.org", Key: key, Reach: []string{"moon"}}, {Address: "https://runner.example.org", Key: key, Patience: -1},
		{Address: "https://%zz:secret@x", Key: key},
	} {
		if _, err := remote.New(c); err == nil || strings.Contains(err.Error(), "secret@") || strings.Contains(err.Error(), "secret=") {
			t.Errorf("%q: %v", c.Address, err)
		}
	}
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	e, err := remote.New(remote.Config{Address: s.URL, Key: key}) // this machine, without the word
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Execute(t.Context(), admit(t, nil))
	check(t, err, remote.Unreachable, false)
	if !strings.Contains(err.Error(), "remote_reach") {
		t.Errorf("%v does not say what opens it", err)
	}
}
