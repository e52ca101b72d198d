package cli

import (
	"errors"
	"fmt"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
)

// Exit codes of `tracon run`; the other verbs exit 0, or 1 on an error, and 2
// for words that are no command.
const (
	exitError    = 1   // a verb failed
	exitUsage    = 2   // the words of the command line
	exitFindings = 3   // fsck found something amiss, conformance something that got through
	exitNotKnown = 4   // conformance: of some case nothing is known
	exitClipped  = 123 // the script's own code was above it
	exitTimedOut = 124
	exitTracon   = 125 // Tracon could not: busy and a log that cannot be written too
	exitRefused  = 126 // a gate said no
	exitSignal   = 128 // and the signal's number, up to maxSignal
	maxSignal    = 64
)

// runExit is the exit code for what came of a call.
func runExit(out tracon.Outcome, err error) int {
	if errors.Is(err, gate.ErrDenied) && !errors.Is(err, audit.ErrUnavailable) {
		return exitRefused
	}
	if err != nil {
		return exitTracon
	}
	if code, ok := out.Ending.ExitCode(); ok {
		if code < 0 || code > exitClipped {
			return exitClipped
		}
		return code
	}
	if n, ok := out.Ending.Signal(); ok {
		if n < 1 || n > maxSignal { // above it a system would cut the code to one that says less, even to 0
			return exitTracon
		}
		return exitSignal + n
	}
	if out.Ending.TimedOut() {
		return exitTimedOut
	}
	return exitTracon
}

// exitWith carries an exit code up to Main. What it wraps was not printed yet,
// unless it is nil.
type exitWith struct {
	code int
	err  error
}

func (e *exitWith) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitWith) Unwrap() error { return e.err }

// hintError is an error with what the operator can do about it.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }

func hint(err error, format string, args ...any) error {
	return &hintError{err, fmt.Sprintf(format, args...)}
}
