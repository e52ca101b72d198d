//go:build !linux || !(amd64 || arm64)

package engine

import (
	"context"
	"errors"

	"github.com/tracon-go/tracon/executor"
)

// An Executor runs scripts in containers. There are none on this system.
type Executor struct{}

// New fails: this system has not what a container is made of.
func New(Config) (*Executor, error) {
	return nil, errors.Join(ErrWall, errors.New("engine: containers need Linux on amd64 or arm64"))
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

// Close does nothing.
func (e *Executor) Close() error { return nil }
