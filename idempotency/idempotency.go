// Package idempotency remembers which call a client's key stood for, so that the same
// call sent twice runs once. It knows nothing of HTTP, and nothing of scripts.
//
// A door calls [Store.Begin] before it makes the call. Only where the answer is [Begun]
// does it make it, under the run id of its [Claim]; then it calls [Store.Finish] with
// the answer, or [Store.Drop] where nothing was admitted and the client may try again
// with the same key (busy, refused, the log could not be written). Whether the caller
// may see an answer is decided again each time, before it is handed out.
//
// # What a crash leaves
//
// A claim that was begun and never finished stands for its run, and nobody begins it
// again: it stays [Running] until its time is over, or until [Recover] was called for
// the process that began it, which had died. A call that was not admitted leaves the
// key free; an admitted one may have run, so its key is [Done] without an answer, and
// the run's record, whose ending is "unknown", is what a second caller is told.
package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracon-go/tracon/bundle"
)

// Bounds of what is remembered.
const (
	Window    = 24 * time.Hour // from the beginning of the call; then the key stands for nothing
	MaxKey    = 255            // bytes of a key
	MaxAnswer = 1 << 20        // bytes of an answer that is kept

	// SmallAnswer is how many bytes an answer may have to be kept always. Of larger ones
	// MaxLarge of a tenant are kept at a time.
	SmallAnswer = 4 << 10
	MaxLarge    = 1000
)

// A State is what a key stands for. The zero State is none.
type State string

// The states.
const (
	Begun    State = "begun"    // for nothing until now: make the call
	Running  State = "running"  // for the same call, of which no answer was kept yet
	Done     State = "done"     // for the same call, which has its answer
	Conflict State = "conflict" // for a call with another body
)

// An Instance is the id of a host process, as it stands in its admissions. Where it is
// empty nobody can tell whether the process died, and a key stands for its time.
type Instance string

// A Claim says that a key of a tenant stands for one call.
type Claim struct {
	Tenant string
	Key    string        // as the client sent it; see [CheckKey]
	Body   bundle.Digest // of everything that makes the call what it is: the body, and what the address says
	Run    string        // the id that the call would have
	At     time.Time

	Instance Instance // that makes the call
}

// Validate says why c cannot be kept, or nil.
func (c Claim) Validate() error {
	switch {
	case c.Tenant == "" || c.Run == "" || c.At.IsZero():
		return errors.New("idempotency: a claim without a tenant, a run or a time")
	case c.Body.IsZero():
		return errors.New("idempotency: a claim without the digest of its body")
	}
	return CheckKey(c.Key)
}

// ErrKey is wrapped by the error for a key that none can be.
var ErrKey = errors.New("idempotency: bad key")

// CheckKey says why key cannot be one, or nil: 1 to 255 bytes of visible ASCII.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("%w: it has %d bytes; send 1 to %d", ErrKey, len(key), MaxKey)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return fmt.Errorf("%w: send visible ASCII without blanks", ErrKey)
		}
	}
	return nil
}

// A Found is what a key stands for.
type Found struct {
	State  State
	Run    string    // of the call it stands for: the caller's own where Begun, none where Conflict
	Begun  time.Time // when
	Answer []byte    // where Done; nil: there was none, or too much to keep, and the run's record tells
}

// Judge is what every Store makes of a claim c where the key stands for was, which may
// be c itself, begun this moment or by a try before.
func Judge(c, was Claim, done bool, answer []byte) Found {
	switch {
	case was.Body != c.Body:
		return Found{State: Conflict}
	case done:
		return Found{State: Done, Run: was.Run, Begun: was.At, Answer: answer}
	case was.Run == c.Run:
		return Found{State: Begun, Run: was.Run, Begun: was.At}
	}
	return Found{State: Running, Run: was.Run, Begun: was.At}
}

// A Store remembers. What it keeps is no part of the record: its changes have no
// entry. It must be safe for concurrent use, and one key begins once however many
// hosts share the store. Every method sees one tenant's keys alone, but
// Sweep, Left and Beginner, which no door calls.
type Store interface {
	// Begin has the key stand for the call of c, unless it stands for one that began
	// less than [Window] before c.At. A key that begins takes up to [SweptByBegin] with
	// it whose time is over, of whatever tenant, so that their number follows the use.
	Begin(ctx context.Context, c Claim) (Found, error)

	// Finish keeps the answer of the tenant's call, which key stands for: of run alone,
	// and once; else it fails with ErrGone. An answer of more than [MaxAnswer] is not
	// kept, nor is a large one of a tenant with [MaxLarge]; the call is done even so.
	Finish(ctx context.Context, tenant, key, run string, answer []byte) error

	// Drop has key stand for nothing again, if it stands for the tenant's run and has no
	// answer; else it fails with ErrGone.
	Drop(ctx context.Context, tenant, key, run string) error

	// Forget forgets all keys of the tenant, with their answers: for one that was deleted.
	Forget(ctx context.Context, tenant string) error

	// Sweep forgets what began before a time, of all tenants, at most limit keys (zero
	// means 1,000, a negative one is an error), and returns how many it forgot.
	Sweep(ctx context.Context, before time.Time, limit int) (int, error)

	// Left returns the claims without an answer that the process began, of all tenants,
	// by tenant and key, without their bodies: at most limit (zero means 1,000, a
	// negative one is an error). The empty instance has none.
	Left(ctx context.Context, instance Instance, limit int) ([]Claim, error)

	// Beginner returns the first process, by its id, behind the id after, that began a
	// claim which has no answer; none where there is no other.
	Beginner(ctx context.Context, after Instance) (Instance, error)
}

// DefaultSweep is how many keys Sweep forgets, and Left returns, at most where their
// limit is zero.
const DefaultSweep = 1000

// SweptByBegin is how many keys whose time is over Begin forgets at most.
const SweptByBegin = 4

// ErrGone: the key does not stand for this run, or has its answer.
var ErrGone = errors.New("idempotency: the key does not stand for this call any more")
