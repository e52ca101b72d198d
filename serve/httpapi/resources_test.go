package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// A policy is changed field by field, by who has seen it; what is secret in it is not
// told, and a limit that cannot hold is refused in words (T12, T14).
func TestPolicy(t *testing.T) {
	h := newHouse(t)
	var p client.Policy
	r := h.ask("reader", "GET", "/v1/policy", nil).into(200, &p)
	if !p.Enabled || p.TimeoutSeconds != 30 || p.MaxArguments != 64<<10 {
		t.Errorf("%+v", p)
	}
	change := client.PolicyChange{TimeoutSeconds: new(2.5), SetEnvironment: map[string]string{"TOKEN": "canary-value"}, Secrets: &[]string{"TOKEN"}}
	h.ask("admin", "PATCH", "/v1/policy", change).problem(client.PreconditionRequired)
	changed := h.ask("admin", "PATCH", "/v1/policy", change, "If-Match", r.header.Get("ETag")).into(200, &p)
	if p.TimeoutSeconds != 2.5 || p.Environment["TOKEN"].Bytes != len("canary-value") || !slices.Equal(p.Secrets, []string{"TOKEN"}) || strings.Contains(string(changed.body), "canary") {
		t.Errorf("%s", changed.body)
	}
	h.ask("admin", "PATCH", "/v1/policy", change, "If-Match", r.header.Get("ETag")).problem(client.PreconditionFailed)
	h.ask("admin", "PATCH", "/v1/policy", client.PolicyChange{Unset: []string{"TOKEN"}}, "If-Match", changed.header.Get("ETag")).into(200, &p)
	for _, tt := range []struct {
		name string
		body string
	}{
		{"above the ceiling", `{"maxArguments":9000000}`},
		{"below zero", `{"processes":-1}`},
		{"no such tier", `{"minTier":"castle"}`},
		{"no such wall", `{"requireWalls":["moat"]}`},
		{"no such network", `{"network":"everything"}`},
		{"a time without bounds", `{"timeoutSeconds":1e300}`},
		{"less than a microsecond", `{"timeoutSeconds":1e-9}`},
		{"a variable that steers the program", `{"setEnvironment":{"LD_PRELOAD":"x"}}`},
		{"the mask, written back", `{"environment":{"TOKEN":{"bytes":12}}}`},
		{"the mask of a secret, written back", `{"setEnvironment":{"TOKEN":"[secret TOKEN]"},"secrets":["TOKEN"]}`},
		{"a secret that is too short", `{"setEnvironment":{"TOKEN":"1234567"},"secrets":["TOKEN"]}`},
		{"a secret that is none of the variables", `{"secrets":["TOKEN"]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := *h
			h.T = t
			h.ask("admin", "PATCH", "/v1/policy", tt.body, "If-Match", "*").problem(client.Invalid)
		})
	}
	kept, err := h.admin.Policy(t.Context(), "acme")
	h.must(err)
	if kept.Timeout != 2500*time.Millisecond || len(kept.Environment) != 0 || len(kept.Secrets) != 0 {
		t.Errorf("kept: %+v", kept)
	}
	for leaf, err := range h.log.Entries(t.Context(), "acme", 0) {
		h.must(err)
		if strings.Contains(string(leaf.Bytes), "canary") {
			t.Errorf("the log has the value: %s", leaf.Bytes)
		}
	}
}

// The host's settings are the platform's, and stay where a file says them.
func TestHost(t *testing.T) {
	h := newWholeHouse(t)
	var host client.Host
	r := h.ask("platform", "GET", "/v1/host", nil).into(200, &host)
	host = client.Host{}
	h.ask("platform", "PATCH", "/v1/host", client.HostChange{Interpreters: map[string]string{"sh": "runtime:x"}, Unlist: []string{"py"}}, "If-Match", r.header.Get("ETag")).into(200, &host)
	if len(host.Interpreters) != 1 || host.Interpreters["sh"].Name != "runtime:x" {
		t.Errorf("%+v", host.Interpreters)
	}
	h.ask("platform", "PATCH", "/v1/host", client.HostChange{Enabled: new(false)}, "If-Match", r.header.Get("ETag")).problem(client.PreconditionFailed)
	h.ask("platform", "PATCH", "/v1/host", client.HostChange{Interpreters: map[string]string{"P Y": ""}}, "If-Match", "*").problem(client.Invalid)
	h.config.Host = fixedDesk{h.config.Host}
	var err error
	h.handler, err = New(h.config)
	h.must(err)
	h.ask("platform", "PATCH", "/v1/host", client.HostChange{Enabled: new(false)}, "If-Match", "*").problem(client.Fixed)
	h.config.Host, h.config.Notary = nil, nil
	h.handler, err = New(h.config)
	h.must(err)
	h.ask("platform", "GET", "/v1/posture", nil).problem(client.NotOffered)
	h.ask("platform", "POST", "/v1/audit/verify", nil).problem(client.NotOffered)
	h.ask("reader", "POST", "/v1/audit/checkpoint", nil).problem(client.NotOffered)
}

type fixedDesk struct{ Host }

func (fixedDesk) Fixed() bool { return true }

// The log in parts: the tenant's own entries, each once, by what is asked for; receipts
// hold, another's are not told of, and the whole log verifies (B7, T01).
func TestAudit(t *testing.T) {
	h := newWholeHouse(t)
	h.grant("acme")
	h.grant("globex")
	var got, grants []client.Entry
	for next, part := "", 0; part == 0 || next != ""; part++ {
		var page client.Page[client.Entry]
		h.ask("reader", "GET", "/v1/audit/entries?limit=2&cursor="+next, nil).into(200, &page)
		got, next = append(got, page.Items...), page.Next
	}
	for i, e := range got {
		if e.Tenant != "acme" || e.Seq != uint64(i+1) {
			t.Errorf("entry %d is %+v", i, e)
		}
		if e.Kind == "grant" {
			grants = append(grants, e)
		}
	}
	var page client.Page[client.Entry]
	h.ask("reader", "GET", "/v1/audit/entries?kind=grant,revoke&subject=greeter&actor=test&since=2000-01-01T00:00:00Z&until=2999-01-01T00:00:00Z", nil).into(200, &page)
	if len(page.Items) != 1 || len(grants) != 1 || page.Items[0].ID != grants[0].ID {
		t.Errorf("by kind: %+v, want %+v", page.Items, grants)
	}
	h.ask("reader", "GET", "/v1/audit/entries?kind=weather", nil).problem(client.Invalid)
	page = client.Page[client.Entry]{}
	h.ask("platform", "GET", "/v1/audit/entries", nil).into(200, &page)
	for _, e := range page.Items {
		if e.Tenant != gate.HostTenant {
			t.Errorf("the platform reads a tenant's history: %+v", e)
		}
	}

	var receipt client.Receipt
	index := "/v1/audit/entries/" + strconv.FormatUint(grants[0].Index, 10) + "/receipt"
	h.ask("reader", "GET", index, nil).into(200, &receipt)
	h.ask("other", "GET", index, nil).problem(client.NotFound)
	var checked client.ReceiptChecked
	h.ask("reader", "POST", "/v1/audit/receipts/check", client.ReceiptCheck{Receipt: receipt.Receipt}).into(200, &checked)
	if !checked.OK || checked.Entry.ID != grants[0].ID {
		t.Errorf("%+v", checked)
	}
	h.ask("other", "POST", "/v1/audit/receipts/check", client.ReceiptCheck{Receipt: receipt.Receipt}).problem(client.NotFound)
	checked = client.ReceiptChecked{}
	h.ask("reader", "POST", "/v1/audit/receipts/check", client.ReceiptCheck{Receipt: strings.Replace(receipt.Receipt, "index 1", "index 2", 1) + "x"}).into(200, &checked)
	if checked.OK || checked.Fault != "altered" {
		t.Errorf("%+v", checked)
	}
	var v client.Verified
	h.ask("platform", "POST", "/v1/audit/verify", nil).into(200, &v)
	if !v.OK || v.Size == 0 || v.Signed == 0 {
		t.Errorf("%+v", v)
	}
}

// An API key lets in until it is revoked, and no longer; its secret is shown once, and
// nobody hands on what he does not hold (T11, W01).
func TestKeys(t *testing.T) {
	h := newWholeHouse(t)
	h.config.Authenticator = either{people(), Keys(h.store)}
	var err error
	h.handler, err = New(h.config)
	h.must(err)

	var admin, reader, next client.MadeKey
	h.ask("platform", "POST", "/v1/tenants/acme/keys", client.NewKey{Name: "ops", Roles: []string{"admin"}}).into(201, &admin)
	h.ask("platform", "POST", "/v1/tenants/nobody/keys", client.NewKey{Name: "ops", Roles: []string{"admin"}}).problem(client.NotFound)
	h.ask(admin.Secret, "POST", "/v1/keys", client.NewKey{Name: "r", Roles: []string{"reader"}, Scopes: []string{"grants.read"}}).into(201, &reader)
	h.ask(reader.Secret, "GET", "/v1/grants", nil).into(200, nil)
	h.ask(reader.Secret, "GET", "/v1/skills", nil).problem(client.Forbidden)
	h.ask(admin.Secret, "POST", "/v1/keys", client.NewKey{Name: "p", Roles: []string{"platform"}}).problem(client.Forbidden)
	h.ask(admin.Secret, "POST", "/v1/keys", client.NewKey{Name: "x", Roles: []string{"king"}}).problem(client.Invalid)
	h.ask(admin.Secret, "POST", "/v1/keys", client.NewKey{Name: "x", Roles: []string{"reader"}, Expires: time.Unix(1, 0)}).problem(client.Invalid)

	one := h.ask(admin.Secret, "GET", "/v1/keys/"+reader.Key.ID, nil).into(200, &client.Key{})
	if strings.Contains(string(one.body), reader.Secret[len(reader.Secret)-20:]) {
		t.Errorf("the secret is shown again: %s", one.body)
	}
	rotate := "/v1/keys/" + reader.Key.ID + "/rotate"
	h.ask(admin.Secret, "POST", rotate, client.Rotation{OverlapSeconds: new(0.0)}, "If-Match", one.header.Get("ETag")).into(201, &next)
	h.ask(reader.Secret, "GET", "/v1/grants", nil).problem(client.Unauthenticated)
	h.ask(next.Secret, "GET", "/v1/grants", nil).into(200, nil)
	h.ask(admin.Secret, "POST", rotate, nil, "If-Match", one.header.Get("ETag")).problem(client.PreconditionFailed)
	h.ask(admin.Secret, "POST", "/v1/keys/"+next.Key.ID+"/revoke", client.Revocation{Reason: "over"}, "If-Match", "*").into(200, nil)
	h.ask(next.Secret, "GET", "/v1/grants", nil).problem(client.Unauthenticated)
	wrong := admin.Secret[:len(admin.Secret)-1] + string('a'+(admin.Secret[len(admin.Secret)-1]-'a'+1)%26)
	h.ask(wrong, "GET", "/v1/grants", nil).problem(client.Unauthenticated)

	h.ask("platform", "PATCH", "/v1/tenants/acme", client.TenantChange{Off: new(true)}, "If-Match", "*").into(200, nil)
	h.ask(admin.Secret, "GET", "/v1/grants", nil).problem(client.Unauthenticated)
	if strings.Contains(h.logged.String(), admin.Secret) {
		t.Error("the log has a secret")
	}
}

// either asks one and then the other.
type either [2]Authenticator

func (e either) Authenticate(r *http.Request) (access.Principal, error) {
	if p, err := e[0].Authenticate(r); err == nil {
		return p, nil
	}
	return e[1].Authenticate(r)
}

// A tenant is made once, changed by who has seen it, and keeps within its quota (T05, T16).
func TestTenants(t *testing.T) {
	h := newWholeHouse(t)
	var tenant client.Tenant
	r := h.ask("platform", "POST", "/v1/tenants", client.NewTenant{Name: "initech", Quota: client.Quota{Keys: 1}}).into(201, &tenant)
	h.ask("platform", "POST", "/v1/tenants", client.NewTenant{Name: "initech"}).problem(client.Conflict)
	h.ask("platform", "POST", "/v1/tenants/initech/keys", client.NewKey{Name: "a", Roles: []string{"admin"}}).into(201, nil)
	h.ask("platform", "POST", "/v1/tenants/initech/keys", client.NewKey{Name: "b", Roles: []string{"admin"}}).problem(client.QuotaExceeded)
	changed := h.ask("platform", "PATCH", "/v1/tenants/initech", client.TenantChange{Quota: &client.Quota{Keys: 2}}, "If-Match", r.header.Get("ETag")).into(200, &tenant)
	if tenant.Quota.Keys != 2 || changed.header.Get("ETag") == r.header.Get("ETag") {
		t.Errorf("%+v", tenant)
	}
	h.ask("platform", "PATCH", "/v1/tenants/initech", client.TenantChange{}, "If-Match", r.header.Get("ETag")).problem(client.PreconditionFailed)
	for _, name := range []string{"", "../x", "a b", "*", "ACME", "acmé", "a\x00", "a%", "a'--", ".", "-a", strings.Repeat("a", 64), "tracon\u202e"} {
		if r := h.ask("platform", "POST", "/v1/tenants", client.NewTenant{Name: name}); r.status != 422 {
			t.Errorf("the name %q: %d %s", name, r.status, r.body)
		}
	}
	var got []string
	for next, part := "", 0; part == 0 || next != ""; part++ {
		var page client.Page[client.Tenant]
		h.ask("platform", "GET", "/v1/tenants?limit=2&cursor="+next, nil).into(200, &page)
		for _, one := range page.Items {
			got = append(got, one.Name)
		}
		next = page.Next
	}
	if strings.Join(got, " ") != "acme globex initech" {
		t.Errorf("got %v", got)
	}
}

// Ready is one word for all, and why not for the platform alone.
func TestReadiness(t *testing.T) {
	h := newHouse(t)
	h.ask("", "GET", "/readyz", nil).into(200, nil)
	h.log.Suspend(errors.New("canary"))
	for _, token := range []string{"", "reader", "platform"} {
		for _, path := range []string{"/readyz", "/v1/readiness"} {
			if token == "" && path != "/readyz" {
				continue
			}
			var ready client.Readiness
			h.ask(token, "GET", path, nil).into(503, &ready)
			if told := strings.Contains(ready.Why, "canary"); told != (token == "platform" && path == "/v1/readiness") || ready.Status != "not ready" {
				t.Errorf("%s as %q: %+v", path, token, ready)
			}
		}
	}
}
