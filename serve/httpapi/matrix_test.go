package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	"github.com/pb33f/libopenapi-validator/errors"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

var update = flag.Bool("update", false, "write the golden files again")

// desk is what the platform asks of this test's host: its runtimes are names without
// files.
type desk struct {
	h *house
	n *notary.Notary
}

func (d desk) Posture(context.Context) (executor.Posture, error) {
	return executor.Posture{Executor: "echo", Tier: grant.Process, Claimed: true, Walls: []executor.Wall{{Name: "network", Proof: "nobody looked", Remedy: "take another executor"}}}, nil
}

func (desk) Fixed() bool { return false }

func (desk) Probe(_ context.Context, _, text string) (gate.Interpreter, error) {
	return gate.Interpreter{Name: text}, nil
}

func (d desk) Runtimes(ctx context.Context) ([]client.Runtime, error) {
	host, err := d.h.admin.Host(ctx)
	list := []client.Runtime{}
	for _, name := range slices.Sorted(maps.Keys(host.Runtimes)) {
		list = append(list, client.Runtime{Name: name, Digest: host.Runtimes[name], UsedBy: []string{}})
	}
	return list, err
}

func (d desk) ImportRuntime(ctx context.Context, n admin.Naming, archive io.Reader) (client.ImportedRuntime, error) {
	b, err := io.ReadAll(archive)
	if err != nil {
		return client.ImportedRuntime{}, err
	}
	n.Digest = bundle.Sum(b)
	before, err := d.h.admin.NameRuntime(ctx, n)
	return client.ImportedRuntime{Runtime: client.Runtime{Name: n.Name, Digest: n.Digest, UsedBy: []string{}}, Before: before, Skipped: []string{}}, err
}

func (d desk) RemoveRuntime(ctx context.Context, actor, name, reason string) (client.RemovedRuntime, error) {
	meant, err := d.h.admin.RemoveRuntime(ctx, actor, name, reason)
	return client.RemovedRuntime{Name: name, Digest: meant}, err
}

func (d desk) VerifyLog(ctx context.Context) (audit.Verified, error) {
	keys, err := d.n.Keys()
	if err != nil {
		return audit.Verified{}, err
	}
	claims, err := d.n.Claims()
	if err != nil {
		return audit.Verified{}, err
	}
	return d.h.log.VerifyClaims(ctx, keys, nil, claims...)
}

// newWholeHouse has everything that the API can be given, and the tenants made.
func newWholeHouse(t *testing.T) *house {
	t.Helper()
	h := newHouse(t)
	n, err := notary.New(notary.Config{Log: h.log, Data: t.TempDir(), State: t.TempDir(), Tenant: gate.HostTenant, Logger: h.config.Logger})
	h.must(err)
	h.must(n.Check(t.Context()))
	for _, tenant := range []string{"acme", "globex"} {
		_, err := h.admin.CreateTenant(t.Context(), people()[string(access.Platform)], access.Tenant{Name: tenant})
		h.must(err)
	}
	h.config.Notary, h.config.Host, h.config.Spool = n, desk{h, n}, t.TempDir()
	h.handler, err = New(h.config)
	h.must(err)
	return h
}

// sample is one request of an operation about something of acme.
type sample struct {
	path    string
	body    any
	kind    string // of a body that is no JSON
	headers []string
}

