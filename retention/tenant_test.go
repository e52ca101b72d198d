package retention_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/idempotency"
	"github.com/tracon-go/tracon/retention"
	"github.com/tracon-go/tracon/skill"
	"github.com/tracon-go/tracon/toolcall"
)

var operator = access.Principal{Actor: "op", Roles: []access.Role{access.Platform}}

// scripts are the imported ones.
type scripts struct{ admin.Imports }

func (s scripts) ImportedScript(ctx context.Context, tenant, name, path string) (gate.Origin, error) {
	_, has, err := s.ImportedFile(ctx, tenant, name, path)
	if err != nil || !has {
		return 0, err
	}
	return gate.FileScript, nil
}

func (s scripts) ImportedSkill(ctx context.Context, tenant, name string) (bundle.Bundle, error) {
	_, b, err := s.Imported(ctx, tenant, name)
	return b, err
}

// tenants has two tenants that share the content of one skill, and have one each of
// their own, with a key, grants, a policy and records.
func (h house) tenants() (*admin.Admin, map[string]access.Secret, map[string]bundle.Digest) {
	h.Helper()
	ctx := h.Context()
	a := admin.New(admin.Config{Store: h.store, Log: h.log, Hosts: h.store, Contents: skill.NewImported(scripts{h.store})})
	secrets, own := map[string]access.Secret{}, map[string]bundle.Digest{}
	for n, tenant := range []string{"acme", "umbrella"} {
		_, err := a.CreateTenant(ctx, operator, access.Tenant{Name: tenant})
		h.must(err)
		_, secrets[tenant], err = a.CreateKey(ctx, admin.Keying{By: operator, Tenant: tenant, Name: "ci", Roles: []access.Role{access.Reader}})
		h.must(err)
		_, err = a.SetPolicy(ctx, "op", tenant, func(p *gate.Policy) error {
			p.Enabled, p.Environment = true, map[string]string{"TOKEN": "value of " + tenant}
			return nil
		})
		h.must(err)
		for name, text := range map[string]string{"shared": "the same in both", "own": "text of " + tenant} {
			b, err := bundle.New([]bundle.File{{Path: "SKILL.md", Data: []byte("---\nname: " + name + "\ndescription: d.\n---\n")}, {Path: "s.py", Data: []byte(text)}}, nil, bundle.Limits{})
			h.must(err)
			_, err = a.Import(ctx, admin.Importing{Actor: "op", Tenant: tenant, Skill: name, Content: b})
			h.must(err)
			_, err = a.Grant(ctx, admin.Granting{Actor: "op", Ref: grant.Ref{Tenant: tenant, Skill: name, AllScripts: true}, Digest: b.Digest(), MinTier: grant.Process})
			h.must(err)
			if name == "own" {
				own[tenant] = b.Digest()
			}
		}
		for i := range 3 {
			h.call(tenant, 10*n+i, time.Duration(i)*day)
		}
	}
	return a, secrets, own
}

