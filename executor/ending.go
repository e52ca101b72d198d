package executor

import "fmt"

// An Ending says how a script ended. Its zero value says nothing, and the
// runner takes it for an error. Endings can be compared with ==.
type Ending struct {
	how how
	n   int
}

type how int8

const (
	_ how = iota
	exited
	signaled
	expired
	outOfMemory
	policyViolation
	outputFlood
)

// Exited is the ending of a script that ran to its end, whatever the code.
func Exited(code int) Ending { return Ending{exited, code} }

// Signaled is the ending of a script that a signal killed which nobody of ours sent.
func Signaled(signal int) Ending { return Ending{signaled, signal} }

// Expired is the ending of a script that was stopped at its timeout.
func Expired() Ending { return Ending{how: expired} }

// OutOfMemory is the ending of a script that was killed at its memory limit.
func OutOfMemory() Ending { return Ending{how: outOfMemory} }

// PolicyViolation is the ending of a script that was killed for a system call
// that no script has a use for.
func PolicyViolation() Ending { return Ending{how: policyViolation} }

// OutputFlood is the ending of a script that was stopped because it would not
// stop writing.
func OutputFlood() Ending { return Ending{how: outputFlood} }

// ExitCode returns the exit code, and false where there is none.
func (e Ending) ExitCode() (int, bool) { return e.n, e.how == exited }

// Signal returns the signal's number, and false where none ended the script.
func (e Ending) Signal() (int, bool) { return e.n, e.how == signaled }

// TimedOut reports whether the script was stopped at its timeout.
func (e Ending) TimedOut() bool { return e.how == expired }

// IsZero reports whether e says nothing.
func (e Ending) IsZero() bool { return e.how == 0 }

// Name returns the ending's name as the log and the API write it: "exited",
// "signaled", "timed_out", "out_of_memory", "policy_violation", "output_flood",
// or "" for the zero Ending.
func (e Ending) Name() string {
	return [...]string{"", "exited", "signaled", "timed_out", "out_of_memory", "policy_violation", "output_flood"}[e.how]
}

// String describes e for people.
func (e Ending) String() string {
	switch e.how {
	case exited:
		return fmt.Sprintf("exit code %d", e.n)
	case signaled:
		return fmt.Sprintf("killed by signal %d", e.n)
	case expired:
		return "timed out"
	case outOfMemory:
		return "out of memory"
	case policyViolation:
		return "killed for a forbidden system call"
	case outputFlood:
		return "stopped: too much output"
	}
	return "no ending"
}
