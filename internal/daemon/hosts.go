package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/container"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/internal/config"
)

// hosts says where what holds for every tenant is kept: in the configuration
// file where there is one, else in the store. The names of runtimes are kept in the
// store in any case.
func hosts(c *config.Config, kept gate.Hosts, images *image.Store) gate.Hosts {
	if c.File != "" {
		return &fixed{c: c, kept: kept, images: images}
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
// when somebody first asks, and those in a runtime that was not there again.
type fixed struct {
	c      *config.Config
	kept   gate.Hosts
	images *image.Store
	mu     sync.Mutex
	probed map[string]gate.Interpreter
}

// Host returns what the configuration says. An interpreter that cannot be
// probed stays on the list without a digest: what would run it says why not.
func (f *fixed) Host(ctx context.Context) (gate.Host, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept, err := f.kept.Host(ctx)
	if err != nil {
		return gate.Host{}, err
	}
	if f.probed == nil {
		f.probed = map[string]gate.Interpreter{}
	}
	for _, ext := range slices.Sorted(maps.Keys(f.c.Interpreters)) {
		text := f.c.Interpreters[ext]
		name, in, inside := config.InRuntime(text)
		if old, ok := f.probed[ext]; ok && (!inside || !old.Image.IsZero()) {
			continue
		}
		if away(f.c.Executor) {
			// What is no name of a runtime stays a path, which the executor refuses.
			if f.probed[ext], err = elsewhere(ext, text); err != nil {
				f.probed[ext] = gate.Interpreter{Path: text}
			}
			continue
		}
		found, err := probe(ctx, ext, text, kept.Runtimes, f.images, usable(f.c))
		if ctx.Err() != nil {
			return gate.Host{}, context.Cause(ctx)
		}
		switch {
		case err == nil:
			f.probed[ext] = found
		case inside:
			f.probed[ext] = gate.Interpreter{Name: name, Path: cmp.Or(in, "/")} // which nothing can be run with
		default:
			f.probed[ext] = gate.Interpreter{Path: text}
		}
	}
	return gate.Host{
		Enabled: f.c.Enabled, Interpreters: maps.Clone(f.probed), TrustClaimed: f.c.TrustClaimed, Content: f.c.Content,
		Network: f.c.Network, RequireWalls: slices.Clone(f.c.RequireWalls), Runtimes: kept.Runtimes,
	}, nil
}

// probe finds what runs scripts of the extension: what text says, or, where it
// is empty, the first on this host that is usable.
func probe(ctx context.Context, ext, text string, names map[string]bundle.Digest, images *image.Store, usable func(interpreter.Found) error) (gate.Interpreter, error) {
	var found interpreter.Found
	var err error
	if name, path, ok := config.InRuntime(text); ok {
		return inside(ext, name, path, names[name], images)
	} else if text != "" {
		found, err = interpreter.Probe(ctx, ext, text)
	} else {
		found, err = interpreter.FindFor(ctx, ext, usable)
	}
	if err != nil {
		return gate.Interpreter{}, err
	}
	return found.Interpreter(), nil
}

// usable says why the executor cannot start an interpreter of this host that was found,
// or nil. What an operator names is taken as it is: the executor says what is amiss.
func usable(c *config.Config) func(interpreter.Found) error {
	return func(f interpreter.Found) error {
		inBox := c.Executor == sandbox.Name || c.Executor == container.Name && c.OCIRuntime != ""
		if !inBox || sandbox.Shows(f.Path, c.Folders) {
			return nil
		}
		return fmt.Errorf("a script in a box does not see %s; the setting folders shows it further folders", f.Path)
	}
}

// Find searches this host for what runs scripts of the extension and can be started by
// the executor.
func (h *House) Find(ctx context.Context, ext string) (interpreter.Found, error) {
	return interpreter.FindFor(ctx, ext, usable(h.Config))
}

// inside finds the interpreter in a runtime.
func inside(ext, name, path string, digest bundle.Digest, images *image.Store) (gate.Interpreter, error) {
	if digest.IsZero() {
		return gate.Interpreter{}, fmt.Errorf("%w: there is no runtime %q; `tracon runtime import %s DIR` makes it", interpreter.ErrNotAvailable, name, name)
	}
	i, err := images.Image(digest)
	if err != nil {
		return gate.Interpreter{}, fmt.Errorf("%w: the runtime %q (%s): %w", interpreter.ErrNotAvailable, name, digest, err)
	}
	defer i.Close()
	found, err := interpreter.Inside(ext, name, i, path)
	if err != nil {
		return gate.Interpreter{}, err
	}
	return found.Interpreter(), nil
}

// Probe finds what runs scripts of the extension: at text, an absolute path of
// this host or "runtime:NAME:/path", or, where text is empty, wherever it is on
// this host. It returns it as an entry of the allow-list.
func (h *House) Probe(ctx context.Context, ext, text string) (gate.Interpreter, error) {
	if away(h.Config.Executor) {
		return elsewhere(ext, text)
	}
	kept, err := h.Store.Host(ctx)
	if err != nil {
		return gate.Interpreter{}, err
	}
	return probe(ctx, ext, text, kept.Runtimes, h.Images, usable(h.Config))
}

// Again finds what an entry of the allow-list lists in a runtime again: in the very
// runtime that was listed, whatever its name means by now.
func (h *House) Again(ext string, in gate.Interpreter) (gate.Interpreter, error) {
	return inside(ext, in.Name, in.Path, in.Image, h.Images)
}
