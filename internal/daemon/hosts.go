package daemon

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/config"
)

// hosts says where what holds for every tenant is kept: in the configuration
// file where there is one, else in the store.
func hosts(c *config.Config, kept gate.Hosts) gate.Hosts {
	if c.File != "" {
		return &fixed{c: c}
	}
	return &limited{kept, c}
}

// limited is the store's settings with the limits of the configuration, which
// may come from variables.
type limited struct {
	gate.Hosts
	c *config.Config
}

func (l *limited) Host(ctx context.Context) (gate.Host, error) {
	h, err := l.Hosts.Host(ctx)
	h.Content, h.TrustClaimed = l.c.Content, l.c.TrustClaimed
	return h, err
}

// fixed is the configuration file's settings. The interpreters are probed once,
// when somebody first asks.
type fixed struct {
	c      *config.Config
	mu     sync.Mutex
	probed map[string]gate.Interpreter
}

// Host returns what the configuration says. An interpreter that cannot be
// probed stays on the list without a digest: what would run it says why not.
func (f *fixed) Host(ctx context.Context) (gate.Host, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.probed == nil {
		probed := map[string]gate.Interpreter{}
		for _, ext := range slices.Sorted(maps.Keys(f.c.Interpreters)) {
			path := f.c.Interpreters[ext]
			found, err := interpreter.Probe(ctx, ext, path)
			if ctx.Err() != nil {
				return gate.Host{}, context.Cause(ctx)
			}
			probed[ext] = gate.Interpreter{Path: path}
			if err == nil {
				probed[ext] = found.Interpreter()
			}
		}
		f.probed = probed
	}
	return gate.Host{Enabled: f.c.Enabled, Interpreters: maps.Clone(f.probed), TrustClaimed: f.c.TrustClaimed, Content: f.c.Content}, nil
}

// Probe finds what runs scripts of the extension on this host, at path or, where
// path is empty, wherever it is, and returns it as an entry of the allow-list.
func (h *House) Probe(ctx context.Context, ext, path string) (gate.Interpreter, error) {
	find := interpreter.Find
	if path != "" {
		find = func(ctx context.Context, ext string) (interpreter.Found, error) {
			return interpreter.Probe(ctx, ext, path)
		}
	}
	found, err := find(ctx, ext)
	if err != nil {
		return gate.Interpreter{}, err
	}
	return found.Interpreter(), nil
}
