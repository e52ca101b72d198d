package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/outbound"
	"github.com/tracon-go/tracon/wire"
	"github.com/tracon-go/tracon/wire/ticket"
)

// Name is the executor's name in postures and logs.
const Name = "remote"

// What a [Config] means by zero.
const (
	DefaultPatience = 30 * time.Second
	DefaultFresh    = 30 * time.Second
	idleConns       = 64 // connections that wait for another run
	maxKey          = 4 << 10
	plainType       = "application/json"
)

// Config configures an [Executor]. Address is required.
type Config struct {
	// Address is the base below which the runner has "runs": https, or http on this
	// machine where Reach says loopback.
	Address string

	// Reach is where the address may lead besides the public internet: "loopback",
	// "private". Empty: nowhere else.
	Reach []string

	// Key returns the bearer key. It is called for each request, so that a key can be
	// changed while this runs. Nil: none is sent.
	Key func() (string, error)

	// Certificate is the client's own; nil: none. Roots are the authorities that the
	// runner's may be signed by; nil: the system's.
	Certificate *tls.Certificate
	Roots       *x509.CertPool

	// Signer signs a ticket for each run; nil: none is sent.
	Signer *ticket.Signer

	// Runner is the name that the runner must tell of itself: where it tells another, or
	// none, nothing is sent to it. Required with Signer, for a ticket is bound to it, and
	// one bound to what a runner calls itself could be used at another. Empty: any name.
	Runner string

	// Patience is how long past a script's timeout its answer may take to come in full;
	// where the runner has a queue, the wait in it counts. Zero means 30 s. The host's
	// own wait limit holds beside it.
	Patience time.Duration
}

// An Executor has scripts run by one runner. It is safe for concurrent use.
type Executor struct {
	c         Config
	base      *url.URL
	transport *outbound.Transport
	client    *http.Client
	about     about
	uploads   *uploads
}

var (
	_ executor.Executor = (*Executor)(nil)
	_ executor.Posturer = (*Executor)(nil)
)

// New returns an Executor for c. It asks nobody yet: a runner may start later.
//
// # Errors
//
// One that says what in c cannot be.
func New(c Config) (*Executor, error) {
	if c.Patience < 0 {
		return nil, errors.New("remote: a negative patience; zero means 30s")
	}
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
	if c.Runner != "" {
		if err := grant.CheckName("runner", c.Runner); err != nil {
			return nil, fmt.Errorf("remote: the runner's name (remote_name): %w", err)
		}
	} else if c.Signer != nil {
		return nil, errors.New("remote: there is a key for tickets, and no name of the runner that they are for: set remote_name to its runner_name")
	}
	base, err := url.Parse(c.Address)
	if err != nil {
		return nil, errors.New("remote: the runner's address is no URL") // which may hold a password: not shown
	}
	if base.RawQuery != "" || base.ForceQuery {
		return nil, errors.New("remote: the runner's address has a query")
	}
	reach, err := outbound.ParseReach("remote_reach", c.Reach)
	if err != nil {
		return nil, err
	}
	if err := reach.CheckURL(base); err != nil {
		return nil, err
	}
	if c.Key == nil && c.Certificate == nil && base.Scheme == "https" {
		return nil, errors.New("remote: there is neither a key nor a client certificate; a runner that lets in everybody is nobody's")
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots}
	if c.Certificate != nil {
		conf.Certificates = []tls.Certificate{*c.Certificate}
	}
	base.Path, base.RawPath = strings.TrimSuffix(base.Path, "/")+"/", ""
	e := &Executor{c: c, base: base, about: about{turn: make(chan struct{}, 1)}, uploads: newUploads()}
	e.transport = reach.Transport(outbound.Options{TLS: conf, Idle: idleConns, MaxAnswer: 2 * wire.MaxAnswer})
	e.client = outbound.Client(e.transport, 0) // each request has a context with an end
	return e, nil
}

// Close closes the connections that wait for another run. Runs go on.
func (e *Executor) Close() error {
	e.transport.CloseIdleConnections()
	return nil
}

// request returns one to the path below the base. GetBody stays nil and no header calls
// it idempotent: then nothing below sends a body again (R21).
func (e *Executor) request(ctx context.Context, method, path string, body io.Reader, size int) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, e.base.JoinPath(path).String(), nil)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Body, r.ContentLength = io.NopCloser(body), int64(size)
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", plainType)
	r.Header.Set("User-Agent", "tracon")
	if e.c.Key != nil {
		key, err := e.c.Key()
		if err != nil {
			return nil, fmt.Errorf("the key: %w", err)
		}
		if key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return nil, errors.New("the key is not one: want printable ASCII without blanks")
		}
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return r, nil
}
