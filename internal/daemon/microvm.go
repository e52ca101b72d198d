package daemon

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/microvm/kit"
	"github.com/tracon-go/tracon/internal/config"
)

// kitFolder is where what machines boot from is kept, in the data folder.
func kitFolder(c *config.Config) string { return filepath.Join(c.Data, "microvm") }

// A KernelSource says where the kernel of machines and its modules are: see
// [kit.Source]. The zero KernelSource leaves the kernel that is there.
type KernelSource struct{ Package, Kernel, Modules string }

// Machines is what the executor microvm starts machines from.
type Machines struct {
	Kernel bundle.Digest `json:"kernel"`
	Initrd bundle.Digest `json:"initrd"`
	Agent  bundle.Digest `json:"agent"`
	Disks  []Disk        `json:"disks"`
}

// A Disk is that of a runtime.
type Disk struct {
	Runtime bundle.Digest `json:"runtime"`
	Name    string        `json:"name,omitempty"` // of the runtime; none where only the allow-list has it still
}

// PrepareMachines makes what machines boot from: the kernel, where from names one, and a
// disk for each runtime that has a name or is on the allow-list. Other disks go.
//
// # Errors
//
// As for [kit.Prepare] and [kit.AddDisk].
func (h *House) PrepareMachines(ctx context.Context, from KernelSource, doing func(what string)) (Machines, error) {
	dir := kitFolder(h.Config)
	if from != (KernelSource{}) {
		doing("the kernel")
		if _, err := kit.Prepare(ctx, dir, kit.Source(from)); err != nil {
			return Machines{}, err
		}
	}
	names, err := h.machineRuntimes(ctx)
	if err != nil {
		return Machines{}, err
	}
	for d, name := range names {
		doing("the disk of " + cmp.Or(name, d.String()))
		i, err := h.Images.Image(d)
		if err != nil {
			return Machines{}, fmt.Errorf("the runtime %s: %w", cmp.Or(name, d.String()), err)
		}
		_, err = kit.AddDisk(ctx, dir, i)
		if cerr := i.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return Machines{}, err
		}
	}
	info, err := kit.KeepDisks(ctx, dir, func(d bundle.Digest) bool { _, ok := names[d]; return ok })
	if err != nil {
		return Machines{}, err
	}
	return machines(info, names), nil
}

// Machines says what machines boot from, which is held against its digests.
//
// # Errors
//
// As for [kit.Open].
func (h *House) Machines(ctx context.Context) (Machines, error) {
	k, err := kit.Open(kitFolder(h.Config))
	if err != nil {
		return Machines{}, err
	}
	defer k.Close()
	for _, d := range k.Info().Disks {
		if _, err := k.Disk(d); err != nil {
			return Machines{}, err
		}
	}
	names, err := h.machineRuntimes(ctx)
	return machines(k.Info(), names), err
}

// machineRuntimes are those that machines may need, with their names.
func (h *House) machineRuntimes(ctx context.Context) (map[bundle.Digest]string, error) {
	host, err := h.Hosts.Host(ctx)
	if err != nil {
		return nil, err
	}
	names := map[bundle.Digest]string{}
	for _, in := range host.Interpreters {
		if !in.Image.IsZero() {
			names[in.Image] = ""
		}
	}
	for name, d := range host.Runtimes {
		names[d] = name
	}
	return names, nil
}

func machines(i kit.Info, names map[bundle.Digest]string) Machines {
	m := Machines{Kernel: i.Kernel, Initrd: i.Initrd, Agent: i.Agent, Disks: []Disk{}}
	for _, d := range i.Disks {
		m.Disks = append(m.Disks, Disk{d, names[d]})
	}
	slices.SortStableFunc(m.Disks, func(a, b Disk) int { return strings.Compare(a.Name, b.Name) })
	return m
}
