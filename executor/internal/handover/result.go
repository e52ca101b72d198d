package handover

import (
	"fmt"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/wire"
)

// ErrAnswer is wrapped by the error for an answer that cannot be the request's. The
// script may have run (M06).
var ErrAnswer = fmt.Errorf("%w: the runner's answer does not hold", executor.ErrUnknown)

// Bounds of the notes of an answer, which people and models read: so that a runner
// speaks to nobody in this system's voice each begins with saying.
const (
	maxNotes = 8
	maxNote  = 256 // bytes of one, without saying
	saying   = "the runner says: "
)

// Result returns what the answer says of the request. Nothing in it is trusted: it
// is of this run and of this closure, within the request's limits, and its files
// are those that were asked for.
//
// # Errors
//
// One that wraps ErrAnswer.
func Result(req executor.Request, a wire.Answer) (executor.Result, error) {
	bad := func(format string, args ...any) (executor.Result, error) {
		return executor.Result{}, fmt.Errorf("%w: "+format, append([]any{ErrAnswer}, args...)...)
	}
	m := a.More
	switch {
	case m == nil:
		return bad("it lacks the member that tells of the run")
	case m.ID != req.ID():
		return bad("it is of another run")
	case m.Bundle != req.Digest().String():
		return bad("it is of another closure")
	}
	if err := a.Check(); err != nil {
		return bad("%w", err)
	}
	for _, name := range req.RequireWalls() {
		if !stands(m.Walls, name) {
			return bad("it does not say that the wall %q stands, which was asked for", name)
		}
	}
	res := executor.Result{Ending: ending(m.Ending), Truncated: a.Truncated}
	if res.Ending.IsZero() {
		return bad("it has no ending")
	}
	var cut bool
	stdout, stderr := a.Streams()
	res.Stdout, cut = clip(stdout, req.MaxOutputBytes())
	res.Truncated = res.Truncated || cut
	res.Stderr, cut = clip(stderr, req.MaxOutputBytes())
	res.Truncated = res.Truncated || cut
	if err := files(req, m.Outputs); err != nil {
		return bad("%w", err)
	}
	res.Outputs = wire.Files(m.Outputs)
	for i, note := range m.Notes {
		if i == maxNotes {
			break
		}
		res.Notes = append(res.Notes, saying+strings.ToValidUTF8(note[:min(len(note), maxNote)], ""))
	}
	if m.PostureDigest != "" {
		d, err := bundle.ParseDigest(m.PostureDigest)
		if err != nil {
			return bad("its posture's digest is none")
		}
		res.PostureDigest = d
	}
	return res, nil
}

// stands reports whether the wall is told of, and stands wherever it is.
func stands(walls []wire.Wall, name string) (yes bool) {
	for _, w := range walls {
		if w.Name == name {
			if !w.Stands {
				return false
			}
			yes = true
		}
	}
	return yes
}

// files holds that the files are few and small enough, and that their paths are
// ones that the request asked for.
func files(req executor.Request, list []wire.File) error {
	bytes, most := req.MaxOutputs()
	if len(list) > most || len(list) > 0 && bytes <= 0 {
		return fmt.Errorf("it has %d files, at most %d were asked for", len(list), most)
	}
	if len(list) == 0 {
		return nil
	}
	// A bundle's rules for names: relative, plain, no twins.
	if _, err := bundle.New(wire.Files(list), nil, bundle.Limits{FileBytes: bytes, TotalBytes: bytes, Files: most}); err != nil {
		return fmt.Errorf("its files: %w", err)
	}
	// No pattern is for what lies below inputs/: of what the script changed or added there
	// each executor returns all (case 39a), so a script alone could return what a runner
	// that lies could. The bounds and the rules for names above hold for it too.
	patterns := req.OutputPatterns()
	for _, f := range list {
		if !strings.HasPrefix(f.Path, "inputs/") && !gate.MatchOutput(patterns, f.Path) {
			return fmt.Errorf("it has the file %.80q, which nobody asked for", f.Path)
		}
	}
	return nil
}

func clip(b []byte, most int) ([]byte, bool) {
	if len(b) > most {
		return b[:most], true
	}
	return b, false
}

// ending is the zero Ending for what is none.
func ending(e wire.Ending) executor.Ending {
	switch e.Kind {
	case "exited":
		return executor.Exited(e.Code)
	case "signaled":
		return executor.Signaled(e.Signal)
	case "timed_out":
		return executor.Expired()
	case "out_of_memory":
		return executor.OutOfMemory()
	case "policy_violation":
		return executor.PolicyViolation()
	case "output_flood":
		return executor.OutputFlood()
	}
	return executor.Ending{}
}
