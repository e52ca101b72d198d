package toolcall

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
)

// A Record says what came of one admitted call.
type Record struct {
	ID              string        `json:"id"` // the call's, UUIDv7
	Tenant          string        `json:"tenant"`
	Actor           string        `json:"actor"`
	Skill           string        `json:"skill"`
	Script          string        `json:"script"`
	Digest          bundle.Digest `json:"digest"`       // of the closure
	ScriptDigest    bundle.Digest `json:"scriptDigest"` // of the script alone
	Grant           string        `json:"grant"`
	Executor        string        `json:"executor"`
	Tier            string        `json:"tier"`
	ArgumentsBytes  int           `json:"argumentsBytes"`
	ArgumentsDigest bundle.Digest `json:"argumentsDigest"`
	ArgumentsSalt   []byte        `json:"-"`                   // of the commitment in the log; erased with the record
	Arguments       string        `json:"arguments,omitempty"` // only when the policy keeps them
	Admitted        time.Time     `json:"admitted"`
	Ended           time.Time     `json:"ended"`
	Waited          time.Duration `json:"-"` // for a slot; in JSON waitedSeconds
	Duration        time.Duration `json:"-"` // in JSON durationSeconds: of the executor's call, by the host's clock
	Ending          string        `json:"ending"`
	ExitCode        *int          `json:"exitCode"` // nil where there is none
	Signal          *int          `json:"signal"`   // nil where there is none
	Abandoned       bool          `json:"abandoned,omitempty"`
	StdoutBytes     int           `json:"stdoutBytes"` // of what was kept
	StderrBytes     int           `json:"stderrBytes"`
	OutputFiles     int           `json:"outputFiles"`
	OutputBytes     int64         `json:"outputBytes"`
	Truncated       bool          `json:"truncated"`
	Notes           []string      `json:"notes,omitempty"`
	AdmissionIndex  uint64        `json:"admissionIndex"` // of the admission in the log
}

// HasDetails reports whether r has what [Record.WithoutDetails] leaves out.
func (r Record) HasDetails() bool {
	return r.Arguments != "" || len(r.ArgumentsSalt) > 0 || len(r.Notes) > 0
}

// WithoutDetails returns r without the text of its arguments, the salt of the
// log's commitments, without which they tell nothing, and its notes.
func (r Record) WithoutDetails() Record {
	r.Arguments, r.ArgumentsSalt, r.Notes = "", nil, nil
	return r
}

type plainRecord Record

// MarshalJSON writes r with its durations in seconds.
func (r Record) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainRecord
		WaitedSeconds   float64 `json:"waitedSeconds"`
		DurationSeconds float64 `json:"durationSeconds"`
	}{plainRecord(r), r.Waited.Seconds(), r.Duration.Seconds()})
}

// DefaultLimit is how many records a [Filter] without a limit chooses at most.
const DefaultLimit = 100

// A Filter chooses records to list. The zero Filter chooses the newest.
type Filter struct {
	Skill  string // empty: any
	Before string // only calls with a smaller id, that is, older ones; empty: from the newest on
	Limit  int    // at most so many; zero means 100, a negative one is an error
}

// Errors of a Store.
var (
	ErrNotFound = errors.New("toolcall: not found")        // the tenant has no record of the call
	ErrExists   = errors.New("toolcall: already recorded") // the tenant has a record of the call
)

// A Store keeps records. It must be safe for concurrent use.
type Store interface {
	// AddCall keeps r and seals its ending, all or nothing. A record is written
	// once: a second one of the tenant with the same id fails with ErrExists.
	AddCall(ctx context.Context, r Record, ending audit.Pending) error

	// Call returns the tenant's record id, or ErrNotFound.
	Call(ctx context.Context, tenant, id string) (Record, error)

	// Calls returns the tenant's records, the newest first.
	Calls(ctx context.Context, tenant string, f Filter) ([]Record, error)
}
