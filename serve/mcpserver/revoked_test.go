package mcpserver_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/internal/toolcase"
	"github.com/tracon-go/tracon/serve/mcpserver"
	"github.com/tracon-go/tracon/toolcall"
)

// holding is an executor whose scripts end when they are stopped.
type holding struct{}

func (holding) Execute(ctx context.Context, _ executor.Request) (executor.Result, error) {
	<-ctx.Done()
	return executor.Result{}, context.Cause(ctx)
}

// T11: a credential that is taken away ends what it has open: a stream that listens, by
// either protocol, and a call of a script. Another's goes on.
func TestCredentialThatIsTakenAway(t *testing.T) {
	const (
		run    = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_skill_script","arguments":{"skill":"shout","script":"scripts/shout.sh"}}}`
		stream = `{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true}}}`
	)
	root := toolcase.Folder(t, "shout")
	for _, tc := range []struct{ name, method, body, version, ending string }{
		{"a stream of a session", "GET", "", "2025-11-25", ""},
		{"a stream of the newest protocol", "POST", stream, "2026-07-28", ""},
		{"a call", "POST", run, "2025-11-25", "cancelled"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := toolcase.Over(t, root, holding{}, nil)
				h.Grant("acme", "")
				var revoked atomic.Bool
				handler, err := mcpserver.New(mcpserver.Config{Tools: h.Tools, Logger: slog.New(slog.DiscardHandler),
					Authenticate: func(*http.Request) (access.Principal, bool, error) {
						return access.Principal{Tenant: "acme", Actor: "bot", Key: "1", Roles: []access.Role{access.Operator}}, !revoked.Load(), nil
					}})
				if err != nil {
					t.Fatal(err)
				}
				defer handler.Close()
				send := func(method, body, session string) *httptest.ResponseRecorder {
					r := httptest.NewRequestWithContext(t.Context(), method, "/mcp", strings.NewReader(body))
					if body == "" {
						r = httptest.NewRequestWithContext(t.Context(), method, "/mcp", nil)
					}
					r.Header.Set("Authorization", "Bearer x")
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Accept", "application/json, text/event-stream")
					r.Header.Set("Mcp-Protocol-Version", tc.version)
					if tc.version == "2026-07-28" {
						r.Header.Set("Mcp-Method", "subscriptions/listen")
					}
					if session != "" {
						r.Header.Set("Mcp-Session-Id", session)
					}
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, r)
					return w
				}
				session := ""
				if tc.version != "2026-07-28" {
					session = send("POST", initialize, "").Header().Get("Mcp-Session-Id")
				}
				ended := make(chan *httptest.ResponseRecorder, 1)
				go func() { ended <- send(tc.method, tc.body, session) }()
				time.Sleep(time.Second)
				synctest.Wait()
				select {
				case w := <-ended:
					t.Fatalf("it ended with a credential that holds: %d %s", w.Code, w.Body)
				default:
				}
				revoked.Store(true)
				time.Sleep(20 * time.Second) // less than a script may take
				synctest.Wait()
				select {
				case <-ended:
				default:
					t.Fatal("it goes on without a credential that holds")
				}
				calls, err := h.Store.Calls(t.Context(), "acme", toolcall.Filter{})
				if err != nil {
					t.Fatal(err)
				}
				if tc.ending != "" && (len(calls) != 1 || calls[0].Ending != tc.ending) {
					t.Errorf("the calls are %+v", calls)
				}
			})
		})
	}
}
