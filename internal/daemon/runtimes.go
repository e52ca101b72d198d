package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/image/oci"
	"github.com/tracon-go/tracon/image/registry"
	"github.com/tracon-go/tracon/internal/config"
)

// images is the store of runtimes in the data folder.
func images(c *config.Config) *image.Store { return image.New(filepath.Join(c.Data, "images")) }

// A Runtime is a root file system that has a name here.
type Runtime struct {
	Name   string        `json:"name"`
	Digest bundle.Digest `json:"digest"`
	UsedBy []string      `json:"usedBy"`           // extensions of the allow-list whose interpreter lies in it
	Older  []string      `json:"older,omitempty"`  // those whose interpreter lies in what had the name before
	Source string        `json:"source,omitempty"` // where it came from, as its package said when it was named
	Info   *image.Info   `json:"info,omitempty"`   // nil where it cannot be read: see Amiss
	Amiss  string        `json:"amiss,omitempty"`  // what is wrong with it on this host
}

// An Imported is what came of importing a runtime.
type Imported struct {
	Runtime
	Before  bundle.Digest `json:"before,omitzero"` // what had the name
	Skipped []string      `json:"skipped"`         // what was left out; at most 100
	Left    int           `json:"left"`            // how many were left out
}

// ImportRuntime unpacks a root file system and gives it the name in n: the folder
// dir, which may be an OCI layout, or, where dir is empty, the archive r, which may have
// an image in layers. It is not run.
//
// # Errors
//
// As for [admin.Admin.NameRuntime], [image.Store.ImportTar] and [oci.ImportArchive]; one
// that wraps image.ErrContent for what no box could ever show. Nothing is left then.
func (h *House) ImportRuntime(ctx context.Context, n admin.Naming, dir string, r io.Reader, o oci.Options) (Imported, error) {
	return h.keepRuntime(ctx, n, func() (*image.Import, error) {
		switch {
		case dir == "":
			return oci.ImportArchive(ctx, h.Images, r, o)
		case oci.IsLayout(dir):
			return oci.ImportLayout(ctx, h.Images, dir, o)
		}
		return h.Images.ImportFolder(ctx, dir, o.Limits)
	})
}

// PullRuntime has the image that the reference names from its registry, unpacks it, and
// gives it the name in n.
//
// # Errors
//
// As for ImportRuntime and [registry.Pull].
func (h *House) PullRuntime(ctx context.Context, n admin.Naming, reference string, from registry.Options, o oci.Options) (Imported, error) {
	return h.keepRuntime(ctx, n, func() (made *image.Import, err error) {
		scratch, remove, err := h.Images.Scratch()
		if err != nil {
			return nil, err
		}
		parts, err := registry.Pull(ctx, reference, scratch, from, o)
		if err == nil {
			made, err = parts.Unpack(ctx, h.Images)
		}
		if rerr := remove(); err == nil && rerr != nil {
			err = errors.Join(rerr, made.Image.Close())
		}
		return made, err
	})
}

// keepRuntime gives the name in n to what was imported.
func (h *House) keepRuntime(ctx context.Context, n admin.Naming, load func() (*image.Import, error)) (out Imported, err error) {
	if err := gate.CheckRuntime(n.Name); err != nil {
		return Imported{}, err
	}
	made, err := load()
	if err != nil {
		return Imported{}, err
	}
	n.Digest, n.Source = made.Digest, made.Source
	var before bundle.Digest
	if err = sandbox.Showable(made.Image); err != nil {
		err = fmt.Errorf("%w: no sandbox could show it: %w", image.ErrContent, err)
	} else {
		before, err = h.Admin.NameRuntime(ctx, n)
	}
	if cerr := made.Image.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_, perr := h.prune(ctx)
		return Imported{}, errors.Join(err, perr)
	}
	host, err := h.Hosts.Host(ctx)
	if err != nil {
		return Imported{}, err
	}
	out = Imported{Runtime: h.runtime(host, n.Name, n.Digest), Skipped: slices.Clip(made.Skipped), Left: made.Left}
	out.Source = made.Source
	if before != n.Digest {
		out.Before = before
	}
	return out, nil
}

