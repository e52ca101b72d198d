package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
)

// A Naming gives a runtime's name to a root file system that is kept here.
type Naming struct {
	Actor  string
	Name   string        // see gate.CheckRuntime
	Digest bundle.Digest // of the root file system
	Source string        // where it came from, as its package says; may be empty
	Reason string        // why, in the operator's words; may be empty

	// Replace takes the name from another root file system. Interpreters of the
	// allow-list stay where they are until they are listed again.
	Replace bool
}

var (
	// ErrNamed: the name belongs to another root file system, and Replace was not
	// set. It wraps grant.ErrConflict.
	ErrNamed = fmt.Errorf("%w: the name belongs to another root file system", grant.ErrConflict)

	// ErrListed: an interpreter of the allow-list lies in the runtime: list another
	// in its place first.
	ErrListed = errors.New("admin: the allow-list names the runtime")
)

// NameRuntime gives a name to a root file system, and returns which had it
// before: the zero digest for none. Where it has the name already, nothing is
// written.
//
// # Errors
//
// gate.ErrPolicy for a name that no runtime can have or a missing digest;
// ErrNamed; audit.ErrUnavailable or the store's own when it could not be written.
func (a *Admin) NameRuntime(ctx context.Context, n Naming) (before bundle.Digest, err error) {
	_, err = a.changeHost(ctx, func(h *gate.Host) (audit.Entry, error) {
		before = h.Runtimes[n.Name]
		if !before.IsZero() && before != n.Digest && !n.Replace {
			return audit.Entry{}, fmt.Errorf("%w: %s is %s", ErrNamed, n.Name, before)
		}
		if h.Runtimes == nil {
			h.Runtimes = map[string]bundle.Digest{}
		}
		h.Runtimes[n.Name] = n.Digest
		return runtimeEntry(n.Actor, n.Name, "act", "named", "digest", n.Digest.String(), "replaces", text(before), "source", audit.Clip(n.Source),
			"reason", audit.Clip(n.Reason)), nil
	})
	return before, err
}

// RemoveRuntime takes a runtime's name away, and returns what it meant.
//
// # Errors
//
// grant.ErrNotFound; one that wraps ErrListed and names the extensions;
// audit.ErrUnavailable or the store's own when it could not be written.
func (a *Admin) RemoveRuntime(ctx context.Context, actor, name, reason string) (meant bundle.Digest, err error) {
	_, err = a.changeHost(ctx, func(h *gate.Host) (audit.Entry, error) {
		meant = h.Runtimes[name]
		if meant.IsZero() {
			return audit.Entry{}, fmt.Errorf("%w: there is no runtime %q", grant.ErrNotFound, name)
		}
		// The settings in force, which a configuration file may hold.
		host, err := a.Host(ctx)
		if err != nil {
			return audit.Entry{}, err
		}
		if exts := UsedBy(host, name); len(exts) > 0 {
			return audit.Entry{}, fmt.Errorf("%w: %s runs %s", ErrListed, name, strings.Join(exts, ", "))
		}
		delete(h.Runtimes, name)
		return runtimeEntry(actor, name, "act", "removed", "digest", meant.String(), "reason", audit.Clip(reason)), nil
	})
	return meant, err
}

// UsedBy returns the extensions of the allow-list whose interpreter lies in the
// runtime of that name.
func UsedBy(h gate.Host, name string) []string {
	var exts []string
	for _, ext := range slices.Sorted(maps.Keys(h.Interpreters)) {
		if in := h.Interpreters[ext]; in.Name == name && in.Path != "" {
			exts = append(exts, ext)
		}
	}
	return exts
}

func runtimeEntry(actor, name string, facts ...string) audit.Entry {
	return audit.Entry{Tenant: gate.HostTenant, Actor: actor, Kind: audit.Runtime, Subject: audit.Clip("runtime " + name), Facts: audit.Facts(facts...)}
}

func text(d bundle.Digest) string {
	if d.IsZero() {
		return ""
	}
	return d.String()
}
