package tracon

import (
	"bytes"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/slot"
	"github.com/tracon-go/tracon/toolcall"
)

// An Outcome is what came of a call that was admitted. Times and durations are in
// whole microseconds, as records have them.
type Outcome struct {
	ID                       string          // of the call
	Ending                   executor.Ending // how the script ended
	Stdout                   string          // valid UTF-8, at most the policy's limit
	Stderr                   string          // the same; what stands here never decides success (R27)
	Truncated                bool            // a stream was cut
	Replaced                 bool            // bytes that were not UTF-8 were replaced by U+FFFD
	StdoutBytes, StderrBytes []byte          // where Replaced, the bytes as they were, secrets masked, each at most the policy's limit (O01); else nil
	Outputs                  []bundle.File   // files that the script wrote
	Notes                    []string        // what the user should know
	Duration                 time.Duration   // of the executor's call, by the host's clock
	Waited                   time.Duration   // for a slot
	Admitted                 time.Time       // when every gate had said yes, UTC
	Ended                    time.Time       // as its record has it, UTC; zero for a caller who was told "cancelled" before the executor had answered
	Abandoned                bool            // the executor had not answered at the wait limit; its work may go on
	Digest                   bundle.Digest   // of the closure that ran
	GrantID                  string          // of the grant that opened the gates
	Standing                 gate.Standing   // of the executor
	Receipt                  audit.Receipt   // of the admission
	Proof                    audit.Proof     // of the admission, for others: see Config.Receipts

	PostureDigest bundle.Digest // of what the executor saw of the walls around this run; zero where it looks at none
}

// Errors that Run returns besides a *gate.Denial and audit.ErrUnavailable.
var (
	// ErrBusy: there was no slot in time, or no place in the queue. Try again; a *BusyError says when.
	ErrBusy = slot.ErrBusy
	// ErrCancelled: the caller stopped the call. It wraps the cause too.
	ErrCancelled = errors.New("tracon: cancelled")
	// ErrExecutorUnavailable: the executor could not start the script.
	ErrExecutorUnavailable = errors.New("tracon: the executor could not start the script")
	// ErrExecutorFailed: the executor returned an error or nothing. The script may have run.
	ErrExecutorFailed = errors.New("tracon: the executor failed")
	// ErrUnknown: the executor cannot tell what became of the script. It may have run.
	ErrUnknown = errors.New("tracon: unknown what became of the script")
	// ErrClosed: the runner takes no more calls.
	ErrClosed = fmt.Errorf("%w: the runner is closed", ErrBusy)
	// ErrDefaultExecutor: New was asked to require a custom executor and found the built-in default.
	ErrDefaultExecutor = errors.New("tracon: a custom executor is required, and the built-in default is what resolves")
)

// A Cancellation is a cause to cancel a call with, where somebody else than its
// caller stops it: the log's ending names who.
type Cancellation struct{ By string }

// Error names who stopped the call.
func (c *Cancellation) Error() string { return "stopped by " + c.By }

// Code returns the code of what came of a call: "" for a script that ran to its
// end by itself, whatever its exit code; the gate's name for a refusal; else one
// of the failures: busy, audit_unavailable, executor_unavailable,
// executor_failed, timed_out, cancelled, out_of_memory, policy_violation,
// output_flood, unknown.
func Code(out Outcome, err error) string {
	if d, ok := errors.AsType[*gate.Denial](err); ok && !errors.Is(err, audit.ErrUnavailable) {
		return string(d.Gate)
	}
	switch {
	case err == nil:
		if _, ok := out.Ending.ExitCode(); ok {
			return ""
		}
		if _, ok := out.Ending.Signal(); ok {
			return ""
		}
		if out.Ending.IsZero() {
			return "unknown"
		}
		return out.Ending.Name()
	case errors.Is(err, audit.ErrUnavailable):
		return "audit_unavailable"
	case errors.Is(err, ErrCancelled):
		return "cancelled"
	case errors.Is(err, ErrBusy):
		return "busy"
	case errors.Is(err, ErrExecutorUnavailable):
		return "executor_unavailable"
	case errors.Is(err, ErrExecutorFailed):
		return "executor_failed"
	}
	return "unknown"
}