// sources returns where the runtimes came from, by name, as the log has it: what was
// said when the name was given to what has it.
func (h *House) sources(ctx context.Context) (map[string]string, error) {
	from := map[string]string{}
	for leaf, err := range h.Log.Entries(ctx, gate.HostTenant, 0) {
		if err != nil {
			return nil, err
		}
		if e := leaf.Entry; e.Kind == audit.Runtime {
			from[strings.TrimPrefix(e.Subject, "runtime ")] = e.Fact("source")
		}
	}
	return from, nil
}

// Runtimes returns the runtimes, by name.
func (h *House) Runtimes(ctx context.Context) ([]Runtime, error) {
	host, err := h.Hosts.Host(ctx)
	if err != nil {
		return nil, err
	}
	from, err := h.sources(ctx)
	if err != nil {
		return nil, err
	}
	list := []Runtime{}
	for _, name := range slices.Sorted(maps.Keys(host.Runtimes)) {
		r := h.runtime(host, name, host.Runtimes[name])
		r.Source = from[name]
		list = append(list, r)
	}
	return list, nil
}

// FindRuntime returns the runtime of that name.
//
// # Errors
//
// grant.ErrNotFound.
func (h *House) FindRuntime(ctx context.Context, name string) (Runtime, error) {
	list, err := h.Runtimes(ctx)
	if err != nil {
		return Runtime{}, err
	}
	if i := slices.IndexFunc(list, func(r Runtime) bool { return r.Name == name }); i >= 0 {
		return list[i], nil
	}
	return Runtime{}, fmt.Errorf("%w: there is no runtime %q", grant.ErrNotFound, name)
}

func (h *House) runtime(host gate.Host, name string, d bundle.Digest) Runtime {
	r := Runtime{Name: name, Digest: d, UsedBy: []string{}}
	for _, ext := range admin.UsedBy(host, name) {
		if host.Interpreters[ext].Image == d {
			r.UsedBy = append(r.UsedBy, ext)
		} else {
			r.Older = append(r.Older, ext)
		}
	}
	info, err := h.Images.Info(d)
	if err != nil {
		r.Amiss = err.Error()
		return r
	}
	r.Info = &info
	return r
}

// RemoveRuntime takes the runtime's name away and removes what no name and no
// allow-list needs any more. Kept is true where somebody still holds the files: a
// later removal takes them.
//
// # Errors
//
// As for [admin.Admin.RemoveRuntime].
func (h *House) RemoveRuntime(ctx context.Context, actor, name, reason string) (meant bundle.Digest, kept bool, err error) {
	meant, err = h.Admin.RemoveRuntime(ctx, actor, name, reason)
	if err != nil {
		return bundle.Digest{}, false, err
	}
	if _, err := h.prune(ctx); err != nil {
		return meant, true, err
	}
	left, err := h.Images.List()
	return meant, slices.Contains(left, meant), err
}

// pruneTime is how long prune may look for what is needed: settings of a database that
// does not answer are not waited for for ever.
const pruneTime = time.Minute

// prune removes the images that no name and no allow-list needs. It looks afresh
// for each image when nobody can have it any more; what cannot be looked up stays. Who
// left does not stop it: nobody else would remove what is left.
func (h *House) prune(ctx context.Context) ([]bundle.Digest, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), pruneTime)
	defer stop()
	var failed error
	gone, err := h.Images.Prune(func(d bundle.Digest) bool {
		needed, err := h.needs(ctx, d)
		failed = errors.Join(failed, err)
		return needed || err != nil
	})
	return gone, errors.Join(err, failed)
}

// needs reports whether a name or an allow-list needs the image.
func (h *House) needs(ctx context.Context, d bundle.Digest) (bool, error) {
	for _, hosts := range []gate.Hosts{h.Store, h.Hosts} {
		host, err := hosts.Host(ctx)
		if err != nil {
			return false, err
		}
		for _, named := range host.Runtimes {
			if named == d {
				return true, nil
			}
		}
		for _, in := range host.Interpreters {
			if in.Image == d {
				return true, nil
			}
		}
	}
	return false, nil
}
