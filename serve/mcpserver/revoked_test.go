package mcpserver_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
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

// ways are how a credential is taken away.
var ways = []struct {
	name string
	take func(t *testing.T, desk *admin.Admin, k access.Key) error
}{
	{"the key is revoked", func(t *testing.T, desk *admin.Admin, k access.Key) error {
		_, err := desk.RevokeKey(t.Context(), platform, k.Tenant, k.ID, "")
		return err
	}},
	{"the tenant is off", func(t *testing.T, desk *admin.Admin, k access.Key) error {
		_, err := desk.SetTenant(t.Context(), platform, k.Tenant, func(of *access.Tenant) error { of.Off = true; return nil })
		return err
	}},
}

var platform = access.Principal{Actor: "op", Roles: []access.Role{access.Platform}}

// T11: a key that is taken away, or whose tenant is switched off, ends what it has open: a
// stream that listens, by either protocol, and a call of a script. Another's goes on.
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
		for _, way := range ways {
			t.Run(tc.name+", "+way.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := toolcase.Over(t, root, holding{}, nil)
					handler, err := mcpserver.New(mcpserver.Config{Tools: h.Tools, Logger: slog.New(slog.DiscardHandler),
						Authenticate: func(r *http.Request) (access.Principal, bool, error) {
							p, err := access.Authenticate(r.Context(), h.Store, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), time.Now())
							if err == access.ErrCredential {
								return access.Principal{}, false, nil
							}
							return p, err == nil, err
						}})
					if err != nil {
						t.Fatal(err)
					}
					defer handler.Close()
					send := func(ctx context.Context, key, method, body, session string) *httptest.ResponseRecorder {
						r := httptest.NewRequestWithContext(ctx, method, "/mcp", strings.NewReader(body))
						if body == "" {
							r = httptest.NewRequestWithContext(ctx, method, "/mcp", nil)
						}
						r.Header.Set("Authorization", "Bearer "+key)
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
					// The other leaves by himself.
					ctx, leave := context.WithCancel(t.Context())
					defer leave()
					keys, ended := map[string]access.Key{}, map[string]chan *httptest.ResponseRecorder{}
					for _, tenant := range []string{"acme", "other"} {
						if _, err := h.Desk.CreateTenant(ctx, platform, access.Tenant{Name: tenant}); err != nil {
							t.Fatal(err)
						}
						h.Grant(tenant, "")
						key, secret, err := h.Desk.CreateKey(ctx, admin.Keying{By: platform, Tenant: tenant, Name: "bot", Roles: []access.Role{access.Operator}})
						if err != nil {
							t.Fatal(err)
						}
						session := ""
						if tc.version != "2026-07-28" {
							session = send(ctx, secret.Reveal(), "POST", initialize, "").Header().Get("Mcp-Session-Id")
						}
						one := make(chan *httptest.ResponseRecorder, 1)
						keys[tenant], ended[tenant] = key, one
						go func() { one <- send(ctx, secret.Reveal(), tc.method, tc.body, session) }()
					}
					time.Sleep(time.Second)
					synctest.Wait()
					for tenant, one := range ended {
						select {
						case w := <-one:
							t.Fatalf("that of %s ended with a credential that holds: %d %s", tenant, w.Code, w.Body)
						default:
						}
					}
					if err := way.take(t, h.Desk, keys["acme"]); err != nil {
						t.Fatal(err)
					}
					time.Sleep(20 * time.Second) // less than a script may take
					synctest.Wait()
					select {
					case <-ended["acme"]:
					default:
						t.Error("it goes on without a credential that holds")
					}
					select {
					case w := <-ended["other"]:
						t.Errorf("another's ended: %d %s", w.Code, w.Body)
					default:
					}
					calls, err := h.Store.Calls(ctx, "acme", toolcall.Filter{})
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
}
