package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// JSON at this door is strict: what two readers take for two things is refused before
// anything is decided (issue's strict JSON; W06, W08, T04).
func TestStrictBodies(t *testing.T) {
	h := newHouse(t)
	good := `{"skill":"greeter","script":"scripts/hello.py"}`
	for _, tt := range []struct {
		name, body string
		code       client.Code
		headers    []string
	}{
		{"two spellings of a name", `{"tenant":"a","TENANT":"b"}`, client.Invalid, nil},
		{"a tenant of its own", `{"skill":"greeter","script":"scripts/hello.py","tenant":"globex"}`, client.Invalid, nil},
		{"another case", `{"SKILL":"greeter","script":"scripts/hello.py"}`, client.Invalid, nil},
		{"the long s", `{"ſkill":"greeter","script":"scripts/hello.py"}`, client.Invalid, nil},
		{"a name twice", `{"skill":"greeter","skill":"other","script":"scripts/hello.py"}`, client.BadRequest, nil},
		{"a name twice, deep", `{"skill":"greeter","script":"scripts/hello.py","arguments":{"a":1,"a":2}}`, client.BadRequest, nil},
		{"two values", good + good, client.BadRequest, nil},
		{"a lone surrogate", `{"skill":"\ud800","script":"x"}`, client.BadRequest, nil},
		{"not UTF-8", "{\"skill\":\"\xff\",\"script\":\"x\"}", client.BadRequest, nil},
		{"too deep", `{"skill":"greeter","script":"x","arguments":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, client.BadRequest, nil},
		{"an unknown member", `{"skill":"greeter","script":"x","extra":1}`, client.Invalid, nil},
		{"another kind", `{"skill":1,"script":"x"}`, client.Invalid, nil},
		{"null", `null`, client.Invalid, nil},
		{"a list", `[]`, client.Invalid, nil},
		{"nothing", ``, client.BadRequest, nil},
		{"no type", good, client.UnsupportedMediaType, []string{"Content-Type", ""}},
		{"another type", good, client.UnsupportedMediaType, []string{"Content-Type", "", "Content-Type", "text/plain"}},
		{"a form", good, client.UnsupportedMediaType, []string{"Content-Type", "", "Content-Type", "application/x-www-form-urlencoded"}},
		{"two types", good, client.UnsupportedMediaType, []string{"Content-Type", "text/plain"}},
		{"another character set", good, client.UnsupportedMediaType, []string{"Content-Type", "", "Content-Type", "application/json; charset=utf-7"}},
		{"packed", good, client.UnsupportedMediaType, []string{"Content-Encoding", "gzip"}},
		{"CBOR", good, client.UnsupportedMediaType, []string{"Content-Type", "", "Content-Type", "application/cbor"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := *h
			h.T = t
			p := h.ask("reader", "POST", "/v1/explain", tt.body, tt.headers...).problem(tt.code)
			if strings.Contains(p.Error(), "globex") {
				t.Errorf("the value that was sent is told: %v", p)
			}
		})
	}
	h.ask("reader", "POST", "/v1/explain", good, "Content-Type", "", "Content-Type", "application/json; charset=UTF-8").into(200, &client.Explained{})
	h.ask("reader", "POST", "/v1/grants/x/revoke", strings.Repeat(" ", DefaultMaxBody+1), "If-Match", "*").problem(client.Forbidden)
	h.ask("approver", "POST", "/v1/grants/x/revoke", strings.Repeat(" ", DefaultMaxBody+1), "If-Match", "*").problem(client.TooLarge)
}

// A query is read in one way: what an operation does not know, what stands twice and
// what cannot be parsed is refused (W08, T04).
func TestStrictQueries(t *testing.T) {
	h := newHouse(t)
	for _, tt := range []struct {
		query string
		code  client.Code
	}{
		{"tenant=globex", client.Invalid},
		{"limit=2&limit=3", client.BadRequest},
		{"limit=2;limit=3", client.BadRequest},
		{"limit=%zz", client.BadRequest},
		{"limit=0", client.Invalid},
		{"limit=1001", client.Invalid},
		{"limit=1e2", client.Invalid},
		{"LIMIT=1", client.Invalid},
		{"skill=" + strings.Repeat("x", 513), client.Invalid},
		{"cursor=" + strings.Repeat("x", 1025), client.Invalid},
	} {
		h.ask("reader", "GET", "/v1/grants?"+tt.query, nil).problem(tt.code)
	}
}

// A path has one spelling, a method is what it is, and nobody learns by either what is
// there (W08).
func TestRouting(t *testing.T) {
	h := newHouse(t)
	for _, tt := range []struct {
		method, path string
		code         client.Code
	}{
		{"GET", "/", client.NotFound},
		{"GET", "/v1", client.NotFound},
		{"GET", "/v1/", client.NotFound},
		{"GET", "/v1/grants/", client.NotFound},
		{"GET", "/v1//grants", client.NotFound},
		{"GET", "//v1/grants", client.NotFound},
		{"GET", "/v1/../v1/grants", client.NotFound},
		{"GET", "/v1/./grants", client.NotFound},
		{"GET", "/V1/grants", client.NotFound},
		{"GET", "/v1/grants.", client.NotFound},
		{"GET", "/v1/skills/..%2fgrants", client.NotFound},
		{"GET", "/v1%2fgrants", client.NotFound},
		{"GET", "/v1/skills/%2e%2e", client.NotFound},
		{"DELETE", "/v1/grants", client.MethodNotAllowed},
		{"OPTIONS", "/v1/grants", client.MethodNotAllowed},
		{"TRACE", "/v1/grants", client.MethodNotAllowed},
		{"GET", "/debug/pprof/", client.NotFound},
		{"GET", "/debug/vars", client.NotFound},
		{"GET", "/docs", client.NotFound},
		{"GET", "/openapi.yaml", client.NotFound},
		{"GET", "/openapi-3.0.json", client.NotFound},
		{"GET", "/schemas/Grant.json", client.NotFound},
	} {
		r := h.ask("admin", tt.method, tt.path, nil)
		r.problem(tt.code)
		if loc := r.header.Get("Location"); loc != "" {
			t.Errorf("%s %s leads to %s", tt.method, tt.path, loc)
		}
	}
	// A method in a header is none.
	h.ask("admin", "POST", "/v1/policy", `{}`, "X-HTTP-Method-Override", "PATCH", "If-Match", "*").problem(client.MethodNotAllowed)
	r := h.ask("reader", "HEAD", "/v1/grants", nil)
	if r.status != 200 {
		t.Errorf("HEAD: %d", r.status)
	}
}

// Without a credential that holds there is one answer, whatever is wrong with it, and
// nothing of it is logged (W01).
func TestUnauthenticated(t *testing.T) {
	h := newHouse(t)
	want := ""
	for _, tt := range []struct {
		name    string
		headers []string
		path    string
	}{
		{"none", nil, "/v1/grants"},
		{"unknown", []string{"Authorization", "Bearer canary-secret"}, "/v1/grants"},
		{"another scheme", []string{"Authorization", "Basic canary-secret"}, "/v1/grants"},
		{"without a scheme", []string{"Authorization", "admin"}, "/v1/grants"},
		{"two", []string{"Authorization", "Bearer admin", "Authorization", "Bearer admin"}, "/v1/grants"},
		{"two in one", []string{"Authorization", "Bearer admin, Bearer admin"}, "/v1/grants"},
		{"with a blank", []string{"Authorization", "Bearer admin canary-secret"}, "/v1/grants"},
		{"in the query", nil, "/v1/grants?access_token=admin&key=canary-secret"},
		{"in a cookie", []string{"Cookie", "token=admin"}, "/v1/grants"},
	} {
		r := h.ask("", "GET", tt.path, nil, tt.headers...)
		p := r.problem(client.Unauthenticated)
		p.RequestID = ""
		if got := p.Error() + r.header.Get("WWW-Authenticate"); want == "" {
			want = got
		} else if got != want {
			t.Errorf("%s: %q, want %q as for the others", tt.name, got, want)
		}
	}
	if strings.Contains(h.logged.String(), "canary") {
		t.Errorf("the log has the credential:\n%s", h.logged)
	}
}

// No header makes a request local or somebody else's, and none that a client sends
// names the request (W09, T04).
func TestHeadersDecideNothing(t *testing.T) {
	h := newHouse(t)
	theirs := h.grant("globex")
	for _, name := range []string{"X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Forwarded-User", "X-Tenant", "Tracon-Tenant", "X-Tracon-Tenant"} {
		h.ask("", "GET", "/v1/grants", nil, name, "127.0.0.1").problem(client.Unauthenticated)
		h.ask("reader", "GET", "/v1/grants/"+theirs.ID, nil, name, "globex").problem(client.NotFound)
	}
	r := h.ask("reader", "GET", "/v1/whoami", nil, RequestIDHeader, "chosen", "X-Request-Id", "chosen")
	if got := r.header.Get(RequestIDHeader); got == "chosen" || got == "" {
		t.Errorf("the request's id is %q", got)
	}
	if strings.Contains(h.logged.String(), "chosen") {
		t.Error("the client's id is in the log")
	}
}

// A browser that another site has send something is refused, with a credential too; and
// what is answered is shown by none (W04).
func TestCrossOrigin(t *testing.T) {
	h := newHouse(t)
	h.ask("admin", "POST", "/v1/explain", `{}`, "Sec-Fetch-Site", "cross-site").problem(client.CrossOrigin)
	h.ask("admin", "POST", "/v1/explain", `{}`, "Origin", "https://evil.example").problem(client.CrossOrigin)
	h.ask("admin", "PATCH", "/v1/policy", `{}`, "If-Match", "*", "Sec-Fetch-Site", "same-site").problem(client.CrossOrigin)
	r := h.ask("reader", "GET", "/v1/whoami", nil, "Origin", "https://evil.example")
	if r.status != 200 || r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d, %v", r.status, r.header)
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer"} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// failing cannot find out who asks.
type failing struct{}

func (failing) Authenticate(*http.Request) (access.Principal, error) {
	return access.Principal{}, errors.New("canary: dial tcp 10.0.0.1:5432: no route to host")
}

// panics is an authenticator with a fault.
type panics struct{}

func (panics) Authenticate(*http.Request) (access.Principal, error) { panic("canary") }

// nobody lets in somebody without a name.
type nobody struct{}

func (nobody) Authenticate(*http.Request) (access.Principal, error) {
	return access.Principal{Tenant: "acme", Roles: []access.Role{access.Admin}}, nil
}

// What goes wrong within is told to the log by the request's id, and to the stranger in
// no word of its own; where it cannot be found out who asks, nobody is let in.
func TestFaultsWithin(t *testing.T) {
	for _, tt := range []struct {
		name string
		auth Authenticator
		code client.Code
		log  bool
	}{
		{"who asks cannot be found out", failing{}, client.Unavailable, true},
		{"a panic", panics{}, client.Internal, true},
		{"nobody", nobody{}, client.Unauthenticated, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t, func(c *Config) { c.Authenticator = tt.auth })
			r := h.ask("admin", "GET", "/v1/grants", nil)
			p := r.problem(tt.code)
			if strings.Contains(string(r.body), "canary") || strings.Contains(string(r.body), "10.0.0.1") {
				t.Errorf("told: %s", r.body)
			}
			if tt.log && (!strings.Contains(h.logged.String(), "canary") || !strings.Contains(h.logged.String(), p.RequestID)) {
				t.Errorf("the log does not tell:\n%s", h.logged)
			}
		})
	}
	h := newHouse(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	req := httptest.NewRequestWithContext(ctx, "GET", "/v1/grants", nil)
	req.Header.Set("Authorization", "Bearer reader")
	h.handler.ServeHTTP(httptest.NewRecorder(), req) // a client that is gone is no fault of ours
	if strings.Contains(h.logged.String(), `"level":"ERROR"`) {
		t.Errorf("the log has an error:\n%s", h.logged)
	}
}

// narrow is an embedder's own word.
type narrow struct{}

func (narrow) Authorize(_ context.Context, p access.Principal, what access.Permission) error {
	if what == access.WriteGrants && p.Actor != "approver at acme" {
		return errors.New("grants are the approvers'")
	}
	return nil
}

// An Authorizer narrows what the roles give, and gives nothing.
func TestAuthorizer(t *testing.T) {
	h := newHouse(t, func(c *Config) { c.Authorizer = narrow{} })
	h.ask("admin", "POST", "/v1/grants/x/revoke", nil, "If-Match", "*").problem(client.Forbidden)
	h.ask("approver", "POST", "/v1/grants/x/revoke", nil, "If-Match", "*").problem(client.NotFound)
	h.ask("reader", "POST", "/v1/grants/x/revoke", nil, "If-Match", "*").problem(client.Forbidden)
	h.ask("reader", "GET", "/v1/grants", nil).into(200, nil)
}

// Below a prefix everything is as at the root, and nothing is outside of it.
func TestPrefix(t *testing.T) {
	h := newHouse(t, func(c *Config) { c.Prefix = "/tracon" })
	h.ask("reader", "GET", "/tracon/v1/whoami", nil).into(200, &client.Whoami{})
	if r := h.ask("reader", "GET", "/v1/whoami", nil); r.status != 404 {
		t.Errorf("outside of the prefix: %d", r.status)
	}
	if r := h.ask("reader", "GET", "/tracon/openapi.json", nil); !strings.Contains(string(r.body), `"url": "/tracon"`) {
		t.Error("the document does not name the prefix")
	}
	for _, bad := range []string{"tracon", "/tracon/", "/"} {
		c := h.config
		if c.Prefix = bad; c.check() == nil {
			t.Errorf("the prefix %q is taken", bad)
		}
	}
}

// Shapes of requests that a proxy and a server may read in two ways are refused by the
// server's library before they come here, and a body that never ends is bounded (W06, W07).
// cmd/tracon's TestServeSmuggling shows that nothing hides behind one.
func TestSmuggling(t *testing.T) {
	h := newHouse(t)
	srv := httptest.NewServer(h.handler)
	defer srv.Close()
	for _, tt := range []struct{ name, request, want string }{
		{"two lengths", "POST /v1/explain HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", "400"},
		{"a header in a folded line", "GET /v1/whoami HTTP/1.1\r\nHost: x\r\nX-A: b\r\n Authorization: Bearer reader\r\n\r\n", "401"},
		{"an odd transfer", "POST /v1/explain HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", "501"},
		{"a blank before the colon", "GET /v1/whoami HTTP/1.1\r\nHost : x\r\n\r\n", "400"},
		{"two hosts", "GET /v1/whoami HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "400"},
		{"chunks without an end", "POST /v1/explain HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer reader\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n" + strings.Repeat("x", gateBody+1), "413"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go func() { _, _ = io.WriteString(conn, tt.request) }() // the server may answer before it has read all
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if !strings.HasPrefix(res.Status, tt.want) {
				t.Errorf("%s, want %s", res.Status, tt.want)
			}
		})
	}
}

// gateBody is more than the largest body of an operation that takes JSON for a gate.
const gateBody = 9 << 20
