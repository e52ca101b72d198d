package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A Config says which server a [Client] asks, and as whom.
type Config struct {
	// Server is the base address: "https://tracon.example/prefix", "unix:///path/of/socket",
	// or, for an address of this host alone, "http://127.0.0.1:8080". Required.
	Server string

	// Key is the text of an API key, or whatever else the server's own authentication
	// takes as a bearer token. Empty: none is sent.
	Key string

	// Tenant, where the server is a unix socket and knows its peer, is the tenant to
	// act for; see [TenantHeader]. Empty: none is named. A key has its own, so with a key
	// it stays empty.
	Tenant string

	// AllowPlain lets the key travel unencrypted to another host.
	AllowPlain bool

	// Transport carries the requests. Nil: one of the client's own, without a proxy.
	// With a unix socket it stays nil.
	Transport http.RoundTripper

	UserAgent string // empty: "tracon-client"
}

// TenantHeader names the tenant that a local operator acts for, where the server knows
// who is at the other end of a unix socket. Every other door ignores it.
const TenantHeader = "Tracon-Tenant"

// ErrServer is wrapped by the error for a Config.Server that is none.
var ErrServer = errors.New("client: not the address of a server")

// A Client asks one server. It is safe for concurrent use. Make one with [New].
type Client struct {
	c    Config
	base *url.URL
	http *http.Client
}

// maxAnswer is the most bytes that a JSON answer may have.
const maxAnswer = 96 << 20

// New returns a client. It asks nothing yet.
//
// # Errors
//
// One that wraps ErrServer.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.Server)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: write it as https://host", ErrServer, c.Server)
	}
	transport := c.Transport
	switch {
	case u.Scheme == "unix" && u.Host == "" && u.Path != "":
		socket := u.Path
		transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}
		u = &url.URL{Scheme: "http", Host: "tracon"}
	case u.User != nil: // which is not told again
		return nil, fmt.Errorf("%w: it holds a name or a password, and a key is told by itself; write it as https://host", ErrServer)
	case u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%w: %q: write it as https://host, without a name or a query", ErrServer, c.Server)
	case u.Scheme == "http" && !c.AllowPlain && !loopback(u.Hostname()):
		return nil, fmt.Errorf("%w: %q would have the key travel unencrypted; write https", ErrServer, c.Server)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%w: %q: it begins with https://, http:// or unix://", ErrServer, c.Server)
	}
	if transport == nil {
		transport = &http.Transport{TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, IdleConnTimeout: 90 * time.Second}
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	if c.UserAgent == "" {
		c.UserAgent = "tracon-client"
	}
	return &Client{c: c, base: u, http: &http.Client{Transport: transport,
		// A key is for the one server that was named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// request is one request, on its way.
type request struct {
	method, path string
	query        url.Values
	body         any       // is sent as JSON
	raw          io.Reader // is sent as it is, of the type kind
	kind         string
	match        string // If-Match
	header       http.Header
}

// path returns the elements, escaped and joined.
func path(elements ...string) string {
	var b strings.Builder
	for _, e := range elements {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(e))
	}
	return b.String()
}

// send sends r and returns an answer of success, whose body is the caller's to close.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	body := r.raw
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body, r.kind = bytes.NewReader(b), "application/json"
	}
	address := c.base.String() + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", c.c.UserAgent)
	if c.c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.c.Key)
	}
	if c.c.Tenant != "" {
		req.Header.Set(TenantHeader, c.c.Tenant)
	}
	if r.kind != "" {
		req.Header.Set("Content-Type", r.kind)
	}
	if r.match != "" {
		req.Header.Set("If-Match", r.match)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the server %s: %w", c.c.Server, withoutAddress(err))
	}
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, refusal(res)
}

// withoutAddress takes the address from the error: its query may hold what was typed.
func withoutAddress(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// refusal reads the problem of an answer; of one without, it makes one.
func refusal(res *http.Response) error {
	var p Problem
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	b, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil || kind != "application/problem+json" || json.Unmarshal(b, &p) != nil || p.Code == "" {
		return fmt.Errorf("the server answered %s, and it is not Tracon that did", res.Status)
	}
	p.Status = res.StatusCode
	if after, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && after >= 0 {
		p.RetryAfter = time.Duration(after) * time.Second
	}
	return &p
}

// call sends r, decodes the answer into out where it is not nil, and returns its ETag.
func (c *Client) call(ctx context.Context, r request, out any) (etag string, err error) {
	res, err := c.send(ctx, r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if out == nil {
		return res.Header.Get("ETag"), nil
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("the server's answer: %w", err)
	case len(b) > maxAnswer:
		return "", fmt.Errorf("the server's answer has more than %d bytes", maxAnswer)
	}
	// A newer server may tell more than this client knows.
	if err := json.Unmarshal(b, out); err != nil {
		return "", fmt.Errorf("the server's answer: %w", err)
	}
	return res.Header.Get("ETag"), nil
}

// get is call for what has no body and no tag that anybody needs.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (v T, err error) {
	_, err = c.call(ctx, request{method: http.MethodGet, path: path, query: query}, &v)
	return v, err
}

// all reads every part of a list, at most limit items; zero: all of them.
func all[T any](ctx context.Context, c *Client, path string, query url.Values, limit int) ([]T, error) {
	if query == nil {
		query = url.Values{}
	}
	list := []T{}
	for {
		part := 1000
		if limit > 0 {
			part = min(part, limit-len(list))
		}
		query.Set("limit", strconv.Itoa(part))
		page, err := get[Page[T]](ctx, c, path, query)
		if err != nil {
			return nil, err
		}
		list = append(list, page.Items...)
		if page.Next == "" || limit > 0 && len(list) >= limit {
			return list, nil
		}
		query.Set("cursor", page.Next)
	}
}

// set adds the parameters that are not empty, names and values in turn.
func set(q url.Values, namesAndValues ...string) url.Values {
	for i := 0; i < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] != "" {
			q.Set(namesAndValues[i], namesAndValues[i+1])
		}
	}
	return q
}

func params(namesAndValues ...string) url.Values { return set(url.Values{}, namesAndValues...) }

// orAny is the tag, or the star for whatever is there now.
func orAny(etag string) string {
	if etag == "" {
		return "*"
	}
	return etag
}