// samples makes a request for each operation of the document, with something new to be
// asked about, so that one request changes nothing for the next.
var samples = map[string]func(h *house, n int) sample{
	"health":        at("/healthz"),
	"ready":         at("/readyz"),
	"readiness":     at("/v1/readiness"),
	"whoami":        at("/v1/whoami"),
	"version":       at("/v1/version"),
	"openapi":       at("/openapi.json"),
	"list-skills":   at("/v1/skills"),
	"get-skill":     at("/v1/skills/mine?content=true"),
	"list-scripts":  at("/v1/skills/mine/scripts"),
	"skill-history": at("/v1/skills/mine/history"),
	"diff-skill":    at("/v1/skills/mine/diff"),
	"lint-skill":    at("/v1/skills/mine/lint"),
	"get-file":      at("/v1/skills/mine/file?path=scripts/hello.py"),
	"export-skill":  at("/v1/skills/mine/export"),
	"delete-skill": func(h *house, n int) sample {
		name := "gone-" + strconv.Itoa(n)
		h.importNamed("acme", name, script)
		return sample{path: "/v1/skills/" + name, headers: any1}
	},
	"import-zip": func(h *house, n int) sample {
		return sample{path: "/v1/imports/zip?reason=test", body: zipped(h.T, named("zip-"+strconv.Itoa(n), script))}
	},
	"import-files": func(_ *house, n int) sample {
		var list []client.Upload
		for _, f := range named("files-"+strconv.Itoa(n), script) {
			list = append(list, client.Upload{Path: f.Path, Data: f.Data})
		}
		return sample{path: "/v1/imports/files", body: client.FilesImport{Files: list}}
	},
	"import-script": func(_ *house, n int) sample {
		return sample{path: "/v1/imports/script", body: client.ScriptImport{Skill: "script-" + strconv.Itoa(n), Script: "a.py", Data: []byte(script)}}
	},
	"list-grants": at("/v1/grants"),
	"get-grant":   func(h *house, _ int) sample { return sample{path: "/v1/grants/" + h.grant("acme").ID} },
	"create-grant": func(h *house, n int) sample {
		name := "granted-" + strconv.Itoa(n)
		return sample{path: "/v1/grants", body: client.NewGrant{Skill: name, AllScripts: true, Digest: h.importNamed("acme", name, script), MinTier: "process"}}
	},
	"revoke-grant": func(h *house, _ int) sample {
		return sample{path: "/v1/grants/" + h.grant("acme").ID + "/revoke", body: client.Revocation{Reason: "test"}, headers: any1}
	},
	"review":        at("/v1/review?skill=mine&script=scripts/hello.py"),
	"difference":    at("/v1/difference?skill=mine&allScripts=true"),
	"explain":       with("/v1/explain", client.Explain{Skill: "mine", Script: "scripts/hello.py"}),
	"get-policy":    at("/v1/policy"),
	"change-policy": with("/v1/policy", client.PolicyChange{KeepArguments: new(true)}, any1...),
	"list-entries":  at("/v1/audit/entries?limit=3&leaf=true"),
	"get-receipt": func(h *house, _ int) sample {
		return sample{path: fmt.Sprintf("/v1/audit/entries/%d/receipt", h.entryOf("acme").Index)}
	},
	"check-receipt": func(h *house, _ int) sample {
		p, err := h.config.Notary.Prove(h.Context(), h.entryOf("acme").Index)
		h.must(err)
		text, err := p.MarshalText()
		h.must(err)
		return sample{path: "/v1/audit/receipts/check", body: client.ReceiptCheck{Receipt: string(text)}}
	},
	"checkpoint":   func(*house, int) sample { return sample{path: "/v1/audit/checkpoint"} },
	"verify-log":   func(*house, int) sample { return sample{path: "/v1/audit/verify"} },
	"list-keys":    at("/v1/keys"),
	"get-key":      key("/v1/keys/", ""),
	"create-key":   with("/v1/keys", client.NewKey{Name: "made", Roles: []string{"reader"}}),
	"rotate-key":   key("/v1/keys/", "/rotate"),
	"revoke-key":   key("/v1/keys/", "/revoke"),
	"list-tenants": at("/v1/tenants"),
	"get-tenant":   at("/v1/tenants/acme"),
	"create-tenant": func(_ *house, n int) sample {
		return sample{path: "/v1/tenants", body: client.NewTenant{Name: "new-" + strconv.Itoa(n)}}
	},
	"change-tenant": with("/v1/tenants/acme", client.TenantChange{Quota: &client.Quota{Skills: 500}}, any1...),

	"list-tenant-keys":  at("/v1/tenants/acme/keys"),
	"get-tenant-key":    key("/v1/tenants/acme/keys/", ""),
	"create-tenant-key": with("/v1/tenants/acme/keys", client.NewKey{Name: "made", Roles: []string{"reader"}}),
	"rotate-tenant-key": key("/v1/tenants/acme/keys/", "/rotate"),
	"revoke-tenant-key": key("/v1/tenants/acme/keys/", "/revoke"),

	"get-host":      at("/v1/host"),
	"change-host":   with("/v1/host", client.HostChange{Enabled: new(true)}, any1...),
	"posture":       at("/v1/posture"),
	"list-runtimes": at("/v1/runtimes"),
	"get-runtime":   at("/v1/runtimes/kept"),
	"import-runtime": func(_ *house, n int) sample {
		return sample{path: "/v1/runtimes/new-" + strconv.Itoa(n), body: []byte("a root file system"), kind: "application/x-tar"}
	},
	"remove-runtime": func(h *house, n int) sample {
		name := "gone-" + strconv.Itoa(n)
		_, err := h.admin.NameRuntime(h.Context(), admin.Naming{Actor: "test", Name: name, Digest: bundle.Sum([]byte("gone"))})
		h.must(err)
		return sample{path: "/v1/runtimes/" + name, headers: any1}
	},

	"list-calls": at("/v1/calls"),
	"get-call":   func(h *house, _ int) sample { return sample{path: "/v1/calls/" + h.run("acme")} },
	"list-usage": at("/v1/usage"),
	"list-runs":  at("/v1/runs"),
	"start-run":  with("/v1/runs", client.NewRun{Skill: "greeter", Script: "scripts/hello.py"}),
	"get-run":    func(h *house, _ int) sample { return sample{path: "/v1/runs/" + h.run("acme")} },
	"cancel-run": func(h *house, _ int) sample { return sample{path: "/v1/runs/" + h.run("acme") + "/cancel"} },
	"follow-run": func(h *house, _ int) sample { return sample{path: "/v1/runs/" + h.run("acme") + "/events"} },
	"get-run-stdout": func(h *house, _ int) sample {
		return sample{path: "/v1/runs/" + h.run("acme") + "/stdout"}
	},
	"get-run-stderr": func(h *house, _ int) sample {
		return sample{path: "/v1/runs/" + h.run("acme") + "/stderr"}
	},
	"get-run-output": func(h *house, _ int) sample {
		return sample{path: "/v1/runs/" + h.run("acme") + "/output?path=none"}
	},
}

