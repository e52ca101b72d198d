package client

import (
	"encoding/json"
	"time"

	"github.com/tracon-go/tracon/bundle"
)

// A NewRun says what is to run.
type NewRun struct {
	Skill     string          `json:"skill" minLength:"1" maxLength:"512"`
	Script    string          `json:"script" minLength:"1" maxLength:"512" doc:"exact path in the skill, or a stored script's name"`
	Arguments json.RawMessage `json:"arguments,omitempty" required:"false" doc:"one JSON value in the form that the script takes: a list of strings, or an object; none: no arguments"`
	Inputs    []Input         `json:"inputs,omitempty" nullable:"false" maxItems:"2048" doc:"files that the script finds below inputs/"`

	// OutputData has the files that the script wrote come with the answer, in base64,
	// unless OutputLeftOut of it says that they are to be got by themselves.
	OutputData bool `json:"outputData,omitempty" doc:"the data of the files that the script wrote come with the answer, in base64, unless outputLeftOut of it is true; else each is got by itself"`
}

// An Input is one file for a script.
type Input struct {
	Path string `json:"path" minLength:"1" maxLength:"512"`
	Data []byte `json:"data" doc:"base64"`
}

// Stages of a [Run].
const (
	RunQueued  = "queued"  // admitted; it waits for a slot
	RunRunning = "running" // the executor has it
	RunEnded   = "ended"
)

// A Run is an admitted call and, once it has ended, what came of it. Where only its
// record is kept any more, there is no output in it.
type Run struct {
	ID     string    `json:"id"`
	Tenant string    `json:"tenant" doc:"the credential's"`
	Actor  string    `json:"actor" doc:"who started it"`
	Skill  string    `json:"skill"`
	Script string    `json:"script"`
	State  string    `json:"state" enum:"queued,running,ended"`
	Begun  time.Time `json:"begun"`
	Ended  time.Time `json:"ended,omitzero" required:"false"`

	Code      string `json:"code,omitempty" doc:"how it failed, such as timed_out; none: the script ran to its end by itself, whatever its exit code"`
	Text      string `json:"text,omitempty" doc:"all that a model is to be told of the failure"`
	Ending    string `json:"ending,omitempty" doc:"in a word, such as exited"`
	ExitCode  *int   `json:"exitCode" doc:"null: there is none"`
	Signal    *int   `json:"signal" doc:"null: none killed it"`
	Abandoned bool   `json:"abandoned,omitempty" doc:"the executor had not answered at the wait limit; its work may go on"`

	CancelledBy string `json:"cancelledBy,omitempty" doc:"who stopped it, where it was not the one who waited for it"`

	Stdout      *string  `json:"stdout,omitempty" doc:"none: it is not kept any more, or not yet there"`
	Stderr      *string  `json:"stderr,omitempty" doc:"what stands here never decides success"`
	StdoutBytes int      `json:"stdoutBytes"`
	StderrBytes int      `json:"stderrBytes"`
	Truncated   bool     `json:"truncated,omitempty" doc:"a stream was cut at the limit"`
	Replaced    bool     `json:"replaced,omitempty" doc:"bytes that were no UTF-8 were replaced"`
	Stdout64    []byte   `json:"stdoutBase64,omitempty" doc:"where bytes were replaced: those of stdout as they were, secrets masked, while they are kept"`
	Stderr64    []byte   `json:"stderrBase64,omitempty" doc:"the same of stderr"`
	Outputs     []Output `json:"outputs,omitempty" nullable:"false" doc:"files that the script wrote, while they are kept"`
	OutputFiles int      `json:"outputFiles"`
	OutputBytes int64    `json:"outputBytes"`
	Notes       []string `json:"notes,omitempty" nullable:"false" doc:"what the user should know"`

	// OutputLeftOut: data of files that were asked for, or a large stream, are not in this
	// answer. RunOutput and RunStream get them.
	OutputLeftOut bool `json:"outputLeftOut,omitempty" doc:"data of files that were asked for, or a large stream, are not in this answer, as too many large answers are under way, or as they were not kept with it: GET output, stdout and stderr of the run have them, while they are kept"`

	DurationSeconds float64 `json:"durationSeconds" doc:"of the executor's call, by the host's clock"`
	WaitedSeconds   float64 `json:"waitedSeconds" doc:"for a slot"`

	Digest   string    `json:"digest,omitempty" doc:"of the content that ran"`
	Grant    string    `json:"grant,omitempty" doc:"id of the grant that opened the gates"`
	Executor string    `json:"executor,omitempty"`
	Tier     string    `json:"tier,omitempty"`
	Audit    *Admitted `json:"audit,omitempty" doc:"the admission in the log"`
}

