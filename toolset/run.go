package toolset

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

// running is what a model sent to run a script.
type running struct {
	Skill         string   `json:"skill"`
	Script        string   `json:"script"`
	Arguments     []string `json:"arguments"`
	ArgumentsJSON string   `json:"arguments_json"`
	Inputs        []input  `json:"inputs"`
}

// An input has a name and exactly one of the others.
type input struct {
	Name   string  `json:"name"`
	Text   *string `json:"text"`
	Base64 *string `json:"base64"`
	Handle *string `json:"handle"`
}

// ranJSON is what came of a script.
type ranJSON struct {
	problemJSON
	Call      string        `json:"call,omitempty"`
	Digest    bundle.Digest `json:"digest"` // of what ran
	ExitCode  *int          `json:"exitCode"`
	Signal    *int          `json:"signal"`
	TimedOut  bool          `json:"timedOut"`
	Truncated bool          `json:"truncated"` // by the policy's limit, not by that of what a model is shown
	Replaced  bool          `json:"replaced"`  // bytes that are no UTF-8, by U+FFFD
	Stdout    stream        `json:"stdout"`
	Stderr    stream        `json:"stderr"`
	Outputs   []outputJSON  `json:"outputs"`
	Notes     []string      `json:"notes"`
	Seconds   float64       `json:"durationSeconds"`
	Receipt   *receiptJSON  `json:"receipt,omitempty"`
}

type outputJSON struct {
	Path      string        `json:"path"`
	Size      int           `json:"size"`
	MediaType string        `json:"mediaType"`
	Digest    bundle.Digest `json:"digest"`
	Handle    string        `json:"handle"`
}

type receiptJSON struct {
	Index uint64 `json:"index"`
	Hash  string `json:"hash"`
	Proof string `json:"proof,omitempty"` // that anybody can check; empty: none could be made
}

func receiptOf(out tracon.Outcome) *receiptJSON {
	r := &receiptJSON{Index: out.Receipt.Index(), Hash: out.Receipt.Hash().String()}
	if text, err := out.Proof.MarshalText(); err == nil && !out.Proof.IsZero() {
		r.Proof = string(text)
	}
	return r
}

func (s *Session) run(ctx context.Context, arguments json.RawMessage, live *gate.Live) Result {
	defer live.Close() // of a call that reaches no runner too
	if wait := s.t.refused.wait(s.tenant, s.actor); wait > 0 {
		return s.fail(codeRateLimited, fmt.Sprintf("Too many calls in a row were refused. Wait %d seconds, and do not send the same call again.", int(wait.Seconds())+1))
	}
	var in running
	if err := decode(arguments, &in); err != nil {
		s.t.refused.note(s.tenant, s.actor, true)
		return s.invalid(RunSkillScript, err)
	}
	call := gate.Call{Tenant: s.tenant, Actor: s.actor, Skill: in.Skill, Script: in.Script, Live: live, Still: s.still}
	var wrong string
	if call.Arguments, wrong = in.arguments(); wrong == "" {
		call.Inputs, wrong = s.inputs(in.Inputs)
	}
	if wrong != "" {
		s.t.refused.note(s.tenant, s.actor, true)
		return s.fail(codeInvalid, wrong)
	}
	out, err := s.t.c.Runner.Run(ctx, call)
	denied, refused := errors.AsType[*gate.Denial](err)
	s.t.refused.note(s.tenant, s.actor, refused)
	if err != nil || tracon.Code(out, nil) == "unknown" {
		p := problemJSON{Status: tracon.Code(out, err), Message: tracon.ModelText(out, err)}
		if refused && denied.Gate == gate.NameGate {
			p.Names = s.scripts(ctx, in.Skill)
		}
		return failedCall(p, out)
	}
	return s.outcome(out)
}

// failedJSON is what is told of a call that failed: of one that was admitted, what
// proves it.
type failedJSON struct {
	problemJSON
	Call    string         `json:"call,omitempty"`
	Digest  *bundle.Digest `json:"digest,omitempty"` // of what ran, or was to
	Receipt *receiptJSON   `json:"receipt,omitempty"`
}

func failedCall(p problemJSON, out tracon.Outcome) Result {
	r := failed(p)
	if !out.Receipt.Valid() {
		return r
	}
	r.Structured = marshal(failedJSON{p, out.ID, &out.Digest, receiptOf(out)})
	return r
}

// arguments returns the one form that was used, or what is wrong.
func (in running) arguments() (_ json.RawMessage, wrong string) {
	switch {
	case in.Arguments != nil && in.ArgumentsJSON != "":
		return nil, "Give arguments or arguments_json, not both."
	case in.Arguments != nil:
		return marshal(in.Arguments), ""
	case in.ArgumentsJSON != "":
		return json.RawMessage(in.ArgumentsJSON), "" // the gate reads it strictly
	}
	return nil, ""
}

