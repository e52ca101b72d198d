package mcpserver_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/toolcase"
	"github.com/tracon-go/tracon/serve/mcpserver"
	"github.com/tracon-go/tracon/toolcall"
	"github.com/tracon-go/tracon/toolset"
)

// The credentials of the tests.
var principals = map[string]access.Principal{
	"acme":   {Tenant: "acme", Actor: "model", Key: "1", Roles: []access.Role{access.Operator}},
	"other":  {Tenant: "other", Actor: "model", Key: "2", Roles: []access.Role{access.Operator}},
	"reader": {Tenant: "acme", Actor: "reader", Key: "3", Roles: []access.Role{access.Reader}},
	"root":   {Actor: "root", Key: "4", Roles: []access.Role{access.Platform}},
}

func authenticate(r *http.Request) (access.Principal, bool, error) {
	p, ok := principals[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	return p, ok, nil
}

// endpoint is the house's endpoint on a real listener.
func endpoint(t *testing.T, h *toolcase.House) (*mcpserver.Handler, string) {
	t.Helper()
	handler, err := mcpserver.New(mcpserver.Config{Tools: h.Tools, Authenticate: authenticate, Version: "test",
		Resource: "https://tracon.example/mcp", Issuers: []string{"https://issuer.example"}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(handler)
	t.Cleanup(func() { handler.Close(); s.Close() })
	return handler, s.URL
}

// bearer sends a credential with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// connect is a real client of the protocol's own library.
func connect(t *testing.T, url, credential string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(credential)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// post sends one message, in a session where it names one.
func post(t *testing.T, url, credential, session, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if credential != "" {
		req.Header.Set("Authorization", "Bearer "+credential)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	return res, string(text)
}

func call(t *testing.T, s *mcp.ClientSession, tool string, arguments any) (*mcp.CallToolResult, string) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	return r, r.Content[0].(*mcp.TextContent).Text
}

func toolNames(t *testing.T, s *mcp.ClientSession) (names []string) {
	t.Helper()
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

type object = map[string]any

// Every version of the protocol has the four tools, with sessions and without.
func TestProtocolVersions(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	_, url := endpoint(t, h)
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			session := ""
			post := func(body string) (int, string) {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer acme")
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Accept", "application/json, text/event-stream")
				if session != "" {
					req.Header.Set("Mcp-Session-Id", session)
				}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				text, _ := io.ReadAll(res.Body)
				if id := res.Header.Get("Mcp-Session-Id"); id != "" {
					session = id
				}
				return res.StatusCode, string(text)
			}
			code, text := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
			if code != http.StatusOK || !strings.Contains(text, version) {
				t.Fatalf("%d %s", code, text)
			}
			post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			code, text = post(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
			if code != http.StatusOK || !strings.Contains(text, toolset.RunSkillScript) {
				t.Errorf("%d %s", code, text)
			}
		})
	}
}

// A session belongs to who began it: with another credential it is not found, and nobody
// learns that it is there.
func TestSessionsOfOthers(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	_, url := endpoint(t, h)
	send := func(credential, session, body string) (*http.Response, string) {
		return post(t, url, credential, session, body)
	}
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	res, _ := send("acme", "", initialize)
	session := res.Header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatal("there is no session")
	}
	for _, thief := range []string{"other", "reader"} {
		if res, text := send(thief, session, list); res.StatusCode < 400 {
			t.Errorf("%s used the session: %s", thief, text)
		}
	}
	// W: a browser's request for another site is refused, whatever credential it has.
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(initialize))
	req.Header.Set("Authorization", "Bearer acme")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	if res, err := http.DefaultClient.Do(req); err != nil || res.StatusCode != http.StatusForbidden {
		t.Errorf("a browser got %v, %v", res, err)
	}
	// Without a credential, with one that does not hold, and with one of no tenant.
	for credential, want := range map[string]int{"": http.StatusUnauthorized, "guess": http.StatusUnauthorized, "root": http.StatusForbidden} {
		res, _ := send(credential, session, list)
		if res.StatusCode != want {
			t.Errorf("%q got %d, want %d", credential, res.StatusCode, want)
		}
		if want == http.StatusUnauthorized &&
			!strings.Contains(res.Header.Get("WWW-Authenticate"), `resource_metadata="https://tracon.example/.well-known/oauth-protected-resource/mcp"`) {
			t.Errorf("%q is told %q", credential, res.Header.Get("WWW-Authenticate"))
		}
	}
}

// Who may only read is offered no run tool, and gets none by its name.
func TestReaderRunsNothing(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	_, url := endpoint(t, h)
	s := connect(t, url, "reader", nil)
	if got := toolNames(t, s); slices.Contains(got, toolset.RunSkillScript) {
		t.Errorf("the tools are %q", got)
	}
	if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: toolset.RunSkillScript, Arguments: object{"skill": "shout", "script": "scripts/shout.sh"}}); err == nil {
		t.Error("it ran")
	}
}

