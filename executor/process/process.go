//go:build linux || darwin

package process

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/box"
	"github.com/tracon-go/tracon/executor/interpreter"
)

// An Executor runs scripts as plain processes of the host's user. Make one with
// [New]. It is safe for concurrent use.
type Executor struct {
	log          *slog.Logger
	instance     *box.Instance
	cgroups      *box.Cgroups // nil: runs have none
	posture      executor.Posture
	interpreters interpreter.Opener
	underWay     *box.UnderWay
}

var (
	_ executor.Executor = (*Executor)(nil)
	_ executor.Posturer = (*Executor)(nil)
)

// New returns an Executor with a private folder of its own. It removes the
// folders, the processes and the cgroups that dead processes left in the same
// runtime folder, and starts one process to prove what [Executor.Posture] says.
//
// An Executor marks every file that this process has open as close-on-exec
// before it starts a script, so that scripts inherit none.
func New(c Config) (*Executor, error) {
	e := &Executor{log: cmp.Or(c.Logger, slog.New(slog.DiscardHandler)), underWay: box.NewUnderWay(ErrClosed, errClosing)}
	instance, warning, err := box.OpenInstance(cmp.Or(c.Runtime, box.DefaultRuntime()), box.Sweep(e.log))
	if warning != nil {
		e.log.Warn("leftovers of a dead process were not removed", "err", warning)
	}
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	e.instance = instance
	var cgroupErr error
	switch {
	case c.NoCgroup:
		cgroupErr = errors.New("the configuration asks for none")
	default:
		e.cgroups, cgroupErr = box.OpenCgroups(instance.Name())
	}
	if err := e.prove(cgroupErr); err != nil {
		return nil, errors.Join(fmt.Errorf("process: %w", err), e.Close())
	}
	return e, nil
}

// Close stops the runs that are under way, which then end with an error, waits
// for them, and removes the executor's folder. Later runs fail with ErrClosed.
// It may be called again.
func (e *Executor) Close() error {
	if !e.underWay.Close() {
		return nil
	}
	return errors.Join(e.cgroups.Close(), e.instance.Close())
}
