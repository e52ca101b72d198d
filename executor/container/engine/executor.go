//go:build linux && (amd64 || arm64)

package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/internal/calls"
	"github.com/tracon-go/tracon/executor/interpreter"
)

// An Executor runs scripts in containers of an engine. Make one with [New]. It is safe
// for concurrent use.
type Executor struct {
	log          *slog.Logger
	config       Config
	api          *api
	filter       []byte
	instance     *box.Instance
	labels       map[string]string
	ids          *box.Identities
	runtimes     *runtimes
	keeper       *keeper
	posture      executor.Posture
	interpreters interpreter.Opener
	underWay     *box.UnderWay
	postures     box.Postures
	look         func(o order, texts map[string]string) (string, error) // at what a container tells of its walls
}

var (
	_ executor.Executor = (*Executor)(nil)
	_ executor.Posturer = (*Executor)(nil)
)

// New returns an Executor. It removes what dead processes with the same runtime folder
// left in the engine, makes containers to prove what [Executor.Posture] says, and brings
// the runtimes that are to be ready into the engine.
//
// # Errors
//
// One that wraps ErrWall and names the wall and the remedy where one cannot stand:
// there is no way to run with less. One that wraps ErrEngine where the engine is not
// there, hangs, or fails.
func New(c Config) (*Executor, error) { return open(c, func(*Executor) {}) }

// open makes an executor that change has changed, before it is proved.
func open(c Config, change func(*Executor)) (e *Executor, err error) {
	if c.Space < 0 || c.Processors < 0 {
		return nil, errors.New("engine: a negative limit")
	}
	c.Space, c.Processors = cmp.Or(c.Space, DefaultSpace), cmp.Or(c.Processors, DefaultProcessors)
	opened := &Executor{
		log: cmp.Or(c.Logger, slog.New(slog.DiscardHandler)), config: c, filter: calls.Base(calls.NoFamily).NoWatches().Filter(),
		ids: box.SmallIdentities(), underWay: box.NewUnderWay(ErrClosed, errClosing), look: look,
	}
	e = opened
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
			e = nil
		}
	}()
	ctx := e.underWay.Closing()
	if e.api, err = dial(ctx, c.Address); err != nil {
		return e, err
	}
	e.keeper = &keeper{remove: e.api.remove, log: e.log, lost: map[string]time.Time{}}
	runtime := cmp.Or(c.Runtime, box.DefaultRuntime())
	instance, warning, err := box.OpenInstance(runtime, box.Sweep(e.log))
	if warning != nil {
		e.log.Warn("leftovers of a dead process were not removed", "err", warning)
	}
	if err != nil {
		return e, fmt.Errorf("engine: %w", err)
	}
	e.instance = instance
	folder, err := folderID(runtime)
	if err != nil {
		return e, fmt.Errorf("engine: the name of the runtime folder: %w", err)
	}
	e.labels = map[string]string{labelFolder: folder, labelInstance: instance.Name(), labelStarted: time.Now().UTC().Format(time.RFC3339Nano)}
	if err = e.sweep(ctx, runtime, folder); err != nil {
		return e, err
	}
	first, count := e.ids.Range()
	e.runtimes = &runtimes{api: e.api, store: c.Images, ids: [2]int{first, count}, known: map[bundle.Digest]*held{}, stop: ctx, told: func(err error) {
		e.log.Error("a runtime was not brought into the engine", "err", err)
	}}
	change(e)
	if err = e.prove(ctx); err != nil {
		return e, err
	}
	for _, d := range c.Ready {
		if err = e.runtimes.ready(ctx, d); err != nil {
			return e, fmt.Errorf("engine: the runtime %s: %w", d, err)
		}
	}
	return e, nil
}

// Posture says which walls stand. It was proved by [New].
func (e *Executor) Posture(context.Context) (executor.Posture, error) { return e.posture, nil }

// Close stops the runs that are under way, which then end with an error, waits for
// them, and leaves nothing but the images of runtimes. Later runs fail with ErrClosed.
// It may be called again.
func (e *Executor) Close() error {
	if !e.underWay.Close() {
		return nil
	}
	var errs []error
	if e.keeper != nil {
		errs = append(errs, e.keeper.close(context.Background()))
	}
	if e.runtimes != nil {
		errs = append(errs, e.runtimes.close())
	}
	if e.api != nil {
		errs = append(errs, e.api.client.Close())
	}
	if e.instance != nil {
		errs = append(errs, e.instance.Close())
	}
	return errors.Join(errs...)
}

// sweep removes the containers of executors whose process is dead: those that say they
// belong to our runtime folder, and of which nobody holds the lock there.
func (e *Executor) sweep(ctx context.Context, runtime, folder string) error {
	found, err := e.api.ours(ctx, labelFolder, folder)
	if err != nil {
		return err
	}
	for id, labels := range found {
		alive, err := box.Alive(runtime, labels[labelInstance])
		if err != nil {
			return fmt.Errorf("engine: whether the host of a container is alive: %w", err)
		}
		if alive {
			continue
		}
		if err := e.api.remove(ctx, id); err != nil {
			return fmt.Errorf("what a dead process left: %w", err)
		}
		e.log.Info("a container that a dead process left was removed", "container", labels[labelRun])
	}
	return nil
}

// folderFile is the file in a runtime folder that has its name for engines: several
// hosts with folders of the same path may share one.
const folderFile = "engine"

var folderName = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// folderID returns the name of the runtime folder, which gets one where it has none.
func folderID(runtime string) (string, error) {
	root, err := os.OpenRoot(runtime)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if _, err := root.Lstat(folderFile); errors.Is(err, fs.ErrNotExist) {
		id := rand.Text()
		fresh := folderFile + "." + id
		err := root.WriteFile(fresh, []byte(id), 0o600)
		if err == nil {
			err = root.Link(fresh, folderFile) // whole, or that of another who was first
		}
		if err = errors.Join(ignore(err, fs.ErrExist), root.Remove(fresh)); err != nil {
			return "", err
		}
	}
	b, err := root.ReadFile(folderFile)
	if err == nil && !folderName.Match(b) {
		err = fmt.Errorf("%s holds what is no name; remove it", folderFile)
	}
	return string(b), err
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}
