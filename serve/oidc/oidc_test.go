package oidc

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/oauth2-proxy/mockoidc"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/internal/outbound"
)

const audience = "tracon"

// provider is an identity provider on this machine.
type provider struct {
	*mockoidc.MockOIDC
	asked        atomic.Int64 // for its keys
	down, noKeys atomic.Bool
	hangs        atomic.Pointer[chan struct{}] // answers nobody until it is closed; nil: it answers
	began        atomic.Int64                  // requests of any kind
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	m, err := mockoidc.NewServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{MockOIDC: m}
	err = m.AddMiddleware(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.began.Add(1)
			if hangs := p.hangs.Load(); hangs != nil {
				<-*hangs
			}
			if p.down.Load() {
				http.Error(w, "secret-of-the-provider", http.StatusInternalServerError)
				return
			}
			if r.URL.Path == mockoidc.JWKSEndpoint {
				if p.noKeys.Load() {
					_, _ = w.Write([]byte("no keys"))
					return
				}
				p.asked.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(l, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Server.Close() })
	return p
}

func (p *provider) config() Config {
	return Config{
		Issuer: p.Issuer(), Audience: audience, TenantClaim: "org", RolesClaim: "realm_access.roles", Reach: []string{outbound.Loopback},
		Roles: map[string]access.Role{"run": access.Operator, "grant": access.Approver, "root": access.Platform},
	}
}

// claims are those of somebody of the tenant acme who may run scripts.
func (p *provider) claims() jwt.MapClaims {
	now := time.Now()
	return jwt.MapClaims{"iss": p.Issuer(), "aud": []string{"other", audience}, "sub": "u-1", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"org": "acme", "realm_access": map[string]any{"roles": []string{"run", "unknown"}}}
}

func sign(t *testing.T, k *mockoidc.Keypair, c jwt.MapClaims) string {
	t.Helper()
	text, err := k.SignJWT(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func newVerifier(t *testing.T, c Config) *Verifier {
	t.Helper()
	v, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.ask.base.CloseIdleConnections() })
	return v
}

// Claims become a tenant and roles; what holds for another, at another time, or of
// nobody, lets nobody in.
func TestTokens(t *testing.T) {
	p := newProvider(t)
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	roles := func(list ...any) any { return map[string]any{"roles": list} }
	stranger, err := mockoidc.RandomKeypair(2048)
	if err != nil {
		t.Fatal(err)
	}
	stranger.Kid, _ = p.Keypair.KeyID()
	tests := []struct {
		name   string
		claims map[string]any // over those of claims; nil takes one away
		config func(*Config)
		key    *mockoidc.Keypair
		want   *access.Principal // nil: ErrToken
	}{
		{name: "good", want: &access.Principal{Tenant: "acme", Actor: "oidc u-1", Roles: []access.Role{access.Operator}}},
		{name: "two roles", claims: map[string]any{"realm_access": roles("grant", "run", "run", 7)},
			want: &access.Principal{Tenant: "acme", Actor: "oidc u-1", Roles: []access.Role{access.Approver, access.Operator}}},
		{name: "a role as text", claims: map[string]any{"realm_access": map[string]any{"roles": "grant"}},
			want: &access.Principal{Tenant: "acme", Actor: "oidc u-1", Roles: []access.Role{access.Approver}}},
		{name: "a claim with points in its name", claims: map[string]any{"realm_access.roles": "grant"},
			want: &access.Principal{Tenant: "acme", Actor: "oidc u-1", Roles: []access.Role{access.Approver}}},
		{name: "the platform", claims: map[string]any{"realm_access": roles("root"), "org": nil},
			want: &access.Principal{Actor: "oidc u-1", Roles: []access.Role{access.Platform}}},
		{name: "one tenant for all", config: func(c *Config) { c.Tenant, c.TenantClaim = "only", "" },
			want: &access.Principal{Tenant: "only", Actor: "oidc u-1", Roles: []access.Role{access.Operator}}},
		{name: "within the skew", claims: map[string]any{"exp": at(-30 * time.Second)},
			want: &access.Principal{Tenant: "acme", Actor: "oidc u-1", Roles: []access.Role{access.Operator}}},

		{name: "the platform with a tenant", claims: map[string]any{"realm_access": roles("root")}},
		{name: "the platform with another role", claims: map[string]any{"realm_access": roles("root", "run"), "org": nil}},
		{name: "no role", claims: map[string]any{"realm_access": nil}},
		{name: "no role that is mapped", claims: map[string]any{"realm_access": roles("unknown")}},
		{name: "a role in another case", claims: map[string]any{"realm_access": roles("Run")}},
		{name: "no tenant", claims: map[string]any{"org": nil}},
		{name: "a tenant in another case of the claim", claims: map[string]any{"org": nil, "ORG": "acme"}},
		{name: "a tenant that is a list", claims: map[string]any{"org": []string{"acme", "b"}}},
		{name: "expired", claims: map[string]any{"exp": at(-2 * time.Minute)}},
		{name: "no end", claims: map[string]any{"exp": nil}},
		{name: "not yet", claims: map[string]any{"nbf": at(time.Hour)}},
		{name: "from the future", claims: map[string]any{"iat": at(time.Hour)}},
		{name: "for another", claims: map[string]any{"aud": "other"}},
		{name: "for nobody", claims: map[string]any{"aud": nil}},
		{name: "of another", claims: map[string]any{"iss": "https://login.example.org"}},
		{name: "no subject", claims: map[string]any{"sub": ""}},
		{name: "a subject with a line feed", claims: map[string]any{"sub": "u\nroot"}},
		{name: "a subject too long", claims: map[string]any{"sub": strings.Repeat("u", maxSubject+1)}},
		{name: "another's signature", key: stranger},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			config, claims, key := p.config(), p.claims(), p.Keypair
			if tt.config != nil {
				tt.config(&config)
			}
			for name, v := range tt.claims {
				if claims[name] = v; v == nil {
					delete(claims, name)
				}
			}
			if tt.key != nil {
				key = tt.key
			}
			got, err := newVerifier(t, config).Principal(t.Context(), sign(t, key, claims))
			if tt.want == nil {
				if !errors.Is(err, ErrToken) {
					t.Errorf("%+v, %v; want ErrToken", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(*tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is signed by nobody, or with the public key as if it were a secret, and what
// is no token at all, lets nobody in.
func TestForms(t *testing.T) {
	p := newProvider(t)
	v := newVerifier(t, p.config())
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, p.claims()).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	jwks, err := p.Keypair.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	hmac, err := jwt.NewWithClaims(jwt.SigningMethodHS256, p.claims()).SignedString(jwks)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "x", "ey..", "tracon_abc_def", none, hmac, strings.Repeat("ey.", 1<<20), "ey" + strings.Repeat("a", MaxToken) + ".b.c"} {
		if _, err := v.Principal(t.Context(), text); !errors.Is(err, ErrToken) {
			t.Errorf("%.40q: %v, want ErrToken", text, err)
		}
	}
}

// Keys rotate: a token by a new key holds without anybody's hand. Tokens by keys that
// nobody has do not make us ask again and again.
func TestRotation(t *testing.T) {
	p := newProvider(t)
	v := newVerifier(t, p.config())
	old := sign(t, p.Keypair, p.claims())
	if _, err := v.Principal(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	stranger, err := mockoidc.RandomKeypair(2048)
	if err != nil {
		t.Fatal(err)
	}
	v.ask.mu.Lock()
	v.ask.last = time.Time{}
	v.ask.mu.Unlock()
	before := p.asked.Load()
	for range 20 {
		if _, err := v.Principal(t.Context(), sign(t, stranger, p.claims())); !errors.Is(err, ErrToken) {
			t.Fatalf("err = %v, want ErrToken", err)
		}
	}
	if n := p.asked.Load() - before; n != 1 {
		t.Errorf("twenty tokens of a stranger had the keys asked for %d times, want once", n)
	}
	if _, err := v.Principal(t.Context(), old); err != nil {
		t.Errorf("beside it: %v", err)
	}

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	if p.Keypair, err = mockoidc.NewKeypair(key); err != nil {
		t.Fatal(err)
	}
	v.ask.mu.Lock()
	v.ask.last = time.Now().Add(-askAgain) // as when the time has passed
	v.ask.mu.Unlock()
	if _, err := v.Principal(t.Context(), sign(t, p.Keypair, p.claims())); err != nil {
		t.Errorf("by the new key: %v", err)
	}
	// The provider took the old key back, and the next look at it says so.
	v.since = time.Now().Add(-refreshKeys)
	v.tried = time.Time{}
	if _, err := v.Principal(t.Context(), old); !errors.Is(err, ErrToken) {
		t.Errorf("by the key that was taken back: %v, want ErrToken", err)
	}
}

// A provider that is down is no reason to say that a token is wrong, nor to trust
// what it said for ever; when it is back, nobody's hand is needed.
func TestProviderDown(t *testing.T) {
	p := newProvider(t)
	v := newVerifier(t, p.config())
	v.ask.again = 0
	token := sign(t, p.Keypair, p.claims())
	p.down.Store(true)
	if _, err := v.Principal(t.Context(), token); err == nil || errors.Is(err, ErrToken) || strings.Contains(err.Error(), "secret-of-the-provider") {
		t.Errorf("err = %v, want one that says it could not be asked, and nothing of its answer", err)
	}
	p.down.Store(false)
	if _, err := v.Principal(t.Context(), token); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	p.down.Store(true)
	v.since = time.Now().Add(-refreshKeys)
	if _, err := v.Principal(t.Context(), token); err != nil {
		t.Errorf("down for a quarter of an hour: %v", err)
	}
	v.since = time.Now().Add(-keepKeys)
	if _, err := v.Principal(t.Context(), token); err == nil || errors.Is(err, ErrToken) {
		t.Errorf("down for an hour: %v, want an error that is not the token's", err)
	}
}

// B10: a provider that hangs is asked by one, for whom those who come without keys of
// before wait as long as they like; with such keys nobody waits for it; and what failed
// is not tried again at once.
func TestProviderHangs(t *testing.T) {
	p := newProvider(t)
	v := newVerifier(t, p.config())
	token := sign(t, p.Keypair, p.claims())
	hangs := make(chan struct{})
	p.hangs.Store(&hangs)
	gone := errors.New("the client is gone")
	ctx, leave := context.WithCancelCause(t.Context())
	var waiting sync.WaitGroup
	for range 20 {
		waiting.Go(func() {
			if _, err := v.Principal(ctx, token); !errors.Is(err, gone) {
				t.Errorf("err = %v, want the cause of the context", err)
			}
		})
	}
	for p.began.Load() == 0 {
		runtime.Gosched()
	}
	leave(gone)
	waiting.Wait()
	if n := p.began.Load(); n != 1 {
		t.Errorf("twenty tokens had it asked %d times, want once", n)
	}
	p.hangs.Store(nil)
	close(hangs)
	if _, err := v.Principal(t.Context(), token); err != nil {
		t.Fatalf("when it answers: %v", err)
	}

	hangs = make(chan struct{})
	p.hangs.Store(&hangs)
	v.mu.Lock()
	v.since, v.tried, v.patience = time.Now().Add(-refreshKeys), time.Time{}, 0
	v.mu.Unlock()
	before := p.began.Load()
	for range 20 {
		if _, err := v.Principal(t.Context(), token); err != nil {
			t.Errorf("by the keys of before: %v", err)
		}
	}
	for p.began.Load() == before {
		runtime.Gosched()
	}
	if n := p.began.Load() - before; n != 1 {
		t.Errorf("it was asked %d times, want once", n)
	}
	p.down.Store(true)
	v.mu.Lock()
	asking := v.asking
	v.mu.Unlock()
	close(hangs)
	<-asking
	p.hangs.Store(nil)
	before = p.began.Load()
	for range 20 {
		if _, err := v.Principal(t.Context(), token); err != nil {
			t.Errorf("after it failed: %v", err)
		}
	}
	if n := p.began.Load() - before; n != 0 {
		t.Errorf("what had just failed was tried %d times again", n)
	}
}

// A provider that tells of itself and gives no keys has said nothing: those of before
// stay in use.
func TestKeysOfBefore(t *testing.T) {
	p := newProvider(t)
	v := newVerifier(t, p.config())
	v.ask.again = 0
	token := sign(t, p.Keypair, p.claims())
	if _, err := v.Principal(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	p.noKeys.Store(true)
	v.since = time.Now().Add(-refreshKeys)
	if _, err := v.Principal(t.Context(), token); err != nil {
		t.Errorf("without new keys: %v", err)
	}
	v.since = time.Now().Add(-keepKeys)
	if _, err := v.Principal(t.Context(), token); err == nil || errors.Is(err, ErrToken) {
		t.Errorf("an hour later: %v, want an error that is not the token's", err)
	}
}

// W10: without the word nothing on this machine is asked, by whatever name; a
// redirect is not followed, not even to where it would be allowed.
func TestAsksNobodyElse(t *testing.T) {
	p := newProvider(t)
	c := p.config()
	c.Reach = nil
	c.Issuer = strings.Replace(strings.Replace(p.Issuer(), "http://", "https://", 1), "127.0.0.1", "localhost", 1)
	if _, err := newVerifier(t, c).Principal(t.Context(), sign(t, p.Keypair, p.claims())); err == nil || !strings.Contains(err.Error(), outbound.Loopback) {
		t.Errorf("err = %v, want one that names the word", err)
	}

	var followed atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: mux}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	c = p.config()
	c.Issuer = "http://" + l.Addr().String()
	if _, err := newVerifier(t, c).Principal(t.Context(), sign(t, p.Keypair, p.claims())); err == nil || errors.Is(err, ErrToken) || followed.Load() != 0 {
		t.Errorf("err = %v, followed %d times", err, followed.Load())
	}
}

// What cannot hold is said at the start.
func TestConfig(t *testing.T) {
	good := Config{Issuer: "https://login.example.org", Audience: "a", TenantClaim: "t", RolesClaim: "r", Roles: map[string]access.Role{"x": access.Reader}}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no issuer": func(c *Config) { c.Issuer = "" }, "http": func(c *Config) { c.Issuer = "http://login.example.org" },
		"http on this machine without the word": func(c *Config) { c.Issuer = "http://127.0.0.1:1" },
		"http elsewhere with the word":          func(c *Config) { c.Issuer, c.Reach = "http://login.example.org", []string{outbound.Loopback} },
		"a password":                            func(c *Config) { c.Issuer = "https://u:p@login.example.org" },
		"no audience":                           func(c *Config) { c.Audience = "" },
		"no tenant":                             func(c *Config) { c.TenantClaim = "" }, "two tenants": func(c *Config) { c.Tenant = "t" },
		"no claim of roles": func(c *Config) { c.RolesClaim = "" }, "no roles": func(c *Config) { c.Roles = nil },
		"a role that is none": func(c *Config) { c.Roles = map[string]access.Role{"x": "boss"} },
		"a word that is none": func(c *Config) { c.Reach = []string{"everywhere"} },
		"clocks an hour off":  func(c *Config) { c.Skew = time.Hour },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Whatever a provider signs, what comes of it is somebody of one tenant with a role of
// the map, or of the platform alone, or nobody.
func FuzzClaims(f *testing.F) {
	for _, claims := range []string{
		`{"org":"acme","realm_access":{"roles":["run"]}}`, `{"realm_access.roles":"root"}`, `{"org":"acme","org":"b","realm_access":{"roles":["run"]}}`,
		`{"org":["acme"],"realm_access":{"roles":"run"}}`, `{"org":"","realm_access":{"roles":[1,"grant",null]}}`, `{"org":"acme","realm_access":{"roles":["root","run"]}}`, `[]`, `null`, ``,
	} {
		f.Add("u-1", claims)
	}
	roles := map[string]access.Role{"run": access.Operator, "grant": access.Approver, "root": access.Platform}
	f.Fuzz(func(t *testing.T, subject, claims string) {
		for _, c := range []Config{{TenantClaim: "org", RolesClaim: "realm_access.roles", Roles: roles}, {Tenant: "only", RolesClaim: "realm_access.roles", Roles: roles}} {
			p, err := c.principal(subject, []byte(claims))
			if err != nil {
				if !errors.Is(err, ErrToken) || p.Actor != "" || p.Tenant != "" || len(p.Roles) != 0 {
					t.Errorf("%+v, %v", p, err)
				}
				continue
			}
			platform := len(p.Roles) == 1 && p.Roles[0] == access.Platform
			if len(p.Roles) == 0 || platform != (p.Tenant == "") || p.IsPlatform() != platform || p.Actor == "oidc " || c.Tenant != "" && !platform && p.Tenant != c.Tenant {
				t.Errorf("%q of %q is %+v", claims, subject, p)
			}
			if platform && (p.May(access.ReadSkills) || p.May(access.WriteRuns)) || !platform && p.May(access.ReadHost) {
				t.Errorf("%+v may do what is another's", p)
			}
		}
	})
}
