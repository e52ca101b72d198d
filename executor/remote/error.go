package remote

import (
	"fmt"
	"strings"

	"github.com/tracon-go/tracon/executor"
)

// A Kind says what went wrong with a run.
type Kind string

// Kinds of an [Error]. Whether the script may have run its Unknown says.
const (
	Unsendable  Kind = "unsendable"  // the runner does not take what the run needs, or a credential cannot be read
	Unreachable Kind = "unreachable" // no connection, or none that is trusted
	Refused     Kind = "refused"     // the runner says no
	Busy        Kind = "busy"        // it has no room, or is about to stop
	Status      Kind = "status"      // a status that says nothing of the run, such as 500 or a redirect
	HungUp      Kind = "hung up"     // the connection ended before the answer did
	Silent      Kind = "silent"      // the answer did not come in time, or not in full
	Garbled     Kind = "garbled"     // the answer is empty, or not of the wire's form
	TooLarge    Kind = "too large"   // the answer has more than the run may return
	Violation   Kind = "violation"   // the answer is of another run or closure, or from a lower tier than was asked for
)

// An Error is how a run failed. It wraps executor.ErrUnavailable where the script was
// definitely not started, and executor.ErrUnknown where it may have run. Its text is
// for the operator.
type Error struct {
	Kind    Kind
	Unknown bool
	Status  int    // of the answer; zero: there is none
	Code    string // of the runner's problem; empty: it told none
	Detail  string // the runner's words, shortened; empty: it told none
	Err     error  // nil: there is none
}

// Error names the kind, and then what is known.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "remote: %s", e.Kind)
	if e.Status != 0 {
		fmt.Fprintf(&b, ", status %d", e.Status)
	}
	if e.Code != "" {
		fmt.Fprintf(&b, ", %.64q", e.Code)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ", %.512q", e.Detail)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Unknown {
		return b.String() + " (the script may have run)"
	}
	return b.String() + " (the script was not started)"
}

// Unwrap returns executor.ErrUnavailable or executor.ErrUnknown, and Err.
func (e *Error) Unwrap() []error {
	errs := []error{executor.ErrUnavailable}
	if e.Unknown {
		errs[0] = executor.ErrUnknown
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}
