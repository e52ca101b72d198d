package main

import (
	"context"
	"errors"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/schema"
	"github.com/tracon-go/tracon/skill"
	"github.com/tracon-go/tracon/store/memstore"
	"github.com/tracon-go/tracon/toolset"
)

// The tenant comes from whom the program serves, never from a model.
const tenant = "acme"

// A house is what the tools stand on.
type house struct {
	runner *tracon.Runner
	desk   *admin.Admin
	tools  *toolset.Toolset
}

// open makes a house with the skills of a folder, and grants the tenant one script. The
// executor nil means the platform's default.
func open(ctx context.Context, folder string, e executor.Executor) (*house, error) {
	python, err := interpreter.Find(ctx, "py")
	if err != nil {
		return nil, err
	}
	store, skills := memstore.New(), skill.NewLibrary(bundle.Limits{}) // store/sqlite keeps it in a file
	if err := skills.AddRoot(folder); err != nil {
		return nil, err
	}
	record := audit.NewLog(store)
	hosts := gate.Static{Enabled: true, Interpreters: map[string]gate.Interpreter{"py": python.Interpreter()}}
	gates := gate.New(gate.Config{Hosts: hosts, Policies: store, Contents: skills, Declarer: new(skill.Declarations),
		Schemas: schema.New(schema.Options{}), Grants: store, Log: record})
	h := &house{desk: admin.New(admin.Config{Store: store, Log: record, Hosts: hosts, Contents: skills})}
	if h.runner, err = tracon.New(tracon.Config{Gate: gates, Executor: e, Calls: store}); err != nil {
		return nil, err
	}
	h.tools, err = toolset.New(toolset.Config{Runner: h.runner, Skills: toolset.Folders(skills, bundle.Limits{}),
		Hosts: hosts, Policies: store, Grants: store})
	if err == nil {
		err = h.allow(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, h.runner.Close(ctx))
	}
	return h, nil
}

// allow is what an operator does, once: switch the tenant on, review, grant what was
// reviewed.
func (h *house) allow(ctx context.Context) error {
	_, err := h.desk.SetPolicy(ctx, "operator", tenant, func(p *gate.Policy) error {
		p.Enabled, p.Interpreters = true, []string{"py"}
		return nil
	})
	if err != nil {
		return err
	}
	ref := grant.Ref{Tenant: tenant, Skill: "unit-converter", Script: "scripts/convert.py"}
	review, err := h.desk.Review(ctx, ref)
	if err != nil {
		return err
	}
	_, err = h.desk.Grant(ctx, admin.Granting{Actor: "operator", Ref: ref, Digest: review.Content.Digest(), MinTier: grant.Process})
	return err
}
