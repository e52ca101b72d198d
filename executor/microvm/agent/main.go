//go:build linux

package main

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
)

// confineName is the name by which the agent starts itself anew, to become the script.
const confineName = "confine"

func main() {
	if os.Getpid() != 1 {
		if os.Args[0] == confineName {
			confine()
		}
		os.Exit(2) // it mounts and kills as if the machine were its own
	}
	port, err := boot()
	if err != nil {
		panic(err) // nobody can be told; the machine ends
	}
	a := &agent{port: port}
	var f *failure
	switch err := a.serve(); {
	case errors.As(err, &f):
		println("agent:", f.Error())
		_ = a.say(frame.Failed, f.frame().Bytes())
	case err != nil && !errors.Is(err, io.EOF):
		panic(err)
	}
	select {} // the host has the last word
}

// A failure is an error at a step.
type failure struct {
	step frame.Step
	err  error
}

func (f *failure) Error() string { return f.step.String() + ": " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func (f *failure) frame() frame.Failure {
	var errno syscall.Errno
	errors.As(f.err, &errno)
	return frame.Failure{Step: f.step, Errno: uint32(errno)}
}

// at makes an error one of the step.
func at(step frame.Step, err error) error {
	if err == nil {
		return nil
	}
	return &failure{step, err}
}
