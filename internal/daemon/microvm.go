package daemon

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor/microvm"
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
	Boot   bool          `json:"boot"`  // the configuration has each machine booted
	Saved  []Saved       `json:"saved"` // those that machines are restored of
}

// A Saved is a machine that was saved.
type Saved struct {
	Key    bundle.Digest `json:"key"`
	Memory int64         `json:"memory"`          // bytes; zero where it is refused
	Bytes  int64         `json:"bytes"`           // on the disk
	Used   time.Time     `json:"used"`            // when it was made or used last
	Amiss  string        `json:"amiss,omitempty"` // why it will be refused and made anew
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
	return h.machines(info, names)
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
	if err != nil {
		return Machines{}, err
	}
	return h.machines(k.Info(), names)
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

func (h *House) machines(i kit.Info, names map[bundle.Digest]string) (Machines, error) {
	m := Machines{Kernel: i.Kernel, Initrd: i.Initrd, Agent: i.Agent, Disks: []Disk{}, Boot: h.Config.Microvm.Boot, Saved: []Saved{}}
	for _, d := range i.Disks {
		m.Disks = append(m.Disks, Disk{d, names[d]})
	}
	slices.SortStableFunc(m.Disks, func(a, b Disk) int { return strings.Compare(a.Name, b.Name) })
	list, err := microvm.Snapshots(kitFolder(h.Config))
	for _, s := range list {
		saved := Saved{Key: s.Key, Memory: s.Memory, Bytes: s.Bytes, Used: s.Used.UTC().Truncate(time.Microsecond)}
		if s.Err != nil {
			saved.Amiss = s.Err.Error()
		}
		m.Saved = append(m.Saved, saved)
	}
	return m, err
}