var any1 = []string{"If-Match", "*"}

func at(path string) func(*house, int) sample {
	return func(*house, int) sample { return sample{path: path} }
}

func with(path string, body any, headers ...string) func(*house, int) sample {
	return func(*house, int) sample { return sample{path: path, body: body, headers: headers} }
}

// key is a request about a new key of acme.
func key(before, after string) func(*house, int) sample {
	return func(h *house, n int) sample {
		by := people()[string(access.Admin)]
		k, _, err := h.admin.CreateKey(h.Context(), admin.Keying{By: by, Tenant: "acme", Name: fmt.Sprint("key ", n), Roles: []access.Role{access.Reader}})
		h.must(err)
		s := sample{path: before + k.ID + after}
		if after != "" {
			s.headers = any1
		}
		return s
	}
}

// entryOf returns the first entry of the tenant.
func (h *house) entryOf(tenant string) audit.Leaf {
	h.Helper()
	for leaf, err := range h.log.Entries(h.Context(), tenant, 0) {
		h.must(err)
		return leaf
	}
	h.Fatal("the tenant has no entry")
	return audit.Leaf{}
}

// run runs the tenant's granted script by the API and returns the call's id.
func (h *house) run(tenant string) string {
	h.Helper()
	var r client.Run
	token := map[string]string{"acme": "operator", "globex": "other"}[tenant]
	h.ask(token, "POST", "/v1/runs", client.NewRun{Skill: "greeter", Script: "scripts/hello.py"}).into(200, &r)
	return r.ID
}

// document reads the API's document, and a validator of it.
func (h *house) document() (map[string]map[string]struct{ OperationID string }, validator.Validator) {
	h.Helper()
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	r := h.ask("reader", "GET", "/openapi.json", nil)
	if r.status != 200 {
		h.Fatal(r.status, string(r.body))
	}
	h.must(json.Unmarshal(r.body, &doc))
	parsed, err := libopenapi.NewDocument(r.body)
	h.must(err)
	v, errs := validator.NewValidator(parsed, config.WithoutSecurityValidation())
	if len(errs) > 0 {
		h.Fatal(errs)
	}
	return doc.Paths, v
}

// Every operation of the document, as every role, as the platform, as another tenant
// and without a credential: the matrix of answers is the golden file. Each answer, and
// each request that is carried out, is valid by the document. What is another tenant's
// is answered as what does not exist (T01, T03, R9).
func TestMatrix(t *testing.T) {
	h := newWholeHouse(t)
	h.grant("acme")
	h.importNamed("acme", "mine", script)
	ref := grant.Ref{Tenant: "acme", Skill: "mine", AllScripts: true}
	review, err := h.admin.Review(t.Context(), ref)
	h.must(err)
	_, err = h.admin.Grant(t.Context(), admin.Granting{Actor: "test", Ref: ref, Digest: review.Content.Digest(), MinTier: grant.Process})
	h.must(err)
	h.importNamed("acme", "mine", script+"# changed\n")
	_, err = h.admin.NameRuntime(t.Context(), admin.Naming{Actor: "test", Name: "kept", Digest: bundle.Sum([]byte("kept"))})
	h.must(err)
	paths, valid := h.document()

	who := []string{"", "reader", "operator", "approver", "admin", "platform", "other"}
	var got strings.Builder
	fmt.Fprintf(&got, "%-18s", "operation")
	for _, w := range who {
		if w == "" {
			w = "nobody"
		}
		fmt.Fprintf(&got, " %-9s", w)
	}
	got.WriteString("\n")
	n, seen := 0, map[string]bool{}
	type found struct{ id, method string }
	var all []found
	for _, methods := range paths {
		for method, op := range methods {
			all = append(all, found{op.OperationID, strings.ToUpper(method)})
		}
	}
	slices.SortFunc(all, func(a, b found) int { return strings.Compare(a.id, b.id) })
	for _, op := range all {
		seen[op.id] = true
		make, ok := samples[op.id]
		if !ok {
			t.Errorf("the operation %s has no sample: add one, so that it is asked as everybody", op.id)
			continue
		}
		fmt.Fprintf(&got, "%-18s", op.id)
		for _, token := range who {
			n++
			s := make(h, n)
			r := h.askSample(token, op.method, s, valid)
			fmt.Fprintf(&got, " %-9d", r.status)
			if token == "other" && r.status == http.StatusNotFound {
				h.sameAsNothing(r, op.method, s, valid)
			}
		}
		got.WriteString("\n")
	}
	for id := range samples {
		if !seen[id] {
			t.Errorf("there is a sample for %s, and no such operation", id)
		}
	}
	golden(t, "matrix.golden", got.String())
}