// inputs makes the files, or says what is wrong. Their names and sizes are the gates'
// business.
func (s *Session) inputs(list []input) (files []bundle.File, wrong string) {
	for i, in := range list {
		f := bundle.File{Path: in.Name}
		given := 0
		for _, p := range []*string{in.Text, in.Base64, in.Handle} {
			if p != nil {
				given++
			}
		}
		if given != 1 {
			return nil, fmt.Sprintf("Give inputs[%d] exactly one of text, base64 and handle.", i)
		}
		switch {
		case in.Text != nil:
			f.Data = []byte(*in.Text)
		case in.Base64 != nil:
			data, err := base64.StdEncoding.Strict().DecodeString(*in.Base64)
			if err != nil {
				return nil, fmt.Sprintf("The base64 of inputs[%d] cannot be read: use the standard alphabet, with its padding.", i)
			}
			f.Data = data
		default:
			kept, ok := s.t.kept.get(s.tenant, *in.Handle)
			if !ok {
				return nil, fmt.Sprintf("There is no file of the handle of inputs[%d]. It may be too old: run the script that wrote it again.", i)
			}
			f.Data = kept.Data
		}
		files = append(files, f)
	}
	return files, ""
}

// scripts returns the names that a model may use instead: the skill's scripts that may
// run, else the skills that have some.
func (s *Session) scripts(ctx context.Context, name string) []string {
	may, err := s.runnable(ctx)
	if err != nil {
		return nil
	}
	var names []string
	if k, err := s.t.c.Skills.Skill(ctx, s.tenant, name); err == nil {
		for _, sc := range k.Scripts {
			if may.may(name, sc.Path) {
				names = append(names, sc.Path)
			}
		}
	} else {
		for _, known := range s.names(ctx) {
			if may.any(known) {
				names = append(names, known)
			}
		}
	}
	slices.Sort(names)
	return names[:min(len(names), mostNames)]
}

// outcome is the answer for a script that an executor answered for.
func (s *Session) outcome(out tracon.Outcome) Result {
	j := ranJSON{
		problemJSON: problemJSON{Status: codeOK, Message: tracon.ModelText(out, nil)},
		Call:        out.ID, Digest: out.Digest, Truncated: out.Truncated, Replaced: out.Replaced, Notes: append([]string{}, out.Notes...), Seconds: out.Duration.Seconds(),
		Stdout: shown(out.Stdout, s.t.c.StreamBytes), Stderr: shown(out.Stderr, s.t.c.StreamBytes), Outputs: []outputJSON{},
	}
	if out.Receipt.Valid() {
		j.Receipt = receiptOf(out)
	}
	code := tracon.Code(out, nil)
	how := ""
	if n, ok := out.Ending.ExitCode(); ok {
		j.ExitCode = &n
		how = fmt.Sprintf("exited with code %d", n)
	}
	if n, ok := out.Ending.Signal(); ok {
		j.Signal = &n
		how = fmt.Sprintf("was killed by signal %d", n)
	}
	if code != "" {
		j.Status, j.TimedOut = code, code == "timed_out"
		how = "was stopped: " + code
	}

	var r Result
	room := s.t.c.ResourceBytes
	var b strings.Builder
	fmt.Fprintf(&b, "The script %s after %.2f s (call %s).\n", how, j.Seconds, out.ID)
	if j.Message != "" {
		b.WriteString(j.Message + "\n")
	}
	b.WriteString(j.Stdout.line("stdout"))
	b.WriteString(j.Stderr.line("stderr"))
	if out.Truncated {
		b.WriteString("The script wrote more than is kept.\n")
	}
	if out.Replaced {
		b.WriteString("Bytes that are no UTF-8 stand as U+FFFD above. A file that a script writes below outputs/ is kept as it is.\n")
		for _, raw := range []struct {
			name string
			of   *stream
			data []byte
		}{{"stdout", &j.Stdout, out.StdoutBytes}, {"stderr", &j.Stderr, out.StderrBytes}} {
			if utf8.Valid(raw.data) { // it stands above as it was
				continue
			}
			raw.of.Handle = s.t.kept.add(s.tenant, bundle.File{Path: raw.name, Data: raw.data})
			if raw.of.Handle != "" {
				fmt.Fprintf(&b, "%s with its bytes as they were: %d bytes, for the inputs of a next call, handle %s\n", raw.name, len(raw.data), raw.of.Handle)
			}
		}
	}
	for _, f := range out.Outputs {
		o := outputJSON{f.Path, len(f.Data), MediaType(f.Path, string(f.Data)), bundle.Sum(f.Data), s.t.kept.add(s.tenant, f)}
		j.Outputs = append(j.Outputs, o)
		fmt.Fprintf(&b, "output %s: %d bytes, %s, %s", Quote(o.Path), o.Size, o.MediaType, o.Digest)
		if o.Handle != "" {
			b.WriteString(", handle " + o.Handle)
		}
		b.WriteByte('\n')
		if len(f.Data) <= room {
			room -= len(f.Data)
			r.Files = append(r.Files, File{f.Path, o.Handle, o.MediaType, f.Data})
		}
	}
	for _, n := range j.Notes {
		b.WriteString("note: " + Quote(n) + "\n")
	}
	r.Structured, r.Text, r.Failed = marshal(j), b.String(), code != ""
	return r
}
