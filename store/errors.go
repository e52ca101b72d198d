package store

import (
	"errors"
	"fmt"
)

// Errors of a store. Those of a single room (grant.ErrNotFound, grant.ErrConflict,
// toolcall.ErrNotFound, toolcall.ErrExists, audit.ErrEntry) stand beside these.
var (
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store: closed")

	// ErrUnusable is wrapped by the error of opening a store that cannot be used as
	// it is, and of reading one that was damaged. An operator must act; the text
	// says how. Nothing was changed.
	ErrUnusable = errors.New("store: it cannot be used")

	// ErrCorrupt: what is kept is not what was written. It wraps ErrUnusable.
	ErrCorrupt = fmt.Errorf("%w: it is damaged", ErrUnusable)

	// ErrNewer: it was written by a newer version of this program. It wraps ErrUnusable.
	ErrNewer = fmt.Errorf("%w: it is of a newer version", ErrUnusable)

	// ErrOlder: it was written by an older version of this program, and is to be read
	// alone, which does not bring it to this one. It wraps ErrUnusable.
	ErrOlder = fmt.Errorf("%w: it is of an older version", ErrUnusable)

	// ErrPoisoned: writing failed in a way after which nothing that is written can
	// be relied on (a full disk, an I/O error). The store takes no more changes
	// until it is opened again; reads go on.
	ErrPoisoned = errors.New("store: it takes no more changes until it is opened again")

	// ErrFenced: other hosts took this one for dead, because it gave no sign of life
	// for too long, and closed what it had begun. It changes nothing any more, and is
	// to be started again.
	ErrFenced = errors.New("store: other hosts took this one for dead; start it again")
)
