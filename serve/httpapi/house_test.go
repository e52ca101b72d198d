package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/schema"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/skill"
	"github.com/tracon-go/tracon/store/memstore"
)

// echo is an executor of one's own (R2) that says hello and starts nothing.
type echo struct{}

func (echo) Execute(_ context.Context, req executor.Request) (executor.Result, error) {
	if !req.Valid() {
		return executor.Result{}, executor.ErrInvalidRequest
	}
	return executor.Result{Ending: executor.Exited(0), Stdout: []byte("hello\n")}, nil
}

// imports is the store's imported skills for package skill, as the daemon has them.
type imports struct{ kept admin.Imports }

func (i imports) ImportedScript(ctx context.Context, tenant, name, path string) (gate.Origin, error) {
	v, has, err := i.kept.ImportedFile(ctx, tenant, name, path)
	switch {
	case err != nil || !has:
		return 0, err
	case v.Stored:
		return gate.StoredScript, nil
	}
	return gate.FileScript, nil
}

func (i imports) ImportedSkill(ctx context.Context, tenant, name string) (bundle.Bundle, error) {
	_, b, err := i.kept.Imported(ctx, tenant, name)
	return b, err
}

// tokens are the credentials of the tests: an embedder's own authentication.
type tokens map[string]access.Principal

func (l tokens) Authenticate(r *http.Request) (access.Principal, error) {
	token, _ := Bearer(r)
	p, ok := l[token]
	if !ok {
		return access.Principal{}, ErrUnauthenticated
	}
	return p, nil
}

// people are a token for each role of the tenant acme, the platform, and the other
// tenant's admin.
func people() tokens {
	l := tokens{"other": {Tenant: "globex", Actor: "olga", Roles: []access.Role{access.Admin}}}
	for _, r := range access.Roles() {
		p := access.Principal{Tenant: "acme", Actor: string(r) + " at acme", Roles: []access.Role{r}}
		if r == access.Platform {
			p.Tenant, p.Actor = "", "the platform"
		}
		l[string(r)] = p
	}
	return l
}

