package oidc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Bounds of asking the provider.
const (
	askTime     = 10 * time.Second
	maxAnswer   = 1 << 20
	askAgain    = 10 * time.Second // between two questions for its keys: strangers can cause them
	maxIdle     = 2
	maxWaitIdle = time.Minute
)

// Errors of asking the provider.
var (
	errUnreached = errors.New("oidc: the identity provider cannot be asked")
	errTooSoon   = errors.New("oidc: its keys were asked for just now")
)

// Words for where a provider may be besides the public internet.
const (
	Loopback = "loopback" // on this machine, by http too
	Private  = "private"  // in a private network
)

// reach says where connections may go.
type reach struct{ loopback, private bool }

// special are networks that are nobody's address on the public internet.
var special = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"240.0.0.0/4", "::/96", "64:ff9b:1::/48", "100::/64", "2001:db8::/32", "fec0::/10")

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, t := range texts {
		list = append(list, netip.MustParsePrefix(t))
	}
	return list
}

// inner returns the IPv4 address that an IPv6 one carries, else the address.
func inner(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a): // NAT64
		return netip.AddrFrom4([4]byte(b[12:]))
	case netip.MustParsePrefix("2002::/16").Contains(a): // 6to4
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a
}

// check says why no connection is made to the address.
func (r reach) check(a netip.Addr) error {
	a = inner(a)
	bad := func(what, word string) error {
		if word == "" {
			return fmt.Errorf("%w: %s is %s", errUnreached, a, what)
		}
		return fmt.Errorf("%w: %s is %s; where that is meant, say %s in oidc_reach", errUnreached, a, what, word)
	}
	switch {
	case !a.IsValid() || a.IsUnspecified():
		return bad("no address", "")
	case a.IsLoopback():
		if !r.loopback {
			return bad("of this machine", Loopback)
		}
	case a.IsPrivate():
		if !r.private {
			return bad("of a private network", Private)
		}
	case a.IsLinkLocalUnicast(), a.IsMulticast(), a.IsInterfaceLocalMulticast():
		return bad("of no other network", "")
	default:
		for _, p := range special {
			if p.Contains(a) {
				return bad("reserved", "")
			}
		}
		if netip.MustParsePrefix("2001::/32").Contains(a) {
			return bad("of Teredo", "")
		}
	}
	return nil
}

// control is called for each address when a connection to it is about to be made.
func (r reach) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreached, err)
	}
	return r.check(at.Addr())
}

// asker is how the provider is asked.
type asker struct {
	reach reach
	base  http.RoundTripper
	again time.Duration

	mu   sync.Mutex
	keys string    // address of the keys, once it is known
	last time.Time // when they were asked for
}

func newAsker(r reach, roots *tls.Config) *asker {
	d := &net.Dialer{Timeout: askTime, Control: r.control}
	return &asker{reach: r, again: askAgain, base: &http.Transport{
		DialContext: d.DialContext, TLSClientConfig: roots, TLSHandshakeTimeout: askTime, ResponseHeaderTimeout: askTime,
		MaxResponseHeaderBytes: 64 << 10, MaxIdleConns: maxIdle, IdleConnTimeout: maxWaitIdle, DisableCompression: true, ForceAttemptHTTP2: true,
	}}
}

// client returns the client that go-oidc asks with.
func (a *asker) client() *http.Client {
	return &http.Client{Transport: a, Timeout: askTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// RoundTrip implements http.RoundTripper.
func (a *asker) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && (r.URL.Scheme != "http" || !a.reach.loopback || !isLoopback(r.URL.Hostname())) {
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
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	return answer, nil
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// asked is where an error of asking is put, past what the library makes of it.
type asked struct{}

func withAsked(ctx context.Context) (context.Context, *error) {
	err := new(error)
	return context.WithValue(ctx, asked{}, err), err
}
