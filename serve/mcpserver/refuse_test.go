package mcpserver_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
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