// T15: of a deleted tenant nothing is left but its entries; another keeps everything,
// what both have too; the log verifies, and what is kept agrees with it.
func TestDeleteTenant(t *testing.T) {
	each(t, func(h house) {
		ctx := h.Context()
		a, secrets, own := h.tenants()
		d := retention.Deleting{Admin: a, Store: h.store, Log: h.log, By: operator, Tenant: "acme", Reason: "the contract ended"}
		want := retention.Deletion{Standing: admin.Standing{Keys: 1, Grants: 2, Skills: 2}, Calls: 3, Contents: 1}
		for range 2 { // it changes nothing
			got, err := retention.PreviewTenant(ctx, d)
			want := want
			if h.must(err); got != want {
				h.Fatalf("the preview says %+v, want %+v", got, want)
			}
		}
		if _, err := access.Authenticate(ctx, h.store, secrets["acme"].Reveal(), time.Now()); err != nil {
			h.Fatal("the key before:", err)
		}
		claim := func(tenant, run string) idempotency.State {
			f, err := h.store.Begin(ctx, idempotency.Claim{Tenant: tenant, Key: "key", Body: bundle.Sum([]byte("body")), Run: run, At: time.Now()})
			h.must(err)
			return f.State
		}
		for _, tenant := range []string{"acme", "umbrella"} {
			claim(tenant, "first of "+tenant)
			h.must(h.store.Finish(ctx, tenant, "key", "first of "+tenant, []byte("what came of it")))
		}
		got, err := retention.DeleteTenant(ctx, d)
		if h.must(err); got != want {
			h.Errorf("it took away %+v, want %+v", got, want)
		}
		if _, err := access.Authenticate(ctx, h.store, secrets["acme"].Reveal(), time.Now()); !errors.Is(err, access.ErrCredential) {
			h.Errorf("a key of it lets somebody in: %v", err)
		}
		if _, err := access.Authenticate(ctx, h.store, secrets["umbrella"].Reveal(), time.Now()); err != nil {
			h.Errorf("the other's key: %v", err)
		}
		for tenant, n := range map[string]int{"acme": 0, "umbrella": 3} {
			calls, err := h.store.Calls(ctx, tenant, toolcall.Filter{})
			if h.must(err); len(calls) != n {
				h.Errorf("%d records of %s, want %d", len(calls), tenant, n)
			}
			_, err = h.store.Content(ctx, tenant, own[tenant])
			if gone := errors.Is(err, grant.ErrNotFound); gone != (n == 0) {
				h.Errorf("the own content of %s: %v", tenant, err)
			}
		}
		if _, _, err := h.store.Imported(ctx, "umbrella", "shared"); err != nil {
			h.Errorf("the content that both had: %v", err)
		}
		if p, err := h.store.Policy(ctx, "acme"); err != nil || p.Enabled || len(p.Environment) > 0 || !p.Suspended {
			h.Errorf("its policy is %+v, error %v", p, err)
		}
		if p, err := h.store.Policy(ctx, "umbrella"); err != nil || !p.Enabled || p.Environment["TOKEN"] == "" || p.Suspended {
			h.Errorf("the other's policy is %+v, error %v", p, err)
		}
		if mine, theirs := claim("acme", "second"), claim("umbrella", "second"); mine != idempotency.Begun || theirs != idempotency.Done {
			h.Errorf("its idempotency key is %v, the other's %v", mine, theirs)
		}
		told := false
		for leaf, err := range h.log.Entries(ctx, "acme", 0) {
			h.must(err)
			told = told || leaf.Entry.Kind == audit.Tenant && leaf.Entry.Fact("act") == "deleted" && leaf.Entry.Fact("reason") == d.Reason
		}
		if !told {
			h.Error("the log does not tell of the deletion")
		}
		if _, err := h.log.Verify(ctx, nil); err != nil {
			h.Errorf("the log: %v", err)
		}
		h.sound()
		if again, err := retention.DeleteTenant(ctx, d); err != nil || again != (retention.Deletion{}) {
			h.Errorf("a second time: %+v, error %v", again, err)
		}
	})
}

// T15: nothing is kept for a tenant that was deleted, and its name is not given again:
// who came later would be taken for it.
func TestDeletedTenantGetsNothing(t *testing.T) {
	each(t, func(h house) {
		ctx := h.Context()
		a, _, _ := h.tenants()
		b, err := bundle.New([]bundle.File{{Path: "SKILL.md", Data: []byte("---\nname: late\ndescription: d.\n---\n")}}, nil, bundle.Limits{})
		h.must(err)
		_, err = retention.DeleteTenant(ctx, retention.Deleting{Admin: a, Store: h.store, Log: h.log, By: operator, Tenant: "acme"})
		h.must(err)
		size := func() uint64 {
			tip, err := h.store.Tip(ctx)
			h.must(err)
			return tip.Size()
		}
		before := size()
		for name, try := range map[string]func() error{
			"create": func() error { _, err := a.CreateTenant(ctx, operator, access.Tenant{Name: "acme"}); return err },
			"switch on": func() error {
				_, err := a.SetTenant(ctx, operator, "acme", func(t *access.Tenant) error { t.Off, t.Deleted = false, time.Time{}; return nil })
				return err
			},
			"key": func() error {
				_, _, err := a.CreateKey(ctx, admin.Keying{By: operator, Tenant: "acme", Name: "late", Roles: []access.Role{access.Reader}})
				return err
			},
			"rotate": func() error {
				_, _, err := a.RotateKey(ctx, admin.Rotation{By: operator, Tenant: "acme", ID: "any"})
				return err
			},
			"import": func() error {
				_, err := a.Import(ctx, admin.Importing{Actor: "op", Tenant: "acme", Skill: "late", Content: b})
				return err
			},
			"policy": func() error {
				_, err := a.SetPolicy(ctx, "op", "acme", func(p *gate.Policy) error { p.Enabled = true; return nil })
				return err
			},
		} {
			if err := try(); !errors.Is(err, admin.ErrDeleted) {
				h.Errorf("%s: %v", name, err)
			}
		}
		if size() != before {
			h.Error("something was written")
		}
	})
}

