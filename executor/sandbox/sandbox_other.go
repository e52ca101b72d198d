//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"context"
	"errors"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/image"
)

// An Executor runs scripts in boxes. There are none on this system.
type Executor struct{}

// New fails: this system has not what a box is made of.
func New(Config) (*Executor, error) {
	return nil, errors.Join(ErrWall, errors.New("sandbox: boxes need Linux on amd64 or arm64"))
}

// Showable fails: there are no boxes to show it in.
func Showable(*image.Image) error { return ErrWall }

// Shows is false: there are no boxes to see it in.
func Shows(string, []string) bool { return false }

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
