package outbound

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// What [Options] mean by zero.
const (
	DefaultConnect   = 10 * time.Second
	DefaultMaxAnswer = 1 << 20
	DefaultIdle      = 2
	idleTime         = time.Minute // that a connection waits for its next request
	maxHeader        = 64 << 10    // bytes of an answer's
)

// ErrTooLarge is wrapped by the error of reading an answer past its most bytes.
var ErrTooLarge = errors.New("outbound: the answer is too large")

// Options are those of a [Transport].
type Options struct {
	// Connect is the time in which a connection is made, and once more that in which its
	// handshake ends. Zero means 10 s.
	Connect time.Duration

	// Header is the time from the last byte of a request to the header of its answer.
	// Zero means that the request's context bounds it alone.
	Header time.Duration

	// MaxAnswer is the most bytes of an answer; reading on fails with ErrTooLarge. Zero
	// means 1 MiB.
	MaxAnswer int64

	// Idle is how many connections to one peer wait for another request. Zero means 2.
	Idle int

	// TLS is for the connections. Nil: the system's roots.
	TLS *tls.Config

	// Plain is a peer, as HOST or HOST:PORT, that is asked by http too, wherever it is
	// within reach: somebody said so of this one. Empty: http is for this machine alone.
	Plain string
}

// A Transport asks peers within a [Reach]. It implements http.RoundTripper and is safe
// for concurrent use.
type Transport struct {
	reach Reach
	most  int64
	plain string
	base  *http.Transport
}

// Transport returns one that goes where r says.
func (r Reach) Transport(o Options) *Transport {
	connect := cmp.Or(o.Connect, DefaultConnect)
	return &Transport{r, cmp.Or(o.MaxAnswer, DefaultMaxAnswer), o.Plain, &http.Transport{
		DialContext: r.Dialer(connect).DialContext, TLSClientConfig: o.TLS, TLSHandshakeTimeout: connect, ResponseHeaderTimeout: o.Header,
		MaxResponseHeaderBytes: maxHeader, MaxIdleConnsPerHost: cmp.Or(o.Idle, DefaultIdle), IdleConnTimeout: idleTime,
		DisableCompression: true, ForceAttemptHTTP2: true,
	}}
}

// RoundTrip implements http.RoundTripper.
//
// # Errors
//
// One that wraps ErrRefused, where r must not be sent there.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	plain := t.plain != "" && r.URL.Scheme == "http" && r.URL.Host == t.plain && r.URL.User == nil
	if err := t.reach.CheckURL(r.URL); err != nil && !plain {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	answer, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &bounded{answer.Body, t.most}
	return answer, nil
}

// CloseIdleConnections closes those that wait for another request.
func (t *Transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// Client returns a client over rt that follows no redirect: the answer that asks for one
// is what it returns. Within is the time of a request with its answer; zero means that
// the request's context bounds it alone.
func Client(rt http.RoundTripper, within time.Duration) *http.Client {
	return &http.Client{Transport: rt, Timeout: within, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// bounded is an answer's body of so many bytes at most.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more tells whether it ends there
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) > b.left {
		n, b.left = int(b.left), 0
		return n, fmt.Errorf("%w: it has more bytes than it may have", ErrTooLarge)
	}
	b.left -= int64(n)
	return n, err
}
