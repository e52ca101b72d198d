package mcpserver_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/toolcase"
	"github.com/tracon-go/tracon/serve/mcpserver"
	"github.com/tracon-go/tracon/toolset"
)

// before is a runner that does something first, as a call that waits gives time for.
type before struct {
	toolset.Runner
	first func(gate.Call)
}

func (b before) Run(ctx context.Context, call gate.Call) (tracon.Outcome, error) {
	b.first(call)
	return b.Runner.Run(ctx, call)
}

// T11: a model's call is asked for again when it has its slot: it never runs where its key
// is revoked by then, is another's, or may run nothing any more, nor where that cannot
// be found out. By either protocol.
func TestModelsCallIsAskedForAgain(t *testing.T) {
	const stateless = "2026-07-28"
	operator := access.Principal{Tenant: "acme", Actor: "bot", Key: "1", Roles: []access.Role{access.Operator}}
	reader, foreign, another := operator, operator, operator
	reader.Roles = []access.Role{access.Reader}
	foreign.Tenant = "other"
	another.Actor = "somebody else"
	root := toolcase.Folder(t, "shout")
	for _, tt := range []struct {
		name  string
		after access.Principal // who it is when the call has its slot
		known bool
		err   error
		runs  int
	}{
		{"it holds", operator, true, nil, 1},
		{"it is revoked", access.Principal{}, false, nil, 0},
		{"it may only read", reader, true, nil, 0},
		{"it is another tenant's", foreign, true, nil, 0},
		{"it is somebody else's of the tenant", another, true, nil, 0},
		{"nobody knows", access.Principal{}, false, errors.New("the store is away"), 0},
	} {
		for _, version := range []string{"2025-11-25", stateless} {
			t.Run(tt.name+", "+version, func(t *testing.T) {
				var mu sync.Mutex
				waited := false
				ran := 0
				h := toolcase.Over(t, root, executor.Func(func(context.Context, executor.Request) (executor.Result, error) {
					ran++
					return executor.Result{Ending: executor.Exited(0)}, nil
				}), func(c *toolset.Config) {
					c.Runner = before{c.Runner, func(call gate.Call) {
						if call.Still == nil {
							t.Error("nobody is to be asked")
						}
						mu.Lock()
						defer mu.Unlock()
						waited = true
					}}
				})
				h.Grant("acme", "")
				h.Grant("other", "")
				handler, err := mcpserver.New(mcpserver.Config{Tools: h.Tools, Logger: slog.New(slog.DiscardHandler),
					Authenticate: func(r *http.Request) (access.Principal, bool, error) {
						mu.Lock()
						defer mu.Unlock()
						if r.Header.Get("Authorization") != "Bearer x" {
							t.Error("it is another request's credential")
						}
						if waited {
							return tt.after, tt.known, tt.err
						}
						return operator, true, nil
					}})
				if err != nil {
					t.Fatal(err)
				}
				defer handler.Close()
				send := func(body, session string) *httptest.ResponseRecorder {
					r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", strings.NewReader(body))
					r.Header.Set("Authorization", "Bearer x")
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Accept", "application/json, text/event-stream")
					r.Header.Set("Mcp-Protocol-Version", version)
					if version == stateless {
						r.Header.Set("Mcp-Method", "tools/call")
						r.Header.Set("Mcp-Name", "run_skill_script")
					} else if session != "" {
						r.Header.Set("Mcp-Session-Id", session)
					}
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, r)
					return w
				}
				meta, session := "", ""
				if version == stateless {
					meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
						`"io.modelcontextprotocol/clientCapabilities":{}},`
				} else {
					session = send(initialize, "").Header().Get("Mcp-Session-Id")
				}
				w := send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+meta+`"name":"run_skill_script","arguments":{"skill":"shout","script":"scripts/shout.sh"}}}`, session)
				if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"result"`) {
					t.Fatalf("%d %s", w.Code, w.Body)
				}
				if ran != tt.runs || strings.Contains(w.Body.String(), `"isError":true`) != (tt.runs == 0) {
					t.Errorf("it ran %d times, want %d: %s", ran, tt.runs, w.Body)
				}
			})
		}
	}
}
