package oidc

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/internal/outbound"
)

// What a [Config] means by zero, and how long the provider's word is taken.
const (
	DefaultSkew = time.Minute
	refreshKeys = 15 * time.Minute // then it is asked again
	keepKeys    = time.Hour        // then, where it cannot be asked, no token holds
	refreshWait = 2 * time.Second  // how long tokens wait for what it says now, where keys of before are there
	MaxToken    = 8 << 10          // bytes of a token
)

// Config says whose tokens hold, and what of them makes somebody of whom.
type Config struct {
	// Issuer is the provider's address, as its tokens have it. Required.
	Issuer string

	// Audience is whom tokens must be for: this installation's name at the provider.
	// Required.
	Audience string

	// Tenant is the tenant of everybody whom the provider knows. One of the two is required.
	Tenant string

	// TenantClaim is the claim that names the tenant.
	TenantClaim string

	// RolesClaim is the claim with somebody's roles or groups: a text or a list. A name
	// with points goes into what is in each other, where no claim has that very name.
	// Required.
	RolesClaim string

	// Roles says which of them is which role here; those that are not named give nothing.
	// Who has the platform's role has no tenant: a token that has both lets nobody in.
	// Required.
	Roles map[string]access.Role

	// Reach are words for where the provider may be besides the public internet:
	// outbound.Loopback, outbound.Private.
	Reach []string

	// Skew is how far the clocks may differ. Zero means a minute.
	Skew time.Duration

	// TLS is for the connection to the provider. Nil: the system's roots.
	TLS *tls.Config
}

// ErrToken is wrapped by the error of a token that lets nobody in. Its text is for
// the log.
var ErrToken = errors.New("oidc: the token does not hold")

// A Verifier says who tokens are. It is safe for concurrent use.
type Verifier struct {
	c   Config
	ask *asker

	patience time.Duration // see refreshWait

	mu     sync.Mutex
	now    *oidc.IDTokenVerifier
	since  time.Time     // of now
	asking chan struct{} // closed when the provider has been asked; nil: nobody asks
	tried  time.Time     // when somebody began to ask
	failed error         // of the last try
}

// New returns a Verifier for c. It asks nobody yet.
//
// # Errors
//
// One that says which field cannot hold.
func New(c Config) (*Verifier, error) {
	c.Skew = cmp.Or(c.Skew, DefaultSkew)
	reach, err := outbound.ParseReach("oidc_reach", c.Reach)
	if err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	u, err := url.Parse(c.Issuer)
	if err != nil || u.RawQuery != "" {
		return nil, errors.New("oidc: the issuer is no address; write one such as https://login.example.org") // it may have a password
	}
	switch err := reach.CheckURL(u); {
	case err != nil:
		return nil, fmt.Errorf("oidc: the issuer: %w", err)
	case c.Audience == "":
		return nil, errors.New("oidc: there is no audience: a token for another program would let in")
	case (c.Tenant == "") == (c.TenantClaim == ""):
		return nil, errors.New("oidc: name the tenant, or the claim that names it: one of the two")
	case c.RolesClaim == "" || len(c.Roles) == 0:
		return nil, errors.New("oidc: name the claim of the roles, and which of them is which role here")
	case c.Skew < 0 || c.Skew > 5*time.Minute:
		return nil, errors.New("oidc: the clocks may differ by 5m at most")
	}
	for name, role := range c.Roles {
		if name == "" || !slices.Contains(access.Roles(), role) {
			return nil, fmt.Errorf("oidc: %q is mapped to %q, which is no role; there is: %s", name, role, access.List(access.Roles()))
		}
	}
	return &Verifier{c: c, patience: refreshWait, ask: newAsker(reach, u.Scheme == "http", c.TLS)}, nil
}

// IsToken reports whether a credential has the form of a token: three parts of
// base64. It says nothing of who it is.
func IsToken(text string) bool {
	return len(text) <= MaxToken && strings.HasPrefix(text, "ey") && strings.Count(text, ".") == 2
}