// house is an installation with its API.
type house struct {
	*testing.T
	store   *memstore.Store
	log     *audit.Log
	admin   *admin.Admin
	runner  *tracon.Runner
	config  Config
	inside  *server
	handler http.Handler
	logged  *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const script = "print('hello')\n"

func files(script string) []bundle.File {
	return []bundle.File{
		{Path: "SKILL.md", Data: []byte("---\nname: greeter\ndescription: Says hello.\n---\nRun scripts/hello.py.\n")},
		{Path: "scripts/hello.py", Data: []byte(script)},
	}
}

// named are the files of the skill under another name.
func named(name, script string) []bundle.File {
	list := files(script)
	list[0].Data = bytes.Replace(list[0].Data, []byte("greeter"), []byte(name), 1)
	return list
}

// newHouse has the skill greeter imported for acme and globex, and both switched on.
func newHouse(t *testing.T, change ...func(*Config)) *house {
	t.Helper()
	return newHouseOver(t, echo{}, change...)
}

// newHouseOver is newHouse over another executor.
func newHouseOver(t *testing.T, e executor.Executor, change ...func(*Config)) *house {
	t.Helper()
	h := &house{T: t, store: memstore.New(), logged: &lockedBuffer{}}
	h.log = audit.NewLog(h.store)
	contents := skill.NewImported(imports{h.store})
	gates := gate.New(gate.Config{Hosts: h.store, Policies: h.store, Contents: contents, Declarer: new(skill.Declarations),
		Schemas: schema.New(schema.Options{}), Grants: h.store, Log: h.log})
	logger := slog.New(slog.NewJSONHandler(h.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	h.runner, err = tracon.New(tracon.Config{Gate: gates, Executor: e, Calls: h.store, Logger: logger})
	h.must(err)
	t.Cleanup(func() { h.must(h.runner.Close(context.WithoutCancel(t.Context()))) })
	running, err := runs.New(h.runner, runs.Limits{})
	h.must(err)
	t.Cleanup(func() { h.must(running.Close(context.WithoutCancel(t.Context()))) })
	h.admin = admin.New(admin.Config{Store: h.store, Log: h.log, Hosts: h.store, Contents: contents})
	_, err = h.admin.SetHost(t.Context(), "test", func(s *gate.Host) error {
		s.Enabled, s.TrustClaimed = true, true
		s.Interpreters = map[string]gate.Interpreter{"py": {Name: "python-3.12"}}
		return nil
	})
	h.must(err)
	for _, tenant := range []string{"acme", "globex"} {
		_, err = h.admin.SetPolicy(t.Context(), "test", tenant, func(p *gate.Policy) error {
			p.Enabled, p.Interpreters = true, []string{"py"}
			return nil
		})
		h.must(err)
		h.importSkill(tenant, script)
	}
	h.config = Config{Authenticator: people(), Admin: h.admin, Store: h.store, Contents: contents, Log: h.log, Runner: h.runner, Runs: running, Version: "test", Logger: logger}
	for _, f := range change {
		f(&h.config)
	}
	h.inside, h.handler, err = newServer(h.config)
	h.must(err)
	return h
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) importSkill(tenant, script string) bundle.Digest {
	h.Helper()
	return h.importFiles(tenant, files(script))
}

// importNamed imports the skill under another name.
func (h *house) importNamed(tenant, name, script string) bundle.Digest {
	h.Helper()
	return h.importFiles(tenant, named(name, script))
}

func (h *house) importFiles(tenant string, files []bundle.File) bundle.Digest {
	h.Helper()
	s, err := skill.FromFiles(files, bundle.Limits{})
	h.must(err)
	v, err := h.admin.Import(h.Context(), admin.Importing{Actor: "test", Tenant: tenant, Skill: s.Name, Content: s.Bundle})
	h.must(err)
	return v.Digest
}

// grant grants the skill's script to the tenant.
func (h *house) grant(tenant string) grant.Grant {
	h.Helper()
	ref := grant.Ref{Tenant: tenant, Skill: "greeter", Script: "scripts/hello.py"}
	r, err := h.admin.Review(h.Context(), ref)
	h.must(err)
	g, err := h.admin.Grant(h.Context(), admin.Granting{Actor: "test", Ref: ref, Digest: r.Content.Digest(), MinTier: grant.Process})
	h.must(err)
	return g
}

// reply is an answer of the API.
type reply struct {
	*house
	what   string
	status int
	header http.Header
	body   []byte
}

// ask sends a request as the token's principal; headers are names and values in turn.
func (h *house) ask(token, method, path string, body any, headers ...string) reply {
	h.Helper()
	var r io.Reader
	kind := ""
	switch b := body.(type) {
	case nil:
	case string:
		r, kind = strings.NewReader(b), "application/json"
	case []byte:
		r, kind = bytes.NewReader(b), "application/zip"
	default:
		text, err := json.Marshal(b)
		h.must(err)
		r, kind = bytes.NewReader(text), "application/json"
	}
	req := httptest.NewRequestWithContext(h.Context(), method, path, r)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
			continue
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	h.handler.ServeHTTP(rec, req)
	return reply{h, token + " " + method + " " + path, rec.Code, rec.Header(), rec.Body.Bytes()}
}

// into decodes the body of an answer that has this status.
func (r reply) into(status int, v any) reply {
	r.Helper()
	if r.status != status {
		r.Fatalf("%s: %d, want %d: %s", r.what, r.status, status, r.body)
	}
	if v != nil {
		dec := json.NewDecoder(bytes.NewReader(r.body))
		dec.DisallowUnknownFields()
		if err := dec.Decode(v); err != nil {
			r.Fatalf("%s: %v: %s", r.what, err, r.body)
		}
	}
	return r
}

// problem says that the answer is a problem of this code.
func (r reply) problem(code client.Code) client.Problem {
	r.Helper()
	var p client.Problem
	r.into(code.Status(), &p)
	if p.Code != code || p.Status != r.status || p.RequestID != r.header.Get(RequestIDHeader) || r.header.Get("Content-Type") != "application/problem+json" {
		r.Errorf("%s: want the problem %s, got %s (%s)", r.what, code, r.body, r.header)
	}
	return p
}
