package wire

import (
	"errors"
	"io"
	"math"
	"slices"
	"unicode/utf8"
)

// An Answer says how a script ended. The JSON has the names of R28.
type Answer struct {
	ExitCode       *int   `json:"exitCode"` // null when timed out. Of a script that did not exit by itself: 128 and the signal's number
	StandardOutput string `json:"standardOutput"`
	StandardError  string `json:"standardError"`
	Truncated      bool   `json:"truncated"`
	TimedOut       bool   `json:"timedOut"`

	// More is what an answer has beyond R28; nil to and from a peer that does not know it.
	More *AnswerMore `json:"tracon,omitempty"`
}

// AnswerMore is what an answer has beyond R28.
type AnswerMore struct {
	ID     string `json:"id"`     // of the run, as it was asked for
	Bundle string `json:"bundle"` // digest of the closure that ran
	Ending Ending `json:"ending"`

	// The streams as they were, where one is not UTF-8; then its text has U+FFFD in
	// the place of what is not.
	StandardOutput64 []byte `json:"standardOutput64,omitempty"`
	StandardError64  []byte `json:"standardError64,omitempty"`

	Outputs         []File   `json:"outputs,omitempty"`
	Notes           []string `json:"notes,omitempty"`
	Tier            string   `json:"tier"`                    // that the executor stands at
	Claimed         bool     `json:"claimed,omitempty"`       // nobody at the runner proved it
	Walls           []Wall   `json:"walls,omitempty"`         // those that stand, and those that do not
	PostureDigest   string   `json:"postureDigest,omitempty"` // of the walls around this very script
	DurationSeconds float64  `json:"durationSeconds"`         // by the runner's clock
	LogIndex        uint64   `json:"logIndex"`                // of the admission in the runner's log
}

// An Ending is how the script ended: its kind, and the code or the signal.
type Ending struct {
	Kind   string `json:"kind"` // "exited", "signaled", "timed_out", "out_of_memory", "policy_violation", "output_flood"
	Code   int    `json:"code,omitempty"`
	Signal int    `json:"signal,omitempty"`
}

// Kinds returns the kinds of endings.
func Kinds() []string {
	return []string{"exited", "signaled", "timed_out", "out_of_memory", "policy_violation", "output_flood"}
}

// A Wall is one that the runner's executor tells of.
type Wall struct {
	Name   string `json:"name"`
	Stands bool   `json:"stands"`
}

// ReadAnswer reads one answer of at most max bytes; zero means [MaxAnswer]. An exit
// code beside "timed out" is dropped (R28).
//
// # Errors
//
// One that wraps ErrTooLarge, ErrMalformed, or r's own.
func ReadAnswer(r io.Reader, max int64) (Answer, error) {
	var in answered
	if err := read(r, orMost(max, MaxAnswer), &in); err != nil {
		return Answer{}, err
	}
	return in.answer()
}

// answered is an Answer as it comes. What must be there is a pointer here: a zero field
// says nothing.
type answered struct {
	ExitCode       *int        `json:"exitCode"`
	StandardOutput *string     `json:"standardOutput"`
	StandardError  *string     `json:"standardError"`
	Truncated      bool        `json:"truncated"`
	TimedOut       bool        `json:"timedOut"`
	More           *AnswerMore `json:"tracon"`
}

func (in *answered) answer() (Answer, error) {
	switch {
	case in.StandardOutput == nil || in.StandardError == nil:
		return Answer{}, malformed("the answer lacks standardOutput or standardError")
	case in.ExitCode == nil && !in.TimedOut:
		return Answer{}, malformed("the answer says neither exitCode nor timedOut")
	case in.TimedOut:
		in.ExitCode = nil
	}
	a := Answer{in.ExitCode, *in.StandardOutput, *in.StandardError, in.Truncated, in.TimedOut, in.More}
	return a, a.Check()
}

// maxSignal is the highest number of a signal: Linux has 64, others fewer.
const maxSignal = 64

// Check says what in a is not of this wire's form, or nil.
func (a Answer) Check() error {
	switch {
	case (a.ExitCode == nil) != a.TimedOut:
		return malformed("an answer has an exit code, or is timed out")
	case a.ExitCode != nil && (int64(*a.ExitCode) < math.MinInt32 || int64(*a.ExitCode) > math.MaxUint32): // Windows has 32 bits, with a sign or without
		return malformed("exitCode is %d, which no process can have", *a.ExitCode)
	case a.More == nil:
		return nil
	case !slices.Contains(Kinds(), a.More.Ending.Kind):
		return malformed("tracon.ending.kind %.40q is none", a.More.Ending.Kind)
	case (a.More.Ending.Kind == "timed_out") != a.TimedOut:
		return malformed("timedOut is %t, and tracon.ending says %s", a.TimedOut, a.More.Ending.Kind)
	case a.More.Ending.Kind == "signaled" && (a.More.Ending.Signal < 1 || a.More.Ending.Signal > maxSignal):
		return malformed("tracon.ending.signal is %d, want 1 to %d", a.More.Ending.Signal, maxSignal)
	case a.More.Ending.Kind == "exited" && a.More.Ending.Code != *a.ExitCode:
		return malformed("exitCode is %d, and tracon.ending says %d", *a.ExitCode, a.More.Ending.Code)
	}
	return nil
}

