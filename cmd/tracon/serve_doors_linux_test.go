package main

import (
	"archive/tar"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// Clients that hang, send garbage or only connect hurt themselves: others are
// answered beside them, and the end does not wait for them.
func TestServeBesideBadClients(t *testing.T) {
	s := newServed(t, map[string]string{"TRACON_DRAIN": "1ms"}).start()
	c := s.setUp("acme", "echo fine\n")
	at := strings.TrimPrefix(s.Address, "http://")
	for i := range 100 {
		bad, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = bad.Close() })
		_, _ = io.WriteString(bad, []string{"", "GET / HT", "\x16\x03\x01\x02\x00", "POST /v1/runs HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n", "x\r\n\r\n"}[i%5])
	}
	run, err := c.StartRun(t.Context(), client.NewRun{Skill: "s", Script: "s.sh", Arguments: json.RawMessage("[]")}, client.RunOptions{})
	if err != nil || run.Stdout == nil || *run.Stdout != "fine\n" {
		t.Errorf("%+v, %v", run, err)
	}
	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// W09, W13: the socket is its owner's alone, and what comes to it through a proxy is nobody's;
// a server of this machine answers no name of elsewhere without a credential.
func TestServeDoors(t *testing.T) {
	s := newServed(t, nil).start()
	if info, err := os.Lstat(s.Socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info.Mode(), err)
	}
	socket := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.Socket)
	}}}
	ask := func(c *http.Client, url, host string, header map[string]string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		for k, v := range header {
			r.Header.Set(k, v)
		}
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, tt := range []struct {
		name   string
		client *http.Client
		url    string
		host   string
		header map[string]string
		want   int
	}{
		{"the socket", socket, "http://tracon/v1/whoami", "", nil, 200},
		{"the socket, for a tenant", socket, "http://tracon/v1/skills", "", map[string]string{"Tracon-Tenant": "acme"}, 200},
		{"the socket, for no tenant that can be", socket, "http://tracon/v1/skills", "", map[string]string{"Tracon-Tenant": "a\tb"}, 401},
		{"the socket, as the platform in a tenant's", socket, "http://tracon/v1/skills", "", nil, 403},
		{"the socket, through a proxy", socket, "http://tracon/v1/whoami", "", map[string]string{"X-Forwarded-For": "192.0.2.1"}, 401},
		{"the socket, through another proxy", socket, "http://tracon/v1/whoami", "", map[string]string{"Forwarded": "for=192.0.2.1"}, 401},
		{"the socket, with a key that is none", socket, "http://tracon/v1/whoami", "", map[string]string{"Authorization": "Bearer tracon_x_y"}, 401},
		{"metrics by the socket", socket, "http://tracon/metrics", "", nil, 200},
		{"metrics by the socket, for a tenant", socket, "http://tracon/metrics", "", map[string]string{"Tracon-Tenant": "acme"}, 403},
		{"the address without a key", plain, s.Address + "/v1/whoami", "", nil, 401},
		{"the address, for a tenant", plain, s.Address + "/v1/whoami", "", map[string]string{"Tracon-Tenant": "acme"}, 401},
		{"metrics without a key", plain, s.Address + "/metrics", "", nil, 401},
		{"health", plain, s.Address + "/healthz", "", nil, 200},
		{"health by a name of elsewhere", plain, s.Address + "/healthz", "rebound.example.org", nil, 403},
		{"health by the name of this machine", plain, s.Address + "/healthz", "localhost", nil, 200},
	} {
		if got := ask(tt.client, tt.url, tt.host, tt.header); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// W03: who guesses keys is told to come later, at the API, at /mcp and at /metrics; a good
// key from the same machine goes on, and so does one that was not seen before while what
// came could be no key; the log tells once, with how often. W01, W13: no credential lets
// nobody in there. Every other request has its line and its id.
func TestServeBesideGuesses(t *testing.T) {
	s := newServed(t, nil).start()
	s.setUp("acme", "echo fine\n")
	var keys []string
	for _, name := range []string{"seen", "unseen", "revoked"} {
		key, err := s.as("acme").CreateKey(t.Context(), "", client.NewKey{Name: name, Roles: []string{"operator"}})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key.Secret)
		if name == "revoked" {
			if _, err := s.as("acme").RevokeKey(t.Context(), "", key.Key.ID, "*", ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.with(keys[0]).Whoami(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask := func(path, key string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		return answer
	}
	paths := []string{"/v1/whoami", "/mcp", "/metrics"}
	for _, path := range paths {
		answer := ask(path, "")
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a key: %d, want 401", path, answer.StatusCode)
		}
		s.said(answer.Header.Get("Tracon-Request-Id"))
	}
	guess := func(key string) {
		t.Helper()
		seen := map[int]int{}
		eventually(t, "a guess is not looked at", func() bool {
			for _, path := range paths {
				seen[ask(path, key).StatusCode]++
			}
			return seen[429] > 0
		})
		if seen[401] < 20 || len(seen) != 2 {
			t.Errorf("guesses were answered %v, want 401 and then 429", seen)
		}
	}
	guess("tracon_no-key-at-all")
	if _, err := s.with(keys[1]).Whoami(t.Context()); err != nil {
		t.Errorf("a key that was not seen before: %v", err)
	}
	guess(keys[2])
	if _, err := s.with(keys[0]).Whoami(t.Context()); err != nil {
		t.Errorf("a key that held before: %v", err)
	}
	for _, path := range paths {
		eventually(t, "a guess is not looked at", func() bool { // where a second has passed, one is
			answer := ask(path, keys[2])
			if answer.StatusCode == http.StatusUnauthorized {
				return false
			}
			if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" || answer.Header.Get("Tracon-Request-Id") == "" ||
				answer.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: %d, %v", path, answer.StatusCode, answer.Header)
			}
			return true
		})
	}
	s.said("credentials were not looked at")
	for _, line := range s.lines() {
		if strings.Contains(line, `"status":429`) {
			t.Errorf("a guess has a line of its own: %s", line)
		}
	}
}

// B10: an archive that comes slowly keeps nobody from what the host is asked besides; nor
// do bodies of runs that were announced and never come. T16: a tenant that is
// at its rate is so by its own keys; its operator at the socket gets in.
func TestServeBesideSlowBodies(t *testing.T) {
	s := newServed(t, map[string]string{"TRACON_DRAIN": "1ms"}).start()
	c := s.setUp("acme", "echo fine\n")
	key, err := c.CreateKey(t.Context(), "", client.NewKey{Name: "ci", Roles: []string{"operator"}})
	if err != nil {
		t.Fatal(err)
	}
	slow, err := s.setUp("slow", "echo fine\n").CreateKey(t.Context(), "", client.NewKey{Name: "ci", Roles: []string{"operator"}})
	if err != nil {
		t.Fatal(err)
	}
	archive, hold := io.Pipe()
	defer func() { _ = hold.Close() }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://tracon/v1/runtimes/slow?reason=slow", archive)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-tar")
	socket := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.Socket)
	}}}
	answered := make(chan error, 1)
	go func() {
		answer, err := socket.Do(r)
		if err == nil {
			_ = answer.Body.Close()
		}
		answered <- err
	}()
	half := tar.NewWriter(hold)
	if err := half.WriteHeader(&tar.Header{Name: "file", Typeflag: tar.TypeReg, Mode: 0o644, Size: 8 << 20}); err != nil {
		t.Fatal(err)
	}
	if _, err := half.Write(make([]byte, 4<<20)); err != nil { // more than lies between: it is being read
		t.Fatal(err)
	}
	if _, err := s.as("").VerifyLog(t.Context()); err != nil {
		t.Errorf("the log: %v", err)
	}

	at := strings.TrimPrefix(s.Address, "http://")
	for range 100 {
		silent, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = silent.Close() })
		_, _ = io.WriteString(silent, "POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer "+key.Secret+"\r\nContent-Length: 50000000\r\n\r\n")
	}
	fine := func(c *client.Client) {
		t.Helper()
		run, err := c.StartRun(t.Context(), client.NewRun{Skill: "s", Script: "s.sh", Arguments: json.RawMessage("[]")}, client.RunOptions{})
		if err != nil || run.Stdout == nil || *run.Stdout != "fine\n" {
			t.Errorf("a run beside it: %+v, %v", run, err)
		}
	}
	fine(s.with(key.Secret))

	_, etag, err := s.as("").Tenant(t.Context(), "slow")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.as("").ChangeTenant(t.Context(), "slow", etag, client.TenantChange{Rates: &client.Rates{Requests: 1e-6, Burst: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.with(slow.Secret).Whoami(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.with(slow.Secret).Whoami(t.Context()); !errors.Is(err, client.RateLimited) {
		t.Errorf("above its rate: %v", err)
	}
	fine(s.as("slow"))
	_ = hold.Close()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// No secret, no argument, no output and no text of a script stands in the log, on a
// span or on a metric.
func TestServeTellsNoSecret(t *testing.T) {
	var spans sync.Map
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		spans.Store(string(b), true)
	}))
	defer collector.Close()
	const canary = "canary-h8d2"
	s := newServed(t, map[string]string{"TRACON_TRACES": collector.URL + "/v1/traces"}).start()
	c := s.setUp("acme", "# "+canary+"-text\necho "+canary+"-output; echo "+canary+"-error >&2\nexit 3\n")
	key, err := s.as("acme").CreateKey(t.Context(), "", client.NewKey{Name: "ci", Roles: []string{"operator"}})
	if err != nil {
		t.Fatal(err)
	}
	arguments := json.RawMessage(`["` + canary + `-argument"]`)
	for _, who := range []*client.Client{c, s.with(key.Secret)} {
		run, err := who.StartRun(t.Context(), client.NewRun{Skill: "s", Script: "s.sh", Arguments: arguments}, client.RunOptions{})
		if err != nil || run.ExitCode == nil || *run.ExitCode != 3 {
			t.Fatalf("%+v, %v", run, err)
		}
	}
	// Refused by the gate of arguments, by one of the API, and by the credential.
	for _, bad := range []string{`{"x":"` + canary + `-refused"}`, `["` + canary + `-twice"] []`} {
		_, _ = c.StartRun(t.Context(), client.NewRun{Skill: "s", Script: "s.sh", Arguments: json.RawMessage(bad)}, client.RunOptions{})
	}
	_, _ = s.with(key.Secret + canary).Whoami(t.Context())
	_, _ = c.Skills(t.Context())
	_, _, _ = c.Grant(t.Context(), canary+"-in-the-path")

	var metrics strings.Builder
	socket := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.Socket)
	}}}
	answer, err := socket.Get("http://tracon/metrics")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(&metrics, answer.Body)
	_ = answer.Body.Close()
	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	told := map[string]string{"the log": strings.Join(s.lines(), "\n"), "the metrics": metrics.String(), "the spans": ""}
	spans.Range(func(k, _ any) bool { told["the spans"] += k.(string); return true })
	for where, text := range told {
		for _, not := range []string{canary, key.Secret} {
			if at := strings.Index(text, not); at >= 0 {
				t.Errorf("%s: %q", where, text[max(at-200, 0):min(at+100, len(text))])
			}
		}
	}
	for where, want := range map[string]string{"the log": `"operation":"start-run"`, "the metrics": "tracon_runs_total", "the spans": "execute_tool run_skill_script s s.sh"} {
		if !strings.Contains(told[where], want) {
			t.Errorf("%s: no %q", where, want)
		}
	}
	for _, line := range s.lines() {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is no JSON: %s", line)
		}
	}
}

