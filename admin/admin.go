package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// Config holds what an [Admin] works on. Every field but Quota is required.
type Config struct {
	Store    Store
	Log      *audit.Log
	Hosts    gate.Hosts    // what holds for every tenant: the store's settings, or a fixed one
	Contents gate.Contents // where the bytes that are reviewed and granted come from

	// Quota is what may be kept for a tenant of which its own says nothing. Zero fields
	// mean the defaults of [access.Quota].
	Quota access.Quota
}

// An Admin makes an operator's changes. It is safe for concurrent use. Whether
// the actor may make them is decided before it is asked.
type Admin struct{ c Config }

// New returns an Admin over c. It panics when a field is nil.
func New(c Config) *Admin {
	if c.Store == nil || c.Log == nil || c.Hosts == nil || c.Contents == nil {
		panic("admin: New with a nil field in Config")
	}
	return &Admin{c}
}

// Host returns what holds for every tenant.
func (a *Admin) Host(ctx context.Context) (gate.Host, error) { return a.c.Hosts.Host(ctx) }

// Policy returns the tenant's policy as it was set: zero fields mean defaults.
func (a *Admin) Policy(ctx context.Context, tenant string) (gate.Policy, error) {
	p, _, err := a.c.Store.PolicyAt(ctx, tenant)
	return p, err
}

// SetPolicy changes the tenant's policy: change is handed the present one and
// may be called again when somebody else was faster. Where it changes nothing,
// nothing is written.
//
// # Errors
//
// That of change; gate.ErrPolicy or grant.ErrRef for what cannot hold; ErrDeleted;
// audit.ErrUnavailable or the store's own when it could not be written.
func (a *Admin) SetPolicy(ctx context.Context, actor, tenant string, change func(*gate.Policy) error) (gate.Policy, error) {
	if err := gate.CheckTenant(tenant); err != nil {
		return gate.Policy{}, err
	}
	if err := a.alive(ctx, tenant); err != nil {
		return gate.Policy{}, err
	}
	return a.setPolicy(ctx, actor, tenant, change)
}

func (a *Admin) setPolicy(ctx context.Context, actor, tenant string, change func(*gate.Policy) error) (gate.Policy, error) {
	return set(func() (gate.Policy, error) {
		p, revision, err := a.c.Store.PolicyAt(ctx, tenant)
		if err != nil {
			return p, err
		}
		before, old := tell(p), p
		p.Environment, p.Interpreters = maps.Clone(p.Environment), slices.Clone(p.Interpreters)
		if err := change(&p); err != nil {
			return p, err
		}
		if err := p.Validate(); err != nil {
			return p, err
		}
		e := audit.Entry{Tenant: tenant, Actor: actor, Kind: audit.Policy, Subject: "policy", Facts: audit.Facts("before", before, "after", tell(p))}
		return p, a.write(ctx, e, reflect.DeepEqual(old, p), func(ctx context.Context, entry audit.Pending) error {
			return a.c.Store.SetPolicy(ctx, tenant, p, revision, entry)
		})
	})
}

// SetHost changes the host's settings in the store, as SetPolicy does a
// tenant's. It has no effect where Config.Hosts is a fixed one.
func (a *Admin) SetHost(ctx context.Context, actor string, change func(*gate.Host) error) (gate.Host, error) {
	return a.changeHost(ctx, func(h *gate.Host) (audit.Entry, error) {
		before := tell(*h)
		if err := change(h); err != nil {
			return audit.Entry{}, err
		}
		return audit.Entry{Tenant: gate.HostTenant, Actor: actor, Kind: audit.Host, Subject: "host", Facts: audit.Facts("before", before, "after", tell(*h))}, nil
	})
}

// changeHost changes the host's settings, with the entry that change returns.
func (a *Admin) changeHost(ctx context.Context, change func(*gate.Host) (audit.Entry, error)) (gate.Host, error) {
	return set(func() (gate.Host, error) {
		h, revision, err := a.c.Store.HostAt(ctx)
		if err != nil {
			return h, err
		}
		old := h
		h.Interpreters, h.Runtimes = maps.Clone(h.Interpreters), maps.Clone(h.Runtimes)
		e, err := change(&h)
		if err != nil {
			return h, err
		}
		if err := h.Validate(); err != nil {
			return h, err
		}
		return h, a.write(ctx, e, reflect.DeepEqual(old, h), func(ctx context.Context, entry audit.Pending) error {
			return a.c.Store.SetHost(ctx, h, revision, entry)
		})
	})
}

// maxTries is how often a change is tried when others are faster.
const maxTries = 8

func set[T any](try func() (T, error)) (v T, err error) {
	for range maxTries {
		if v, err = try(); !errors.Is(err, grant.ErrConflict) {
			break
		}
	}
	return v, err
}

// write commits a change and its entry together, unless nothing changed.
func (a *Admin) write(ctx context.Context, e audit.Entry, same bool, commit func(context.Context, audit.Pending) error) error {
	if same {
		return nil
	}
	e.Actor = audit.Clip(e.Actor)
	_, err := a.c.Log.Commit(ctx, e, commit)
	return err
}

// tell writes settings for the log: as JSON, without the values of a policy's
// environment, which may be secret, and without the runtimes, which have entries
// of their own.
func tell(settings any) string {
	if h, ok := settings.(gate.Host); ok {
		h.Runtimes = nil
		settings = h
	}
	if p, ok := settings.(gate.Policy); ok && len(p.Environment) > 0 {
		shown := map[string]string{}
		for name, value := range p.Environment {
			shown[name] = fmt.Sprintf("(%d bytes)", len(value))
		}
		p.Environment = shown
		settings = p
	}
	b, err := json.Marshal(settings)
	if err != nil {
		return "(cannot be written: " + err.Error() + ")"
	}
	return audit.Clip(string(b))
}
