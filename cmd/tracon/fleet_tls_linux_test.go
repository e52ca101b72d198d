package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// A signer signs certificates of servers that are reached at 127.0.0.1. Its own is in
// NAME.ca, and what it signs in NAME.pem and NAME.key.
type signer struct {
	t      *testing.T
	folder string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

func newSigner(t *testing.T, folder, name string) *signer {
	t.Helper()
	s := &signer{t: t, folder: folder}
	s.cert = &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	s.key = s.sign(name, s.cert, "ca")
	return s
}

// server makes the certificate of a server.
func (s *signer) server(name string) {
	s.t.Helper()
	s.sign(name, &x509.Certificate{SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, "pem")
}

// names makes a certificate of the names, which holds for that long yet.
func (s *signer) names(name string, holds time.Duration, names ...string) {
	s.t.Helper()
	s.sign(name, &x509.Certificate{SerialNumber: big.NewInt(3), DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(holds),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, "pem")
}

// serves is how a server of this test proves itself with a certificate.
func (s *signer) serves(name string) *tls.Config {
	s.t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(s.folder, name+".pem"), filepath.Join(s.folder, name+".key"))
	if err != nil {
		s.t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

func (s *signer) sign(name string, about *x509.Certificate, extension string) *ecdsa.PrivateKey {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	by := s.key
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, about, s.cert, key.Public(), by)
	if err != nil {
		s.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{name + "." + extension: {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(s.folder, path), pem.EncodeToMemory(block), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	return key
}

// M04, M09, M10, B9: a fleet over TLS, each part a process: two control planes whose
// servers are one cluster and prove themselves to each other, and a runner that is linked
// to one and runs what the other admits. Who speaks plain text, trusts somebody else, names
// the server as its certificate does not, or has a key that nobody knows is let in nowhere,
// and is told why.
func TestFleetOverTLS(t *testing.T) {
	t.Parallel()                                                                                // it waits for most of its time
	f := &aFleet{served: newServed(t, nil), folder: t.TempDir(), runners: map[string]*served{}} // served is the operator's
	ours, theirs := newSigner(t, f.folder, "ours"), newSigner(t, f.folder, "theirs")
	ours.server("a")
	ours.server("b")
	theirs.server("c")
	ticketKeys(t, f.folder)
	if err := os.WriteFile(f.file("secret"), []byte("a secret of the test alone\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	members, operator := "main/r1 "+f.joinKey("r1")+",main/r2 "+f.joinKey("r2"), "main "+f.joinKey("operator")
	f.joinKey("stranger")
	plane := func(name, routes string) *served {
		return newServed(t, map[string]string{"TRACON_EXECUTOR": "fleet", "TRACON_FLEET_TIER": "process", "TRACON_TRUST_CLAIMED": "true", "TRACON_FLEET_TICKET_KEY": f.file("ticket.pem"),
			"TRACON_TLS_CERT": f.file(name + ".pem"), "TRACON_TLS_KEY": f.file(name + ".key"), "TRACON_FLEET_CA_FILE": f.file("ours.ca"), "TRACON_FLEET_LISTEN": "127.0.0.1:0",
			"TRACON_FLEET_MEMBERS": members, "TRACON_FLEET_HOSTS": operator, "TRACON_FLEET_CLUSTER_LISTEN": "127.0.0.1:0", "TRACON_FLEET_ROUTES": routes, "TRACON_FLEET_SECRET_FILE": f.file("secret")}).start()
	}
	at := func(s *served) (address, cluster string) {
		t.Helper()
		var line struct{ Address, Cluster string }
		if err := json.Unmarshal([]byte(s.said("runners may join")), &line); err != nil {
			t.Fatal(err)
		}
		return line.Address, line.Cluster
	}
	a := plane("a", "")
	first, cluster := at(a)
	b := plane("b", cluster)
	second, _ := at(b)

	// What an operator sees, by a key of his own.
	for _, k := range []string{"EXECUTOR", "FLEET_TIER", "TRUST_CLAIMED", "FLEET_TICKET_KEY", "FLEET_CA_FILE", "FLEET_LISTEN", "TLS_CERT", "TLS_KEY"} {
		f.env["TRACON_"+k] = a.env["TRACON_"+k]
	}
	maps.Copy(f.env, map[string]string{"TRACON_FLEET_URLS": "tls://" + first, "TRACON_FLEET_SEED_FILE": f.file("operator.seed"), "TRACON_CONFIG": "tracon.yaml"})
	f.write("tracon.yaml", "enabled: true\ninterpreters: {sh: 'runtime:sh'}\n")
	f.says(t, "pool main", nil, "the server is reached, and no runner is there", "fleet_join: main")
	runner := func(name, url, ca string) {
		f.runner(name).env["TRACON_FLEET_URLS"] = url
		f.runner(name).env["TRACON_FLEET_CA_FILE"] = f.file(ca)
		f.join(name)
	}
	runner("r1", "tls://"+second, "ours.ca")
	f.await("the runner is there", idle(1))
	f.says(t, "pool main", nil, "r1: tier process, runtimes sh, 0 of 4 places taken", "")

	c := a.setUpBy("runtime:sh", "acme", "echo over TLS\n")
	run, err := c.StartRun(t.Context(), client.NewRun{Skill: "s", Script: "s.sh", Arguments: json.RawMessage("[]")}, client.RunOptions{})
	if err != nil || run.Code != "" || run.Stdout == nil || *run.Stdout != "over TLS\n" {
		t.Errorf("through the cluster: %+v, %v", run, err)
	}

	runner("r2", "tls://"+second, "theirs.ca")
	if line := f.runner("r2").said("the fleet is not reached"); !strings.Contains(line, "signed by nobody who is trusted here") {
		t.Errorf("a runner that trusts somebody else says %s", line)
	}
	stranger := plane("c", cluster)
	a.said("TLS route handshake error")
	f.await("nobody else is there", idle(1))

	_, port, err := net.SplitHostPort(first)
	if err != nil {
		t.Fatal(err)
	}
	strangers, _ := at(stranger)
	for _, tt := range []struct {
		name, detail, remedy string
		env                  map[string]string
	}{
		{"another authority", "signed by nobody who is trusted here", "fleet_urls", map[string]string{"TRACON_FLEET_CA_FILE": f.file("theirs.ca")}},
		{"another name", "name the server in fleet_urls as its certificate does", "fleet_urls", map[string]string{"TRACON_FLEET_URLS": "tls://localhost:" + port}},
		{"plain text", "write tls:// in fleet_urls", "fleet_urls", map[string]string{"TRACON_FLEET_URLS": "nats://" + first}},
		{"a key that nobody knows", "does not know the key of fleet_seed_file", "key is known there", map[string]string{"TRACON_FLEET_SEED_FILE": f.file("stranger.seed")}},
		{"a server that is none of the cluster", "signed by nobody who is trusted here", "fleet_urls", map[string]string{"TRACON_FLEET_URLS": "tls://" + strangers}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f.says(t, "pool main", tt.env, tt.detail, tt.remedy)
		})
	}
	f.says(t, "runners", map[string]string{"TRACON_FLEET_URLS": "nats://192.0.2.1:4222"}, "plain text and not on this machine", "mend what the sentence names")
	f.says(t, "runners", map[string]string{"TRACON_FLEET_URLS": ""}, "there is no server to speak to", "tracon runner join-key")
	f.operator("runner", "drain", "r1")
	f.says(t, "pool main", nil, "draining", "r1 drains and takes no more runs")
}