// Tokens of an identity provider let in beside keys, into the tenant that they name
// where somebody made it and it is on.
func TestServeTakesTokens(t *testing.T) {
	provider, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Server.Close() })
	s := newServed(t, map[string]string{
		"TRACON_OIDC_ISSUER": provider.Issuer(), "TRACON_OIDC_AUDIENCE": "tracon", "TRACON_OIDC_TENANT_CLAIM": "org",
		"TRACON_OIDC_ROLES_CLAIM": "groups", "TRACON_OIDC_ROLES": "staff=operator", "TRACON_OIDC_REACH": "loopback",
	}).start()
	s.setUp("acme", "echo fine\n")
	token := func(tenant string) string {
		t.Helper()
		now := time.Now()
		text, err := provider.Keypair.SignJWT(jwt.MapClaims{"iss": provider.Issuer(), "aud": "tracon", "sub": "u-1", "org": tenant, "groups": []string{"staff"},
			"iat": now.Unix(), "exp": now.Add(time.Hour).Unix()})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	who, err := s.with(token("acme")).Whoami(t.Context())
	if err != nil || who.Tenant != "acme" || who.Actor != "oidc u-1" || !slices.Equal(who.Roles, []string{"operator"}) {
		t.Errorf("%+v, %v", who, err)
	}
	run, err := s.with(token("acme")).StartRun(t.Context(), client.NewRun{Skill: "s", Script: "s.sh", Arguments: json.RawMessage("[]")}, client.RunOptions{})
	if err != nil || run.Actor != "oidc u-1" || run.Stdout == nil || *run.Stdout != "fine\n" {
		t.Errorf("%+v, %v", run, err)
	}
	if _, err := s.with(token("nobody-made-it")).Whoami(t.Context()); !errors.Is(err, client.Unauthenticated) {
		t.Errorf("a tenant that nobody made: %v", err)
	}
	_, etag, err := s.as("").Tenant(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	off := true
	if _, err := s.as("").ChangeTenant(t.Context(), "acme", etag, client.TenantChange{Off: &off}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.with(token("acme")).Whoami(t.Context()); !errors.Is(err, client.Unauthenticated) {
		t.Errorf("a tenant that is off: %v", err)
	}
}

// With a certificate it listens to other machines, and takes a new one on SIGHUP.
func TestServeRenewsItsCertificate(t *testing.T) {
	s := newServed(t, nil)
	cert, key := filepath.Join(s.folder, "cert.pem"), filepath.Join(s.folder, "key.pem")
	roots := x509.NewCertPool()
	renew := func(serial int64) {
		t.Helper()
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		about := &x509.Certificate{SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
		der, err := x509.CreateCertificate(rand.Reader, about, about, k.Public(), k)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			t.Fatal(err)
		}
		for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
			if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		roots.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	renew(1)
	s.env["TRACON_TLS_CERT"], s.env["TRACON_TLS_KEY"] = cert, key
	s.start()
	serial := func() int64 {
		t.Helper()
		// Each asks anew, over a connection of its own.
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots.Clone()}, DisableKeepAlives: true, ForceAttemptHTTP2: true}}
		answer, err := c.Get(s.Address + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.ProtoMajor != 2 || answer.TLS.Version < tls.VersionTLS12 {
			t.Errorf("it speaks %s over TLS %x", answer.Proto, answer.TLS.Version)
		}
		return answer.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 1 || !strings.HasPrefix(s.Address, "https://") {
		t.Errorf("%s has the certificate %d", s.Address, got)
	}
	renew(2)
	s.signal(syscall.SIGHUP)
	s.said(`"msg":"reloaded"`)
	if got := serial(); got != 2 {
		t.Errorf("it has the certificate %d, want the new one", got)
	}
	if err := os.WriteFile(cert, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGHUP)
	s.said("not reloaded")
	if got := serial(); got != 2 {
		t.Errorf("it has the certificate %d, want the one before", got)
	}
}