// The committed document is the one that is served, and it is one by the standard. Who
// changes it looks at it: -update writes it, and ./check asks whether a client breaks.
func TestDocument(t *testing.T) {
	h := newWholeHouse(t)
	_, valid := h.document()
	if ok, errs := valid.ValidateDocument(); !ok {
		for _, e := range errs {
			t.Errorf("%s: %s", e.Message, e.Reason)
		}
	}
	golden(t, "../../../docs/openapi.json", string(h.ask("reader", "GET", "/openapi.json", nil).body)+"\n")
}

// askSample asks, and has the request and the answer looked at by the document.
func (h *house) askSample(token, method string, s sample, valid validator.Validator) reply {
	h.Helper()
	headers := s.headers
	if s.kind != "" {
		headers = append(slices.Clone(headers), "Content-Type", "", "Content-Type", s.kind)
	}
	r := h.ask(token, method, s.path, s.body, headers...)
	var body io.Reader
	checks := []func(*http.Request) (bool, []*errors.ValidationError){
		valid.GetParameterValidator().ValidateHeaderParams, valid.GetParameterValidator().ValidateQueryParams, valid.GetParameterValidator().ValidatePathParams,
	}
	if _, raw := s.body.([]byte); s.body != nil && !raw {
		text, err := json.Marshal(s.body)
		h.must(err)
		body = bytes.NewReader(text)
		checks = append(checks, valid.GetRequestBodyValidator().ValidateRequestBody)
	}
	req := httptest.NewRequestWithContext(h.Context(), method, s.path, body)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(s.headers); i += 2 {
		req.Header.Set(s.headers[i], s.headers[i+1])
	}
	for _, check := range checks {
		if ok, errs := check(req); r.status < 300 && !ok {
			for _, e := range errs {
				h.Errorf("%s: what was carried out is not as the document has it: %s: %s", r.what, e.Message, e.Reason)
			}
		}
	}
	res := &http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(bytes.NewReader(r.body))}
	kind := r.header.Get("Content-Type")
	if strings.HasSuffix(kind, "json") {
		if ok, errs := valid.ValidateHttpResponse(req, res); !ok {
			for _, e := range errs {
				h.Errorf("%s: the answer is not as the document has it: %s: %s: %v", r.what, e.Message, e.Reason, e.SchemaValidationErrors)
			}
			h.Logf("%s", r.body)
		}
	}
	return r
}

var ids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|/v1/keys/[a-z2-7]{16}|/skills/[a-z0-9-]+|/entries/[0-9]+`)

// sameAsNothing asks the same of what does not exist, and compares.
func (h *house) sameAsNothing(r reply, method string, s sample, valid validator.Validator) {
	h.Helper()
	s.path = ids.ReplaceAllStringFunc(s.path, func(found string) string {
		switch {
		case strings.HasPrefix(found, "/v1/keys/"):
			return "/v1/keys/" + strings.Repeat("a", 16)
		case strings.HasPrefix(found, "/skills/"):
			return "/skills/nobody-has-it"
		case strings.HasPrefix(found, "/entries/"):
			return "/entries/99999999"
		}
		return "01900000-0000-7000-8000-000000000000"
	})
	none := h.askSample("other", method, s, valid)
	cut := func(b []byte) string { return ids.ReplaceAllString(string(b), "ID") }
	if none.status != r.status || cut(none.body) != cut(r.body) {
		h.Errorf("%s: another tenant's is told from what does not exist:\n%d %s\n%d %s", r.what, r.status, r.body, none.status, none.body)
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(none.header)), slices.Sorted(maps.Keys(r.header))); d != "" {
		h.Errorf("%s: other headers: %s", r.what, d)
	}
}

// golden compares with a file, which -update writes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", path, d)
	}
}
