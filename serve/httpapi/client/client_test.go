package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A key travels to the server that was named, over TLS or within this host.
func TestNew(t *testing.T) {
	for _, tt := range []struct {
		server string
		ok     bool
	}{
		{"https://tracon.example", true},
		{"https://tracon.example:8443/prefix/", true},
		{"http://127.0.0.1:8080", true},
		{"http://[::1]:8080", true},
		{"http://localhost:8080", true},
		{"unix:///run/tracon.sock", true},
		{"http://tracon.example", false},
		{"http://127.0.0.1.evil.example", false},
		{"http://10.0.0.1", false},
		{"https://user:secret@tracon.example", false},
		{"https://tracon.example?key=x", false},
		{"https://tracon.example#x", false},
		{"tracon.example", false},
		{"ftp://tracon.example", false},
		{"unix://host/run/tracon.sock", false},
		{"unix://", false},
		{"https://", false},
		{"", false},
		{"%", false},
	} {
		if _, err := New(Config{Server: tt.server}); (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrServer) {
			t.Errorf("%q: %v", tt.server, err)
		}
	}
	if _, err := New(Config{Server: "http://tracon.example", AllowPlain: true}); err != nil {
		t.Error(err)
	}
}

// ask starts a server and a client of it.
func ask(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(handle)
	t.Cleanup(srv.Close)
	c, err := New(Config{Server: srv.URL + "/prefix/", Key: "canary-key"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// What goes out is what was asked for: below the prefix, with names escaped, the key as a
// bearer token, and the tag of what is changed.
func TestRequests(t *testing.T) {
	var got, match, kind string
	c := ask(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.EscapedPath() + "?" + r.URL.RawQuery + " " + string(b)
		match, kind = r.Header.Get("If-Match"), r.Header.Get("Content-Type")
		if r.Header.Get("Authorization") != "Bearer canary-key" || r.Header.Get(TenantHeader) != "" {
			t.Errorf("headers: %v", r.Header)
		}
		w.Header().Set("ETag", `"t"`)
		_, _ = io.WriteString(w, `{"id":"x","unknown":"to this client"}`)
	})
	g, tag, err := c.Grant(t.Context(), "../a b")
	if err != nil || g.ID != "x" || tag != `"t"` || got != "GET /prefix/v1/grants/..%2Fa%20b? " {
		t.Errorf("%+v, %s, %v: %s", g, tag, err, got)
	}
	if _, err := c.RevokeGrant(t.Context(), "x", "", "over"); err != nil || match != "*" || kind != "application/json" || got != `POST /prefix/v1/grants/x/revoke? {"reason":"over"}` {
		t.Errorf("%v: %s %s", err, got, match)
	}
	if _, err := c.ImportZip(t.Context(), strings.NewReader("zip"), "", "a b"); err != nil || kind != "application/zip" || got != "POST /prefix/v1/imports/zip?reason=a+b zip" {
		t.Errorf("%v: %s", err, got)
	}
}

// A list is read to its end, or as far as was asked for.
func TestLists(t *testing.T) {
	c := ask(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("cursor") {
		case "":
			_, _ = io.WriteString(w, `{"items":[{"id":"a"},{"id":"b"}],"next":"n"}`)
		case "n":
			_, _ = io.WriteString(w, `{"items":[{"id":"c"}]}`)
		}
	})
	for limit, want := range map[int]int{0: 3, 2: 2, 3: 3} {
		list, err := c.Grants(t.Context(), "", limit)
		if err != nil || len(list) != want {
			t.Errorf("limit %d: %v, %v", limit, list, err)
		}
	}
}

// What the server refuses is a Problem; what is not Tracon's answer says so; no redirect
// is followed with the key, and no error holds the key or the address's query.
func TestRefusals(t *testing.T) {
	var followed bool
	c := ask(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/prefix/v1/grants/busy":
			w.Header().Set("Content-Type", "application/problem+json")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
			_, _ = io.WriteString(w, `{"code":"busy","title":"Too Many Requests","detail":"try again","errors":[{"location":"body","message":"large"}]}`)
		case "/prefix/v1/grants/proxy":
			w.WriteHeader(502)
			_, _ = io.WriteString(w, "<html>")
		case "/prefix/v1/grants/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "/elsewhere":
			followed = true
		case "/prefix/v1/grants/garbage":
			_, _ = io.WriteString(w, "<html>")
		}
	})
	_, _, err := c.Grant(t.Context(), "busy")
	p, ok := errors.AsType[*Problem](err)
	if !ok || !errors.Is(err, Busy) || errors.Is(err, Conflict) || p.RetryAfter != 7*time.Second || p.Error() != "try again; body: large" {
		t.Errorf("%v, %+v", err, p)
	}
	for _, id := range []string{"proxy", "moved", "garbage"} {
		_, _, err := c.Grant(t.Context(), id)
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", id, err)
		}
		if _, ok := errors.AsType[*Problem](err); ok {
			t.Errorf("%s is a problem: %v", id, err)
		}
	}
	if followed {
		t.Error("the key went elsewhere")
	}
	gone, err := New(Config{Server: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = gone.Grants(t.Context(), "canary", 0); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("%v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, _, err := c.Grant(ctx, "busy"); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

// A socket is asked as a server is, with the tenant to act for.
func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/zip")
		_, _ = io.WriteString(w, r.Header.Get(TenantHeader)+r.Header.Get("Authorization"))
	})}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	c, err := New(Config{Server: "unix://" + path, Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.http.CloseIdleConnections()
	var b bytes.Buffer
	if err := c.ExportSkill(t.Context(), "greeter", "", &b); err != nil || b.String() != "acme" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// Every code has a status that a client may rely on.
func TestCodes(t *testing.T) {
	if !slices.IsSorted(Codes()) || len(Codes()) != len(statuses) {
		t.Error("Codes is not every code once, sorted")
	}
	for _, c := range Codes() {
		if s := c.Status(); s < 400 || s > 599 || http.StatusText(s) == "" {
			t.Errorf("%s has the status %d", c, s)
		}
		if p := NewProblem(c, ""); p.Status != c.Status() || p.Type != "urn:tracon:problem:"+string(c) || p.Error() == "" {
			t.Errorf("%+v", p)
		}
	}
	if Code("no such").Status() != 500 {
		t.Error("what is no code is no fault of ours")
	}
}
