package executortest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/store/memstore"
)

// A World is a host with a gate, a log and a store in memory. What stands in it
// is granted as an operator grants it. Tests of an executor that need a Request
// take one from here. It is safe for concurrent use.
type World struct {
	store      *memstore.Store
	log        *audit.Log
	gate       *gate.Gate
	extensions []string

	mu     sync.Mutex
	skills map[string]skill // by name

	turn sync.Mutex // one order at a time sets a tenant's policy and is admitted under it
}

type skill struct {
	bundle bundle.Bundle
	script string
}

// NewWorld returns a World whose host is switched on and has the interpreters on
// its allow-list.
func NewWorld(interpreters map[string]gate.Interpreter) *World {
	w := &World{store: memstore.New(), skills: map[string]skill{}, extensions: slices.Sorted(maps.Keys(interpreters))}
	w.log = audit.NewLog(w.store)
	w.gate = gate.New(gate.Config{
		Hosts:    gate.Static{Enabled: true, Interpreters: interpreters, Network: gate.Loopback},
		Policies: w.store, Contents: w, Declarer: w, Schemas: strict{}, Grants: w.store, Log: w.log,
	})
	return w
}

// An Order is a script and how to call it.
type Order struct {
	Files     []bundle.File // of the skill; required
	Script    string        // its path among Files; required
	Mode      gate.Mode     // required
	Module    string        // as the declaration has it; empty: started by its path
	Outputs   []string      // patterns, as the declaration has them; nil: all outputs come back
	Arguments any           // encoded as JSON; nil: none
	Inputs    []bundle.File
	Policy    gate.Policy // its limits, its network and its environment; its switch and its allow-list are set
	Tenant    string      // whose policy that is; empty: a tenant of its own
	Live      *gate.Live
}

// Admit puts the order's files into the world as a skill, grants it, and takes
// the call through the gates.
func (w *World) Admit(ctx context.Context, o Order) (executor.Request, error) {
	name := "skill-" + id.New()
	if o.Tenant == "" {
		o.Tenant = "tenant-" + name
	}
	declaration, err := json.Marshal(gate.Declaration{Mode: o.Mode, Module: o.Module, Outputs: o.Outputs})
	if err != nil {
		return executor.Request{}, err
	}
	b, err := bundle.New(o.Files, declaration, bundle.Limits{})
	if err != nil {
		return executor.Request{}, err
	}
	w.mu.Lock()
	w.skills[name] = skill{b, o.Script}
	w.mu.Unlock()
	w.turn.Lock()
	defer w.turn.Unlock()
	if err := w.grant(ctx, name, b, o); err != nil {
		return executor.Request{}, fmt.Errorf("executortest: granting: %w", err)
	}
	call := gate.Call{Tenant: o.Tenant, Actor: "executortest", Skill: name, Script: o.Script, Inputs: o.Inputs, Live: o.Live}
	if o.Arguments != nil {
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(o.Arguments); err != nil {
			return executor.Request{}, err
		}
		call.Arguments = bytes.TrimSpace(text.Bytes())
	}
	standing := gate.Standing{Executor: "executortest", Tier: grant.Process}
	for _, wall := range o.Policy.RequireWalls { // whether they stand the executor is asked, and not the gates
		standing.Walls = append(standing.Walls, gate.Wall{Name: wall, Stands: true})
	}
	return w.gate.Admit(ctx, call, standing)
}

func (w *World) grant(ctx context.Context, name string, b bundle.Bundle, o Order) error {
	o.Policy.Enabled, o.Policy.Interpreters = true, w.extensions
	_, revision, err := w.store.PolicyAt(ctx, o.Tenant)
	if err != nil {
		return err
	}
	entry := audit.Entry{Tenant: o.Tenant, Actor: "executortest", Kind: audit.Policy, Subject: o.Tenant}
	if _, err := w.log.Commit(ctx, entry, func(ctx context.Context, p audit.Pending) error {
		return w.store.SetPolicy(ctx, o.Tenant, o.Policy, revision, p)
	}); err != nil {
		return err
	}
	g := grant.Grant{
		ID: id.New(), Ref: grant.Ref{Tenant: o.Tenant, Skill: name, Script: o.Script}, Pin: b.Digest(), Reason: "conformance",
		GrantedBy: "executortest", Granted: time.Now().UTC().Truncate(time.Microsecond), MinTier: grant.Process,
	}
	entry = audit.Entry{Tenant: o.Tenant, Actor: "executortest", Kind: audit.Granted, Subject: g.Ref.String()}
	_, err = w.log.Commit(ctx, entry, func(ctx context.Context, p audit.Pending) error {
		return w.store.AddGrant(ctx, g, b, "", p)
	})
	return err
}

// Find implements [gate.Contents].
func (w *World) Find(_ context.Context, _, name, script string) (gate.Origin, error) {
	if s, ok := w.skill(name); !ok || s.script != script {
		return 0, fmt.Errorf("%w: %s %s", gate.ErrUnknown, name, script)
	}
	return gate.FileScript, nil
}

// Read implements [gate.Contents].
func (w *World) Read(_ context.Context, _, name string, _ bundle.Limits) (bundle.Bundle, error) {
	s, ok := w.skill(name)
	if !ok {
		return bundle.Bundle{}, fmt.Errorf("%w: %s", gate.ErrUnknown, name)
	}
	return s.bundle, nil
}

func (w *World) skill(name string) (skill, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.skills[name]
	return s, ok
}

// Declare implements [gate.Declarer].
func (w *World) Declare(b bundle.Bundle, _ string) (gate.Declaration, error) {
	var d gate.Declaration
	if err := json.Unmarshal(b.Declaration(), &d); err != nil { // Admit wrote it
		return d, fmt.Errorf("%w: no declaration: %w", bundle.ErrContent, err)
	}
	return d, nil
}

// strict is a [gate.Schemas] without schemas: one JSON value in UTF-8, handed on
// as it was written.
type strict struct{}

func (strict) Check(_ context.Context, schema, value []byte) ([]byte, error) {
	if len(schema) > 0 {
		return nil, errors.New("executortest: scripts here have no schema")
	}
	if !utf8.Valid(value) || !json.Valid(value) {
		return nil, errors.New("the arguments are not one JSON value in UTF-8")
	}
	var out bytes.Buffer
	err := json.Compact(&out, value)
	return out.Bytes(), err
}