// ModelText returns the only words about a failed call that a model sees: one
// line that helps it to do better. It never holds the text of an executor's
// error. For a script that ran to its end it returns "".
func ModelText(out Outcome, err error) string {
	if d, ok := errors.AsType[*gate.Denial](err); ok && !errors.Is(err, audit.ErrUnavailable) {
		return d.ModelText()
	}
	switch code := Code(out, err); code {
	case "":
		if n, ok := out.Ending.Signal(); ok {
			return fmt.Sprintf("The script was killed by signal %d.", n)
		}
		return ""
	case "busy":
		if busy, ok := errors.AsType[*BusyError](err); ok {
			return fmt.Sprintf("Busy. Try again in %d seconds.", int(busy.RetryAfter.Seconds()+0.5))
		}
		return "Busy. Try again later."
	case "audit_unavailable":
		return "The call could not be recorded, so nothing can be said of it. Ask the operator."
	case "cancelled":
		return "The call was cancelled."
	case "executor_unavailable":
		return "The script could not be started. Ask the operator."
	case "executor_failed":
		return "Running the script failed. Ask the operator."
	case "timed_out":
		return "The script did not end in time and was stopped. Give it less to do."
	case "out_of_memory":
		return "The script used more memory than it may. Give it less to do."
	case "policy_violation":
		return "The script did something that no script may do, and was stopped."
	case "output_flood":
		return "The script wrote far too much output, and was stopped."
	}
	return "The call failed. Ask the operator."
}

// RecordText returns what [ModelText] says of what the record r tells. Which gate
// refused stands in the log alone: of that it says nothing.
func RecordText(r toolcall.Record) string {
	switch {
	case r.Ending == "refused" || r.ExitCode != nil:
		return ""
	case r.Signal != nil:
		return ModelText(Outcome{Ending: executor.Signaled(*r.Signal)}, nil)
	}
	for _, e := range []executor.Ending{executor.Expired(), executor.OutOfMemory(), executor.PolicyViolation(), executor.OutputFlood()} {
		if e.Name() == r.Ending {
			return ModelText(Outcome{Ending: e}, nil)
		}
	}
	for _, err := range []error{ErrBusy, audit.ErrUnavailable, ErrExecutorUnavailable, ErrExecutorFailed, ErrUnknown, ErrCancelled} {
		if Code(Outcome{}, err) == r.Ending {
			return ModelText(Outcome{}, err)
		}
	}
	return ModelText(Outcome{}, nil)
}

// clip makes text of a stream: what is not UTF-8 is replaced, then masked does its part,
// and no more than max bytes are kept, cut between characters. Truncated says that the
// executor cut it, perhaps within a character.
func clip(b []byte, max int, truncated bool, masked func([]byte) []byte) (text string, cut, replaced bool) {
	if truncated {
		b = trimPart(b)
	}
	if !utf8.Valid(b) {
		b, replaced = bytes.ToValidUTF8(b, []byte("\uFFFD")), true
	}
	b = masked(b)
	if len(b) > max {
		for max > 0 && !utf8.RuneStart(b[max]) {
			max--
		}
		b, cut = b[:max], true
	}
	return string(b), cut, replaced
}

// trimPart drops the beginning of a character at the end of b.
func trimPart(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// files keeps the outputs that are within the limits and have a name that means
// one file everywhere. What it drops it names in a note.
func files(outputs []bundle.File, maxBytes int64, maxFiles int) (kept []bundle.File, notes []string) {
	var total int64
	var names bundle.Names
	for _, f := range outputs {
		why := ""
		switch err := bundle.CheckPath(f.Path); {
		case err != nil:
			why = "its name cannot be used"
		case len(kept) >= maxFiles:
			why = fmt.Sprintf("more than %d files", maxFiles)
		case total+int64(len(f.Data)) > maxBytes:
			why = fmt.Sprintf("more than %d bytes in all", maxBytes)
		case names.Add(f.Path) != nil:
			why = "its name came before, or one that some systems take for it"
		}
		if why != "" {
			if len(notes) < 16 {
				notes = append(notes, fmt.Sprintf("output %+q was not kept: %s", f.Path, why))
			}
			continue
		}
		total += int64(len(f.Data))
		kept = append(kept, f)
	}
	return kept, notes
}
