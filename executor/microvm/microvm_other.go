//go:build !(linux && amd64)

package microvm

import (
	"context"
	"errors"

	"github.com/tracon-go/tracon/executor"
)

// An Executor runs scripts in virtual machines. There are none on this system.
type Executor struct{}

// New fails: this system has not what a machine is made of.
func New(Config) (*Executor, error) {
	return nil, errors.Join(ErrWall, errors.New("microvm: machines need Linux on an x86-64 processor"))
}

// Execute fails.
func (e *Executor) Execute(_ context.Context, req executor.Request) (executor.Result, error) {
	if !req.Valid() {
		return executor.Result{}, executor.ErrInvalidRequest
	}
	return executor.Result{}, ErrClosed
}

// Posture fails.
func (e *Executor) Posture(context.Context) (executor.Posture, error) {
	return executor.Posture{}, ErrWall
}

// Hung returns none.
func (e *Executor) Hung() int { return 0 }

// Waiting returns none.
func (e *Executor) Waiting() int { return 0 }

// Close does nothing.
func (e *Executor) Close() error { return nil }