// T15: nor is anything taken away below a run that was admitted between the first look
// and the mark: the tenant stays deleted, and said again when the run has ended the
// deletion goes on.
func TestDeleteTenantWaitsForARunOfThatMoment(t *testing.T) {
	each(t, func(h house) {
		ctx := h.Context()
		a, _, own := h.tenants()
		run := idAt(now, 99)
		d := retention.Deleting{Admin: a, Store: h.store, Log: h.log, By: operator, Tenant: "acme", Seen: func(access.Tenant) error {
			_, err := h.log.Append(ctx, audit.Entry{Tenant: "acme", Kind: audit.Admission, Run: run})
			return err
		}}
		if got, err := retention.DeleteTenant(ctx, d); !errors.Is(err, admin.ErrUnderWay) || got.UnderWay != 1 || got.Calls != 0 || got.Contents != 0 {
			h.Errorf("with a run: %+v, error %v", got, err)
		}
		if tenant, err := a.Tenant(ctx, "acme"); err != nil || !tenant.Off || tenant.Deleted.IsZero() {
			h.Errorf("it is %+v, error %v", tenant, err)
		}
		if calls, err := h.store.Calls(ctx, "acme", toolcall.Filter{}); err != nil || len(calls) != 3 {
			h.Errorf("%d records, want 3, error %v", len(calls), err)
		}
		if _, err := h.store.Content(ctx, "acme", own["acme"]); err != nil {
			h.Error("its content:", err)
		}
		_, err := h.log.Append(ctx, audit.Entry{Tenant: "acme", Kind: audit.Ending, Run: run, Facts: audit.Facts("ending", "exited")})
		h.must(err)
		d.Seen = nil
		if got, err := retention.DeleteTenant(ctx, d); err != nil || got != (retention.Deletion{Calls: 3, Contents: 1}) {
			h.Errorf("said again: %+v, error %v", got, err)
		}
	})
}

// T15: below a run that is under way nothing is taken away, also when only the
// platform may ask.
func TestDeleteTenantWaitsForRuns(t *testing.T) {
	each(t, func(h house) {
		ctx := h.Context()
		a, _, own := h.tenants()
		d := retention.Deleting{Admin: a, Store: h.store, Log: h.log, By: operator, Tenant: "acme"}
		run := idAt(now, 99)
		_, err := h.log.Append(ctx, audit.Entry{Tenant: "acme", Kind: audit.Admission, Run: run})
		h.must(err)
		if got, err := retention.DeleteTenant(ctx, d); !errors.Is(err, admin.ErrUnderWay) || got.UnderWay != 1 {
			h.Errorf("with a run: %+v, error %v", got, err)
		}
		if tenant, err := a.Tenant(ctx, "acme"); err != nil || tenant.Off || !tenant.Deleted.IsZero() {
			h.Errorf("it is %+v, error %v", tenant, err)
		}
		if _, err := h.store.Content(ctx, "acme", own["acme"]); err != nil {
			h.Error("its content:", err)
		}
		_, err = h.log.Append(ctx, audit.Entry{Tenant: "acme", Kind: audit.Ending, Run: run, Facts: audit.Facts("ending", "exited")})
		h.must(err)
		d.By = access.Principal{Actor: "admin", Tenant: "acme", Roles: []access.Role{access.Admin}}
		if _, err := retention.DeleteTenant(ctx, d); !errors.Is(err, access.ErrDenied) {
			h.Errorf("by an admin of the tenant: %v", err)
		}
		if _, err := retention.PreviewTenant(ctx, d); !errors.Is(err, access.ErrDenied) {
			h.Errorf("the preview by an admin of the tenant: %v", err)
		}
		d.By, d.Tenant = operator, "nobody"
		if _, err := retention.DeleteTenant(ctx, d); !errors.Is(err, grant.ErrNotFound) {
			h.Errorf("one that nobody made: %v", err)
		}
	})
}
