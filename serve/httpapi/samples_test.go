package httpapi

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/fsck"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/retention"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// desk is what the platform asks of this test's host: its runtimes are names without
// files.
type desk struct {
	h *house
	n *notary.Notary
}

func (d desk) Posture(context.Context) (client.Posture, error) {
	return client.Posture{Executor: "echo", Tier: "process", Claimed: true, Walls: []client.Wall{{Name: "network", Proof: "nobody looked", Remedy: "take another executor"}}}, nil
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

func (d desk) ImportRuntime(ctx context.Context, n admin.Naming, _ string, archive io.Reader) (client.ImportedRuntime, error) {
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

func (d desk) DeleteTenant(ctx context.Context, by access.Principal, name, reason string, preview bool, seen func(access.Tenant) error) (client.Deletion, error) {
	h := d.h
	del := retention.Deleting{Admin: h.admin, Store: h.store, Log: h.log, By: by, Tenant: name, Reason: reason, Seen: seen}
	do := retention.DeleteTenant
	if preview {
		do = retention.PreviewTenant
	}
	out, err := do(ctx, del)
	return client.Deletion{Keys: out.Keys, Grants: out.Grants, Skills: out.Skills, Calls: out.Calls, Contents: out.Contents, UnderWay: out.UnderWay}, err
}

func (d desk) Fsck(ctx context.Context) (client.Checked, error) {
	out := client.Checked{Findings: []client.Finding{}}
	r, err := fsck.Check(ctx, fsck.Config{Store: d.h.store, Log: d.h.log}, func(f fsck.Finding) { out.Findings = append(out.Findings, client.Finding(f)) })
	out.OK, out.Report = r.Findings == 0, client.CheckReport(r)
	return out, err
}

func (desk) Retention() client.Retention {
	return client.Retention{Contents: new(0.), Calls: new(0.), Details: new(3600.)}
}

func (d desk) Erase(ctx context.Context, actor string, r client.Retention, preview bool) (client.Erasure, error) {
	rules := retention.Rules{Details: time.Hour}
	if r.Calls != nil {
		rules.Calls = time.Duration(*r.Calls * float64(time.Second))
	}
	if preview {
		e, err := retention.Preview(ctx, d.h.store, rules, time.Now())
		return client.Erasure(e), err
	}
	e, err := retention.Apply(ctx, d.h.store, d.h.log, actor, rules, time.Now())
	return client.Erasure(e), err
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
	"checkpoint": func(*house, int) sample { return sample{path: "/v1/audit/checkpoint"} },
	"verify-log": func(*house, int) sample { return sample{path: "/v1/audit/verify"} },
	"list-keys":  at("/v1/keys"),

	"list-all-entries": at("/v1/log/entries?limit=3"),
	"get-any-receipt": func(h *house, _ int) sample {
		return sample{path: fmt.Sprintf("/v1/log/entries/%d/receipt", h.entryOf("acme").Index)}
	},
	"check-kept":        func(*house, int) sample { return sample{path: "/v1/fsck"} },
	"get-retention":     at("/v1/retention"),
	"preview-retention": with("/v1/retention/preview", client.Retention{Calls: new(3600.)}),
	"apply-retention":   with("/v1/retention/apply", client.Retention{}),
	"rotate-log-key":    with("/v1/audit/rotate-key", client.LogKeyRotation{Reason: "test"}),

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

	"preview-tenant-deletion": at("/v1/tenants/acme/deletion"),
	"delete-tenant": func(h *house, n int) sample {
		name := "gone-" + strconv.Itoa(n)
		_, err := h.admin.CreateTenant(h.Context(), people()[string(access.Platform)], access.Tenant{Name: name})
		h.must(err)
		return sample{path: "/v1/tenants/" + name, headers: any1}
	},

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
