package mcpserver_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/internal/toolcase"
	"github.com/tracon-go/tracon/serve/mcpserver"
)

// Where no address is configured a client without a credential that holds is still told
// which scheme it takes, and the host writes what is refused (RFC 9110, 15.5.2).
func TestRefusalWithoutAnAddress(t *testing.T) {
	refused := map[int]int{}
	h, err := mcpserver.New(mcpserver.Config{Tools: toolcase.Open(t, nil).Tools, Authenticate: authenticate, Logger: slog.New(slog.DiscardHandler),
		Refuse: func(w http.ResponseWriter, _ *http.Request, status int, detail string) {
			refused[status]++
			http.Error(w, detail, status)
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, credential := range []string{"", "Bearer guess", "Basic acme", "Bearer"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/mcp", nil)
		if credential != "" {
			r.Header.Set("Authorization", credential)
		}
		h.ServeHTTP(w, r)
		if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != `Bearer realm="tracon"` {
			t.Errorf("%q: %d, told %q", credential, w.Code, w.Header().Get("WWW-Authenticate"))
		}
	}
	if refused[http.StatusUnauthorized] != 4 {
		t.Errorf("the host wrote %v, want every refusal", refused)
	}
}

// What the protocol's library refuses in plain text the host writes, with the library's
// status; an error of JSON-RPC stays one.
func TestLibraryRefusals(t *testing.T) {
	h, err := mcpserver.New(mcpserver.Config{Tools: toolcase.Open(t, nil).Tools, Authenticate: authenticate, Logger: slog.New(slog.DiscardHandler),
		Refuse: func(w http.ResponseWriter, _ *http.Request, status int, detail string) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"detail":%q}`, detail)
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, tc := range []struct {
		name, method, body string
		header             map[string]string
		status             int
		kind               string
	}{
		{"another method", "PUT", ping, nil, 405, "problem+json"},
		{"another media type", "POST", ping, map[string]string{"Content-Type": "text/plain"}, 415, "problem+json"},
		{"no event stream", "POST", ping, map[string]string{"Accept": "application/json"}, 400, "problem+json"},
		{"an unknown session", "POST", ping, map[string]string{"Mcp-Session-Id": "none"}, 404, "problem+json"},
		{"a version that is none", "POST", ping, map[string]string{"Mcp-Protocol-Version": "1066-10-14"}, 400, "problem+json"},
		{"no message", "POST", `{"a":1}`, nil, 400, "problem+json"},
		{"an end of no session", "DELETE", "", nil, 400, "problem+json"},
		{"a message", "POST", initialize, nil, 200, "event-stream"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(tc.method, "/mcp", strings.NewReader(tc.body))
			r.Header.Set("Authorization", "Bearer acme")
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for name, value := range tc.header {
				r.Header.Set(name, value)
			}
			h.ServeHTTP(w, r)
			if w.Code != tc.status || !strings.Contains(w.Header().Get("Content-Type"), tc.kind) || w.Body.Len() == 0 {
				t.Errorf("%d %s %s, want %d %s", w.Code, w.Header().Get("Content-Type"), w.Body, tc.status, tc.kind)
			}
		})
	}
}