// Encode checks a and returns its JSON.
func (a Answer) Encode() ([]byte, error) {
	if err := a.sendable(); err != nil {
		return nil, err
	}
	return encode(a)
}

func (a Answer) sendable() error {
	if err := a.Check(); err != nil {
		return err
	}
	if !utf8.ValidString(a.StandardOutput) || !utf8.ValidString(a.StandardError) {
		return malformed("a stream is not UTF-8")
	}
	return nil
}

// Streams returns what the script wrote, any bytes.
func (a Answer) Streams() (stdout, stderr []byte) {
	stdout, stderr = []byte(a.StandardOutput), []byte(a.StandardError)
	if m := a.More; m != nil {
		if len(m.StandardOutput64) > 0 {
			stdout = m.StandardOutput64
		}
		if len(m.StandardError64) > 0 {
			stderr = m.StandardError64
		}
	}
	return stdout, stderr
}

// A Problem is the body of an answer outside 2xx, as application/problem+json.
type Problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`   // a gate's name, "busy", "draining", "malformed", "too_large", "unauthenticated", "bundle_unknown", …
	Detail string `json:"detail"` // for the operator of the other side; nothing of this host

	// ID is the run's, where it is known. NotStarted says that no script was started
	// and none will be: whoever asked may ask elsewhere.
	ID         string `json:"id,omitempty"`
	NotStarted bool   `json:"notStarted,omitempty"`

	RetryAfterSeconds int `json:"retryAfterSeconds,omitempty"`
}

// ReadProblem reads a Problem of at most [MaxSmall] bytes.
func ReadProblem(r io.Reader) (Problem, error) {
	var p Problem
	err := read(r, MaxSmall, &p)
	if err == nil && p.Code == "" {
		err = malformed("the problem has no code")
	}
	return p, err
}

// Encode returns p's JSON.
func (p Problem) Encode() ([]byte, error) { return encode(p) }

// Info is what a runner tells of itself: GET info.
type Info struct {
	Name      string    `json:"name"`      // of the runner; tickets are bound to it
	Protocols []string  `json:"protocols"` // what it knows beyond R28: see [Protocol]
	Runtimes  []Runtime `json:"runtimes"`

	Executor string `json:"executor"`
	Tier     string `json:"tier"`
	Claimed  bool   `json:"claimed"` // nobody proved it
	Walls    []Wall `json:"walls"`

	Slots          int  `json:"slots"`          // scripts that run at once
	SlotsPerTenant int  `json:"slotsPerTenant"` // those of one tenant; zero: it does not say
	Busy           int  `json:"busy"`           // slots that are held
	Waiting        int  `json:"waiting"`
	Draining       bool `json:"draining"` // it takes no more runs

	RequireTicket bool `json:"requireTicket"`
	// TicketKeys are the fingerprints of the keys that whoever asks may sign tickets
	// with, see ticket.Fingerprint. Nil: it does not say; empty: there are none.
	TicketKeys []string `json:"ticketKeys,omitzero"`

	MaxInline int    `json:"maxInline"` // bytes of a closure that may travel within a run
	Limits    Limits `json:"limits"`
}

// A Runtime is one that a runner has.
type Runtime struct {
	Name      string `json:"name"`
	Extension string `json:"extension"` // of the scripts that it runs, such as "py"
}

// Limits are a runner's own. What asks for more is refused.
type Limits struct {
	TimeoutSeconds float64 `json:"timeoutSeconds"`
	OutputBytes    int     `json:"outputBytes"`
	InputsBytes    int64   `json:"inputsBytes"`
	OutputsBytes   int64   `json:"outputsBytes"`
	OutputFiles    int     `json:"outputFiles"`
	Memory         int64   `json:"memory"`
	Processes      int     `json:"processes"`
}

// Knows reports whether the runner knows the member "tracon".
func (i Info) Knows() bool { return slices.Contains(i.Protocols, Protocol) }

// Shows reports whether the runner can show output before the end: see [LiveType].
func (i Info) Shows() bool { return i.Knows() && slices.Contains(i.Protocols, ProtocolLive) }

// ReadInfo reads an Info of at most [MaxSmall] bytes.
func ReadInfo(r io.Reader) (Info, error) {
	var i Info
	return i, read(r, MaxSmall, &i)
}

// Encode returns i's JSON.
func (i Info) Encode() ([]byte, error) { return encode(i) }

// ErrTooLarge is wrapped when there is more than may be read.
var ErrTooLarge = errors.New("wire: too large")