// An Output is one file that a script wrote.
type Output struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	Data []byte `json:"data,omitempty" doc:"base64; where it was asked for"`
}

// An Admitted is where the admission of a run stands in the log.
type Admitted struct {
	Index   uint64 `json:"index"`
	Hash    string `json:"hash,omitempty"`
	Receipt string `json:"receipt,omitempty" doc:"proves the entry to anybody: C2SP's tlog-proof"`
}

// Names of the events of a run.
const (
	EventStarted = "started" // it has its slot; data: {}
	EventOutput  = "output"  // it wrote something; data: an EventText
	EventGap     = "gap"     // output is missing here; data: an EventLost
	EventEnd     = "end"     // it has ended, and nothing comes after; data: a Run
)

// An EventText is what a script wrote. It is for looking at while the run lasts: the
// run itself is the truth.
type EventText struct {
	Stream string `json:"stream" enum:"stdout,stderr"`
	Text   string `json:"text"`
}

// An EventLost tells of output that is missing.
type EventLost struct {
	Bytes int64 `json:"bytes" doc:"zero: nobody knows how much"`
}

// A Call is the record of an admitted call that has ended.
type Call struct {
	ID              string        `json:"id"`
	Tenant          string        `json:"tenant"`
	Actor           string        `json:"actor"`
	Skill           string        `json:"skill"`
	Script          string        `json:"script"`
	Digest          bundle.Digest `json:"digest" doc:"of the content that ran"`
	ScriptDigest    bundle.Digest `json:"scriptDigest" doc:"of the script alone"`
	Grant           string        `json:"grant"`
	Executor        string        `json:"executor"`
	Tier            string        `json:"tier"`
	ArgumentsBytes  int           `json:"argumentsBytes"`
	ArgumentsDigest bundle.Digest `json:"argumentsDigest"`
	Arguments       string        `json:"arguments,omitempty" doc:"only where the policy keeps them"`
	Admitted        time.Time     `json:"admitted"`
	Ended           time.Time     `json:"ended"`
	Ending          string        `json:"ending"`
	ExitCode        *int          `json:"exitCode" doc:"null: there is none"`
	Signal          *int          `json:"signal" doc:"null: none killed it"`
	Abandoned       bool          `json:"abandoned,omitempty"`
	StdoutBytes     int           `json:"stdoutBytes"`
	StderrBytes     int           `json:"stderrBytes"`
	OutputFiles     int           `json:"outputFiles"`
	OutputBytes     int64         `json:"outputBytes"`
	Truncated       bool          `json:"truncated"`
	Notes           []string      `json:"notes,omitempty" nullable:"false"`
	AdmissionIndex  uint64        `json:"admissionIndex" doc:"of the admission in the log"`
	WaitedSeconds   float64       `json:"waitedSeconds" doc:"for a slot"`
	DurationSeconds float64       `json:"durationSeconds" doc:"of the executor's call, by the host's clock"`
}

// A Usage is what a tenant's calls of one skill came to that ended on one day.
type Usage struct {
	Day             string  `json:"day" doc:"such as 2026-11-30, UTC"`
	Skill           string  `json:"skill"`
	Calls           int64   `json:"calls" doc:"that were admitted and have ended"`
	Succeeded       int64   `json:"succeeded" doc:"of them, those with exit code 0"`
	DurationSeconds float64 `json:"durationSeconds" doc:"of the executor's calls"`
	WaitedSeconds   float64 `json:"waitedSeconds" doc:"for slots"`
	OutputBytes     int64   `json:"outputBytes" doc:"of streams and files"`
}
