//go:build !linux && !darwin

package process

import (
	"context"
	"errors"

	"github.com/tracon-go/tracon/executor"
)

// An Executor runs scripts as plain processes. There is none on this system.
type Executor struct{}

// New fails: on this system the processes of a script cannot be stopped for
// certain, so none is started.
func New(Config) (*Executor, error) {
	return nil, errors.New("process: scripts cannot be run on this system; use Linux or macOS, or an executor that runs them elsewhere")
}

// Execute fails.
func (e *Executor) Execute(context.Context, executor.Request) (executor.Result, error) {
	return executor.Result{}, executor.ErrUnavailable
}

// Posture fails.
func (e *Executor) Posture(context.Context) (executor.Posture, error) {
	return executor.Posture{}, executor.ErrUnavailable
}

// Close does nothing.
func (e *Executor) Close() error { return nil }

// Leftovers returns nothing: no process of this system leaves anything.
func Leftovers(string) ([]string, error) { return nil, nil }