// Principal returns who the token is at this time. Whether the tenant is there, and
// on, is for access.Admit to say.
//
// # Errors
//
// One that wraps ErrToken; any other means that the provider could not be asked.
func (v *Verifier) Principal(ctx context.Context, token string) (access.Principal, error) {
	if !IsToken(token) {
		return access.Principal{}, fmt.Errorf("%w: it has not the form of one", ErrToken)
	}
	verifier, err := v.verifier(ctx)
	if err != nil {
		return access.Principal{}, err
	}
	ctx, reached := withAsked(ctx)
	t, err := verifier.Verify(ctx, token)
	if err != nil {
		if *reached != nil {
			return access.Principal{}, *reached
		}
		return access.Principal{}, fmt.Errorf("%w: %w", ErrToken, err)
	}
	if t.IssuedAt.After(time.Now().Add(v.c.Skew)) {
		return access.Principal{}, fmt.Errorf("%w: it is from the future", ErrToken)
	}
	var claims json.RawMessage
	if err := t.Claims(&claims); err != nil {
		return access.Principal{}, fmt.Errorf("%w: %w", ErrToken, err)
	}
	return v.c.principal(t.Subject, claims)
}

// verifier returns what checks tokens. The provider is asked again now and then, so
// that a key that it took back holds no longer: by one at a time, for whom the others
// wait, but not long where keys of before are there.
func (v *Verifier) verifier(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	v.mu.Lock()
	if v.now != nil && time.Since(v.since) < refreshKeys {
		defer v.mu.Unlock()
		return v.now, nil
	}
	if v.asking == nil && (v.tried.IsZero() || time.Since(v.tried) >= v.ask.again) {
		v.asking, v.tried = make(chan struct{}), time.Now()
		go v.refresh(v.asking)
	}
	asking, wait := v.asking, askTime+refreshWait // asking has a time of its own, which is shorter
	if v.holds() {
		wait = v.patience - time.Since(v.tried)
	}
	v.mu.Unlock()
	if asking != nil && wait > 0 {
		after := time.NewTimer(wait)
		defer after.Stop()
		select {
		case <-asking:
		case <-after.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.holds() {
		return v.now, nil
	}
	return nil, cmp.Or(v.failed, errUnreached)
}

// holds reports whether what the provider said last is taken still.
func (v *Verifier) holds() bool { return v.now != nil && time.Since(v.since) < keepKeys }

// refresh asks the provider, whatever becomes of the request that caused it: others
// wait for it too.
func (v *Verifier) refresh(done chan struct{}) {
	now, err := v.discover(context.Background())
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failed = err; err == nil {
		v.now, v.since = now, time.Now()
	}
	v.asking = nil
	close(done)
}

// probe has the form of a token, and is nobody's: whoever checks it has the keys.
const probe = "eyJhbGciOiJSUzI1NiJ9.e30.eA"

// discover asks the provider for what it says of itself, and for its keys: one that
// gives none has said nothing.
func (v *Verifier) discover(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	ctx, stop := context.WithTimeout(ctx, askTime)
	defer stop()
	ctx = oidc.ClientContext(ctx, v.ask.client())
	p, err := oidc.NewProvider(ctx, v.c.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreached, err)
	}
	var more struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&more); err != nil || more.Keys == "" {
		return nil, fmt.Errorf("%w: it names no keys", errUnreached)
	}
	v.ask.mu.Lock()
	v.ask.keys, v.ask.last = more.Keys, time.Time{}
	v.ask.mu.Unlock()
	keys := oidc.NewRemoteKeySet(ctx, more.Keys)
	if _, err := keys.VerifySignature(ctx, probe); errors.Unwrap(err) != nil || ctx.Err() != nil { // what it says of the probe itself wraps nothing
		return nil, fmt.Errorf("%w: %w", errUnreached, err)
	}
	skew := v.c.Skew
	return oidc.NewVerifier(v.c.Issuer, keySet{keys}, &oidc.Config{
		ClientID: v.c.Audience,
		// What one key both signs and checks is no proof to a third.
		SupportedSigningAlgs: []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA},
		Now:                  func() time.Time { return time.Now().Add(-skew) },
	}), nil
}

// keySet tells whether the provider could be asked, which the library hides.
type keySet struct{ of oidc.KeySet }

func (k keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.of.VerifySignature(ctx, jwt)
	if to, ok := ctx.Value(asked{}).(*error); ok && err != nil {
		switch {
		case ctx.Err() != nil:
			*to = context.Cause(ctx)
		case errors.Is(err, errUnreached):
			*to = err
		}
	}
	return payload, err
}
