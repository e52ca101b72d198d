package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// newHost is the example's host over plain processes, which run on every system.
func newHost(t *testing.T) *host {
	t.Helper()
	e, err := process.New(process.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	h, err := open(t.Context(), "../skills", e)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The example does what it says: one script is granted and runs.
func TestConvert(t *testing.T) {
	h := newHost(t)
	defer h.runner.Close(t.Context())
	out, err := h.convert(t.Context())
	if err != nil || !strings.Contains(out, "42.16") {
		t.Errorf("got %q, %v", out, err)
	}
}

// The API is mounted below a prefix of the application's server, and whoever is logged
// in to the application is who asks: nobody else, and for his own customer alone.
func TestSite(t *testing.T) {
	h := newHost(t)
	s, err := newSite(h, people)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer func() {
		server.Close()
		if err := s.runs.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := h.runner.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	ask := func(cookie, method, path, body string) (int, string, http.Header) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		if cookie != "" {
			req.AddCookie(&http.Cookie{Name: "session", Value: cookie})
		}
		res, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text), res.Header
	}
	const anna, rob, gwen, marla = "a-cookie-of-anna", "a-cookie-of-rob", "a-cookie-of-gwen", "a-cookie-of-marla"
	const call = `{"skill":"unit-converter","script":"scripts/convert.py","arguments":{"value":26.2,"factor":1.60934}}`

	status, text, head := ask(anna, "POST", "/scripts/v1/runs", call)
	var run client.Run
	if err := json.Unmarshal([]byte(text), &run); err != nil || status != 200 || run.Stdout == nil || !strings.Contains(*run.Stdout, "42.16") || run.Actor != "anna" {
		t.Fatalf("anna's run: %d %s", status, text)
	}
	one := head.Get("Location")
	if one != "/scripts/v1/runs/"+run.ID {
		t.Errorf("it is at %q", one)
	}
	for _, tt := range []struct {
		who, method, path, body string
		want                    int
	}{
		{anna, "GET", "/", "", 200},
		{"", "GET", "/", "", 401},
		{rob, "GET", one, "", 200},
		{gwen, "GET", one, "", 404},
		{marla, "GET", one, "", 403},
		{"", "GET", one, "", 401},
		{"forged", "GET", one, "", 401},
		{rob, "POST", "/scripts/v1/runs", call, 403},
		{gwen, "POST", "/scripts/v1/runs", call, 403}, // her customer is not switched on
		{anna, "GET", "/v1/runs", "", 404},
		{anna, "GET", "/scripts/../v1/runs", "", 404},
	} {
		if status, text, _ := ask(tt.who, tt.method, tt.path, tt.body); status != tt.want {
			t.Errorf("%q %s %s: %d %s, want %d", tt.who, tt.method, tt.path, status, text, tt.want)
		}
	}
}
