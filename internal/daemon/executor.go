package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container"
	"github.com/tracon-go/tracon/executor/container/engine"
	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/executor/microvm"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/executor/remote"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/internal/config"
)

// A Local is an executor that this process opened: of this host, or one that asks another.
// Whoever opened it closes it.
type Local interface {
	executor.Executor
	executor.Posturer
	io.Closer
}

// Process is the name of the executor that has no walls.
const Process = process.Name

// OpenExecutor starts the executor of that name, as the configuration says. Where
// it cannot stand as it should, that is an error: there is no falling back to
// another. It needs no data folder.
func OpenExecutor(c *config.Config, name string, logger *slog.Logger) (Local, error) {
	return openExecutor(c, name, knownRuntimes{}, logger)
}

// knownRuntimes are what an executor is told of runtimes; the zero value tells nothing.
type knownRuntimes struct {
	names  func(context.Context) (map[string]bundle.Digest, error) // for notes
	listed func(context.Context) ([]bundle.Digest, error)          // by the allow-list, and there
}

// openExecutor is OpenExecutor with what is known of runtimes.
func openExecutor(c *config.Config, name string, known knownRuntimes, logger *slog.Logger) (e Local, err error) {
	switch name {
	case sandbox.Name:
		e, err = sandbox.New(sandbox.Config{Runtime: c.Runtime, Folders: c.Folders, DiskRate: c.DiskRate, Images: images(c), Names: known.names, Logger: logger})
	case container.Name:
		if c.DiskRate > 0 {
			return nil, fmt.Errorf("the setting disk_rate needs the executor %s: a container's is not limited", sandbox.Name)
		}
		if (c.OCIRuntime == "") == (c.Engine == "") {
			return nil, fmt.Errorf("the executor %s needs either an OCI runtime or an engine: name one of them (container_runtime: /usr/bin/crun, or container_engine: unix:///run/docker.sock)", container.Name)
		}
		if c.Engine != "" {
			e, err = openEngine(c, known, logger)
			break
		}
		e, err = container.New(container.Config{Engine: c.OCIRuntime, Runtime: c.Runtime, Folders: c.Folders, Images: images(c), Logger: logger})
	case microvm.Name:
		if c.DiskRate > 0 {
			return nil, fmt.Errorf("the setting disk_rate needs the executor %s: a machine's is not limited", sandbox.Name)
		}
		if len(c.Folders) > 0 {
			return nil, fmt.Errorf("the setting folders shows scripts folders of this host, and a machine has none; take it away, and put what they need into a runtime")
		}
		own := microvm.Config{
			Kit: kitFolder(c), Images: images(c), Monitor: c.Microvm.Monitor, Runtime: c.Runtime, Logger: logger,
			Snapshots: c.Microvm.Snapshots, Ahead: c.Microvm.Ahead, AheadBytes: c.Microvm.AheadMemory,
		}
		if c.Microvm.Boot {
			own.Snapshots, own.Ahead = -1, -1
		}
		e, err = microvm.New(own)
	case process.Name:
		if c.DiskRate > 0 {
			return nil, fmt.Errorf("the setting disk_rate needs the executor %s: a plain process is not limited", sandbox.Name)
		}
		e, err = process.New(process.Config{Runtime: c.Runtime, Logger: logger})
	case remote.Name:
		e, err = openRemote(c.Remote)
	case fleet.Name:
		e, err = openFleet(c, logger)
	default:
		err = errors.New("there is no such executor")
	}
	if err != nil {
		return nil, fmt.Errorf("the executor %s: %w", name, err)
	}
	return e, nil
}

// openEngine starts the executor of an engine's containers, in which the runtimes of the
// allow-list are made ready.
func openEngine(c *config.Config, known knownRuntimes, logger *slog.Logger) (*engine.Executor, error) {
	if len(c.Folders) > 0 {
		return nil, errors.New("the setting folders shows something of the host, and a container of an engine shows nothing of it; take a runtime")
	}
	own := engine.Config{Address: c.Engine, Runtime: c.Runtime, Images: images(c), Logger: logger}
	if known.listed != nil {
		var err error
		if own.Ready, err = known.listed(context.Background()); err != nil {
			return nil, err
		}
	}
	return engine.New(own)
}

// listedRuntimes are those that the allow-list names, be it the configuration file's or
// the store's. One that is not there is left out: what would run in it says so.
func (h *House) listedRuntimes(ctx context.Context) (list []bundle.Digest, err error) {
	host, err := h.Hosts.Host(ctx)
	if err != nil {
		return nil, err
	}
	for _, ext := range slices.Sorted(maps.Keys(host.Interpreters)) {
		d := host.Interpreters[ext].Image
		if d.IsZero() || slices.Contains(list, d) {
			continue
		}
		if i, err := h.Images.Image(d); err == nil {
			list = append(list, d)
			_ = i.Close()
		}
	}
	return list, nil
}

// runtimeNames are the digests of the runtimes, by name. It is safe for concurrent use.
func (h *House) runtimeNames(ctx context.Context) (map[string]bundle.Digest, error) {
	host, err := h.Store.Host(ctx) // which alone keeps them
	return host.Runtimes, err
}
