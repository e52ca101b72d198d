//go:build linux && (amd64 || arm64)

package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/internal/calls"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
)

// An Executor runs scripts in containers. Make one with [New]. It is safe for
// concurrent use.
type Executor struct {
	log          *slog.Logger
	config       Config
	engine       engine
	filter       []byte
	shown        []show // of the host
	instance     *box.Instance
	limits       *box.Means
	ids          *box.Identities
	posture      executor.Posture
	interpreters interpreter.Opener
	underWay     *box.UnderWay
	postures     box.Postures
	look         func(pid int, o order, group string) (string, error) // at a container, from outside

	mu     sync.Mutex
	images map[bundle.Digest]*image.Image // held until Close
}

var (
	_ executor.Executor = (*Executor)(nil)
	_ executor.Posturer = (*Executor)(nil)
)

// New returns an Executor. It removes what dead processes left in the same runtime
// folder, and makes containers to prove what [Executor.Posture] says.
//
// # Errors
//
// One that wraps ErrWall and names the wall and the remedy where one cannot stand:
// there is no way to run with less. One that wraps ErrEngine where the OCI runtime is
// not there, is none that this executor drives, or fails.
func New(c Config) (*Executor, error) { return open(c, func(*Executor) {}) }

// open makes an executor that change has changed, before it is proved.
func open(c Config, change func(*Executor)) (e *Executor, err error) {
	if c.Space < 0 || c.Processors < 0 {
		return nil, errors.New("container: a negative limit")
	}
	c.Space, c.Processors = cmp.Or(c.Space, DefaultSpace), cmp.Or(c.Processors, DefaultProcessors)
	opened := &Executor{
		log: cmp.Or(c.Logger, slog.New(slog.DiscardHandler)), config: c,
		images: map[bundle.Digest]*image.Image{}, underWay: box.NewUnderWay(ErrClosed, errClosing),
	}
	e = opened
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
			e = nil
		}
	}()
	if os.Geteuid() != 0 {
		return e, fmt.Errorf("%w: %w; run it as root, be it of a user namespace that has the users and groups 1 to 65536, or take the executor sandbox, which needs no rights", ErrWall, errNotRoot)
	}
	if e.engine, err = openEngine(c.Engine); err != nil {
		return e, err
	}
	rules := calls.Base(calls.NoFamily).NoWatches()
	e.look = e.lookAtFirst
	if e.engine.name == gvisor {
		rules, e.look = rules.NoAttributes(), e.lookAtKernel // it keeps attributes in its own memory
	}
	e.filter = rules.Filter()
	if e.shown, err = hostShown(c.Folders); err != nil {
		return e, fmt.Errorf("container: %w", err)
	}
	if e.ids, err = box.FindIdentities(); err != nil {
		return e, fmt.Errorf("%w: %w", ErrWall, err)
	}
	instance, warning, err := box.OpenInstance(cmp.Or(c.Runtime, box.DefaultRuntime()), box.Sweep(e.log))
	if warning != nil {
		e.log.Warn("leftovers of a dead process were not removed", "err", warning)
	}
	if err != nil {
		return e, fmt.Errorf("container: %w", err)
	}
	e.instance = instance
	e.limits = box.OpenMeans(instance.Name(), box.Limits{Processors: c.Processors})
	if !e.limits.HoldsMemory() || !e.limits.HoldsProcesses() || !e.limits.HoldsCPU() {
		return e, fmt.Errorf("%w: no cgroup limits memory, processes and processor time: %w; give the service a part of the cgroup tree (systemd: Delegate=yes and DelegateSubgroup=)", ErrWall, e.limits.Err)
	}
	change(e)
	if err = e.prove(); err != nil {
		return e, fmt.Errorf("%w: %w", ErrWall, err)
	}
	return e, nil
}

// Posture says which walls stand. It was proved by [New].
func (e *Executor) Posture(context.Context) (executor.Posture, error) { return e.posture, nil }

// Close stops the runs that are under way, which then end with an error, waits for
// them, and leaves nothing. Later runs fail with ErrClosed. It may be called again.
func (e *Executor) Close() error {
	if !e.underWay.Close() {
		return nil
	}
	err := e.limits.Close()
	for _, i := range e.images {
		err = errors.Join(err, i.Close())
	}
	if e.instance != nil {
		err = errors.Join(err, e.instance.Close())
	}
	return err
}

// image returns the runtime that the interpreter lies in, nil for one of the host. It
// is held until Close, so that nobody removes it meanwhile.
func (e *Executor) image(in gate.Interpreter) (*image.Image, error) {
	if in.Image.IsZero() {
		return nil, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.images[in.Image]; known != nil {
		return known, nil
	}
	if e.config.Images == nil {
		return nil, fmt.Errorf("the interpreter lies in the runtime %q, and this executor was given no runtimes", in.Name)
	}
	i, err := e.config.Images.Image(in.Image)
	if err != nil {
		return nil, fmt.Errorf("the runtime %q (%s): %w", in.Name, in.Image, err)
	}
	e.images[in.Image] = i
	return i, nil
}
