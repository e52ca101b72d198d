package oidc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tracon-go/tracon/internal/outbound"
)

// Bounds of asking the provider.
const (
	askTime  = 10 * time.Second
	askAgain = 10 * time.Second // between two questions for its keys: strangers can cause them
)

// Errors of asking the provider.
var (
	errUnreached = errors.New("oidc: the identity provider cannot be asked")
	errTooSoon   = errors.New("oidc: its keys were asked for just now")
)

// asker is how the provider is asked.
type asker struct {
	base  *outbound.Transport
	plain bool // the issuer's own address is http, on this machine
	again time.Duration

	mu   sync.Mutex
	keys string    // address of the keys, once it is known
	last time.Time // when they were asked for
}

func newAsker(r outbound.Reach, plain bool, roots *tls.Config) *asker {
	return &asker{plain: plain, again: askAgain, base: r.Transport(outbound.Options{Connect: askTime, Header: askTime, TLS: roots})}
}

// client returns the client that go-oidc asks with.
func (a *asker) client() *http.Client { return outbound.Client(a, askTime) }

// RoundTrip implements http.RoundTripper.
func (a *asker) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "http" && !a.plain { // whoever is asked by https sends nobody to what listens here
		return nil, fmt.Errorf("%w: its address %s is not https", errUnreached, r.URL.Redacted())
	}
	a.mu.Lock()
	soon := r.URL.String() == a.keys && !a.last.IsZero() && time.Since(a.last) < a.again
	if r.URL.String() == a.keys && !soon {
		a.last = time.Now()
	}
	a.mu.Unlock()
	if soon {
		return nil, errTooSoon
	}
	answer, err := a.base.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreached, err)
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%w: it answers %d", errUnreached, answer.StatusCode)
	}
	return answer, nil
}

// asked is where an error of asking is put, past what the library makes of it.
type asked struct{}

func withAsked(ctx context.Context) (context.Context, *error) {
	err := new(error)
	return context.WithValue(ctx, asked{}, err), err
}