// A client hears of a grant that was revoked, without asking.
func TestListChanged(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	_, url := endpoint(t, h)
	changed := make(chan struct{}, 10)
	s := connect(t, url, "acme", &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
	if got := toolNames(t, s); len(got) != 4 {
		t.Fatalf("the tools are %q", got)
	}
	grants, err := h.Desk.Grants(t.Context(), "acme", grant.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Desk.Revoke(t.Context(), "operator", "acme", grants[0].ID, ""); err != nil {
		t.Fatal(err)
	}
	<-changed
	if got := toolNames(t, s); len(got) != 3 {
		t.Errorf("the tools are %q", got)
	}
}

// SEP-2640: the skills' files are resources, with the digests of exactly what is read.
func TestResources(t *testing.T) {
	h := toolcase.Open(t, nil)
	_, url := endpoint(t, h)
	s := connect(t, url, "acme", nil)
	var uris []string
	for r, err := range s.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		uris = append(uris, r.URI)
	}
	slices.Sort(uris)
	if want := []string{"skill://shout/SKILL.md", "skill://tales/SKILL.md"}; !slices.Equal(uris, want) {
		t.Errorf("the resources are %q", uris)
	}
	for uri, want := range map[string]string{"skill://tales/SKILL.md": toolcase.Skills["tales/SKILL.md"], "skill://shout/scripts/shout.sh": toolcase.Skills["shout/scripts/shout.sh"]} {
		r, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || r.Contents[0].Text != want {
			t.Errorf("%s is %+v, %v", uri, r, err)
		}
	}
	for _, uri := range []string{"skill://tales/../shout/SKILL.md", "skill://nope/SKILL.md", "skill://tales/", "file:///etc/passwd", "skill://tales/%2e%2e/x"} {
		if r, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s is %+v", uri, r)
		}
	}
}

// skills/list and skills/get tell each skill whole.
func TestSkillMethods(t *testing.T) {
	h := toolcase.Open(t, nil)
	_, url := endpoint(t, h)
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	if err := mcp.AddSendingCustomMethod[*askParams, *askResult](c, "skills/list"); err != nil {
		t.Fatal(err)
	}
	if err := mcp.AddSendingCustomMethod[*askParams, *askResult](c, "skills/get"); err != nil {
		t.Fatal(err)
	}
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer("acme")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := mcp.CallCustomMethod[*askParams, *askResult](t.Context(), s, "skills/list", &askParams{})
	if err != nil || len(list.Skills) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	one, err := mcp.CallCustomMethod[*askParams, *askResult](t.Context(), s, "skills/get", &askParams{URI: "skill://shout/SKILL.md"})
	if err != nil || one.ResultType != "complete" || one.Skill.Frontmatter["name"] != "shout" || len(one.Skill.Resources) != 10 || !strings.HasPrefix(one.Skill.Resources[0].Digest, "sha256:") {
		t.Errorf("%+v, %v", one, err)
	}
	if _, err := mcp.CallCustomMethod[*askParams, *askResult](t.Context(), s, "skills/get", &askParams{URI: "skill://nope/SKILL.md"}); err == nil {
		t.Error("there is a skill that is none")
	}
}

type askParams struct {
	mcp.ParamsBase
	URI string `json:"uri,omitempty"`
}

type askResult struct {
	mcp.ResultBase
	ResultType string  `json:"resultType"` // the newest protocol wants it said
	Skills     []asked `json:"skills"`
	Skill      asked   `json:"skill"`
}

type asked struct {
	URI         string         `json:"uri"`
	Frontmatter map[string]any `json:"frontmatter"`
	Resources   []struct {
		URI    string `json:"uri"`
		Digest string `json:"digest"`
	} `json:"resources"`
}

// Who may run no longer runs nothing, over a session that began
// when it might.
func TestRoleThatWasTakenAway(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	var reader atomic.Bool
	handler, err := mcpserver.New(mcpserver.Config{Tools: h.Tools, Logger: slog.New(slog.DiscardHandler),
		Authenticate: func(r *http.Request) (access.Principal, bool, error) {
			p := access.Principal{Tenant: "acme", Actor: "alice", Roles: []access.Role{access.Operator}}
			if reader.Load() {
				p.Roles = []access.Role{access.Reader}
			}
			return p, true, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(handler)
	t.Cleanup(func() { handler.Close(); s.Close() })
	// A protocol with sessions: the server of the session is the one of its beginning.
	res, _ := post(t, s.URL, "x", "", initialize)
	session := res.Header.Get("Mcp-Session-Id")
	const run = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_skill_script","arguments":{"skill":"shout","script":"scripts/shout.sh"}}}`
	if _, text := post(t, s.URL, "x", session, run); !strings.Contains(text, `"exitCode":0`) {
		t.Fatalf("%s", text)
	}
	reader.Store(true)
	if _, text := post(t, s.URL, "x", session, run); !strings.Contains(text, "may run no scripts") {
		t.Errorf("it ran: %s", text)
	}
	if calls, err := h.Store.Calls(t.Context(), "acme", toolcall.Filter{}); err != nil || len(calls) != 1 {
		t.Errorf("%d calls, %v", len(calls), err)
	}
}

// Strict JSON at this door too: a name twice, a batch, and what is no object reach no tool.
func TestStrictEnvelope(t *testing.T) {
	h := toolcase.Open(t, nil)
	_, url := endpoint(t, h)
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_skills","name":"load_skill"}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `"ping"`, `{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
	} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer acme")
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("%q got %d", body, res.StatusCode)
		}
	}
}

// B10: one credential's sessions are bounded: the oldest ends, and the newest works.
func TestSessionsAreBounded(t *testing.T) {
	h := toolcase.Open(t, nil)
	_, url := endpoint(t, h)
	send := func(session, body string) *http.Response {
		res, _ := post(t, url, "acme", session, body)
		return res
	}
	var ids []string
	for range 150 {
		res := send("", initialize)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("the answer is %d", res.StatusCode)
		}
		ids = append(ids, res.Header.Get("Mcp-Session-Id"))
	}
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	if res := send(ids[len(ids)-1], ping); res.StatusCode != http.StatusOK {
		t.Errorf("the newest session is answered %d", res.StatusCode)
	}
	for send(ids[0], ping).StatusCode != http.StatusNotFound {
		// its end is on its way
	}
}
