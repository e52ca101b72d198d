package audit

import (
	"errors"
	"fmt"
)

// ErrBroken is wrapped by the error of a log that does not add up, or that is
// not the one that was signed. The five below say what is amiss, and wrap it.
var ErrBroken = errors.New("audit: the log does not add up")

// What can be amiss with a log.
var (
	// ErrAltered: an entry, or its place, is not what was written.
	ErrAltered = fmt.Errorf("%w: it was altered", ErrBroken)
	// ErrMissing: an entry or a checkpoint between others is gone.
	ErrMissing = fmt.Errorf("%w: something is missing", ErrBroken)
	// ErrTruncated: the last entries are gone; the store itself tells of more.
	ErrTruncated = fmt.Errorf("%w: its end was cut off", ErrBroken)
	// ErrRolledBack: the log adds up, and something outside of it tells of more.
	ErrRolledBack = fmt.Errorf("%w: it was rolled back", ErrBroken)
	// ErrUnsigned: a signature is missing, does not hold, or is of a key that nobody vouches for.
	ErrUnsigned = fmt.Errorf("%w: it is not signed", ErrBroken)
)

// A BrokenError names the first leaf that does not add up.
type BrokenError struct {
	Index uint64 // of the leaf
	Err   error  // what is wrong with it; it wraps one of the five
}

func (e *BrokenError) Error() string {
	why := e.Err.Error()
	return fmt.Sprintf("%v at entry %d: %s", ErrBroken, e.Index, trimFamily(why))
}
func (e *BrokenError) Unwrap() []error { return []error{ErrBroken, e.Err} }

// trimFamily leaves out what Error says already.
func trimFamily(text string) string {
	family := ErrBroken.Error() + ": "
	for len(text) > len(family) && text[:len(family)] == family {
		text = text[len(family):]
	}
	return text
}

func broken(index uint64, kind error, format string, args ...any) error {
	return &BrokenError{index, fmt.Errorf("%w: %w", kind, fmt.Errorf(format, args...))}
}
