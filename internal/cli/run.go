package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/strictjson"
)

// callFlags are the words of a call, shared by run and explain.
type callFlags struct {
	args, stdin string
	in          []string
}

func (f *callFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.args, "args", "", "arguments as one JSON value")
	cmd.Flags().StringVar(&f.stdin, "stdin", "", "file with the arguments as one JSON value; - for standard input")
	cmd.Flags().StringArrayVar(&f.in, "in", nil, "input file or folder, as PATH or PATH=NAME (repeatable)")
	apart(cmd, "args", "stdin")
}

// callArgs takes SKILL SCRIPT [-- words].
func callArgs(cmd *cobra.Command, args []string) error {
	n := cmd.ArgsLenAtDash()
	if n < 0 {
		n = len(args)
	}
	if err := exactly("SKILL", "SCRIPT")(cmd, args[:n]); err != nil {
		if n > 2 {
			return hint(err, "a script's own arguments stand behind --")
		}
		return err
	}
	return nil
}

// build makes the call that the words mean.
func (f *callFlags) build(ctx context.Context, a *app, b backend, args []string) (gate.Call, error) {
	call := gate.Call{Tenant: b.Tenant(), Actor: a.who(), Script: args[1]}
	var err error
	if call.Skill, err = b.SkillName(ctx, args[0]); err != nil {
		return call, err
	}
	policy, err := b.Policy(ctx)
	if err != nil {
		return call, err
	}
	if call.Inputs, err = readInputs(f.in, policy.MaxInputs); err != nil {
		return call, err
	}
	words := args[2:]
	switch {
	case len(words) > 0 && (f.args != "" || f.stdin != ""):
		return call, errors.New("arguments stand behind --, or in --args or --stdin, not in two of them")
	case f.args != "":
		call.Arguments = json.RawMessage(f.args)
	case f.stdin != "":
		// One byte over the limit is enough for the gate to refuse it.
		if call.Arguments, err = a.readAll(f.stdin, gate.CeilingMaxArguments); err != nil {
			return call, fmt.Errorf("--stdin: %w", err)
		}
	case len(words) > 0:
		d, err := b.Declare(ctx, call.Skill, call.Script)
		if errors.Is(err, gate.ErrUnknown) || errors.Is(err, bundle.ErrContent) {
			return call, nil // the gates say what is amiss, and log it
		}
		if err != nil {
			return call, err
		}
		if call.Arguments, err = argumentsOf(d, words); err != nil {
			return call, err
		}
	}
	return call, strict(call.Arguments, policy.MaxArguments)
}

// strict refuses, as the gate does, what is no strict JSON: such a thing cannot even be
// sent to a server. What is longer than most is the gate's to refuse.
func strict(arguments json.RawMessage, most int) error {
	if len(arguments) == 0 || len(arguments) > most {
		return nil
	}
	if _, err := strictjson.Canonical(arguments, strictjson.Limits{}); err != nil {
		return &gate.Denial{Gate: gate.ArgumentsGate, Err: err, Remedy: "write one JSON value, such as '{\"value\":3}', in quotes that your shell leaves alone"}
	}
	return nil
}

func (a *app) runCmd() *cobra.Command {
	var f callFlags
	var yes bool
	var outDir string
	cmd := &cobra.Command{
		Use:   "run [flags] SKILL SCRIPT [-- ARGUMENT...]",
		Short: "Run a skill's script through every gate",
		Long: `Takes the call through every gate and runs the script only when each says yes.
SKILL is a folder (a word with a separator, or a folder that exists) or the name
of a known skill. SCRIPT is the exact path of the script in the skill.

What the script writes goes to standard output and standard error; one line about
what happened goes to standard error, or everything as one JSON value with --json.

Without a grant it shows what would run and asks, or, without a terminal, says
which command would grant it. --grant says yes beforehand; it never replaces a
grant of other content.

Exit codes: the script's own from 0 to 122; 123 for its own above that; 124 timed
out; 125 Tracon could not; 126 refused by a gate; 128+n killed by signal n, or
130 and 143 when you stop it.`,
		Example: `  tracon run --grant examples/skills/unit-converter scripts/convert.py -- --value 26.2 --factor 1.60934
  tracon run csv-summary scripts/summarize.py --in sales.csv --out results
  tracon run unit-converter scripts/convert.py --args '{"value":26.2,"factor":1.60934}' --json`,
		Args:              callArgs,
		ValidArgsFunction: a.completeSkill,
		RunE: func(cmd *cobra.Command, args []string) error {
			at := func(f func(ctx context.Context, b backend) error) error {
				return a.atSkill(cmd, daemon.Make, args[:1], f)
			}
			if yes {
				at = func(f func(ctx context.Context, b backend) error) error {
					return a.atHere(cmd, daemon.Make, "--grant is for the data folder of this machine", f)
				}
			}
			err := at(func(ctx context.Context, b backend) error { return a.run(ctx, b, &f, args, yes, outDir) })
			if _, ok := errors.AsType[*exitWith](err); err != nil && !ok {
				err = &exitWith{exitTracon, err}
				if a.json {
					call := gate.Call{Tenant: a.tenant, Skill: args[0], Script: args[1]}
					return errors.Join(a.printJSON(toOutcomeJSON(call, ended{err: notStarted(err)})), err)
				}
			}
			return err
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&yes, "grant", false, "grant the script as it is now, and switch on what is needed on a laptop")
	cmd.Flags().StringVar(&outDir, "out", "", "folder for the files that the script returns")
	return cmd
}

func (a *app) run(ctx context.Context, b backend, f *callFlags, args []string, yes bool, outDir string) error {
	call, err := f.build(ctx, a, b, args)
	if d, ok := errors.AsType[*gate.Denial](err); ok {
		return a.report(ctx, b, args[0], call, ended{out: ran{model: "The arguments do not fit: " + d.Err.Error()}, err: err}, shown{})
	}
	if err != nil {
		return err
	}
	folder, err := openOut(outDir)
	if err != nil {
		return err
	}
	defer folder.close()
	if here, ok := b.(*local); ok {
		if err := a.offer(ctx, here.h, args[0], call, yes); err != nil {
			return here.remedied(err)
		}
	}
	followed := a.follow(&call)
	out, err := b.Run(ctx, call)
	return a.report(ctx, b, args[0], call, ended{out, err, outDir, folder.write(out.Outputs)}, followed())
}

// follow shows output while the script runs, where a person watches. It returns
// what waits for the last of it, and tells what of each stream was shown.
func (a *app) follow(call *gate.Call) func() shown {
	if !a.outTTY || a.json {
		return func() shown { return shown{} }
	}
	call.Live = gate.NewLive(0)
	var wg sync.WaitGroup
	var all shown
	wg.Go(func() {
		for c := range call.Live.Chunks() {
			w, seen := a.out, &all.stdout
			if c.Stream == gate.Stderr {
				w, seen = a.err, &all.stderr
			}
			*seen = append(*seen, c.Data...)
			io.WriteString(w, harmless(string(c.Data), true))
		}
	})
	return func() shown {
		call.Live.Close()
		wg.Wait()
		return all
	}
}

// shown is what was shown of the streams while a script ran.
type shown struct{ stdout, stderr []byte }

// rest is what is to be shown of a stream yet: all of it where something in between was
// lost, or an executor showed nothing.
func rest(whole string, seen []byte) string {
	text := strings.ToValidUTF8(string(seen), "\uFFFD")
	if left, ok := strings.CutPrefix(whole, text); ok {
		return left
	}
	if strings.HasPrefix(text, whole) { // within a character, which was cut
		return ""
	}
	return whole
}

// ended is what came of a call, and of the files that the script returned.
type ended struct {
	out    ran
	err    error
	outDir string
	lost   map[string]error // why a file could not be written into outDir, by its path
}

// codeNotWritten is the code of a call whose files could not all be written.
const codeNotWritten = "outputs_not_written"

// exit is the exit code. Files that are lost make it Tracon's, where the call
// itself came to its end.
func (e ended) exit() int {
	if e.err == nil && len(e.lost) > 0 {
		return exitTracon
	}
	return runExit(e.out.Outcome, e.err)
}

// loss says which files were not written and why, or is nil.
func (e ended) loss() error {
	if len(e.lost) == 0 {
		return nil
	}
	var parts []string
	for i, path := range slices.Sorted(maps.Keys(e.lost)) {
		if i == maxNamed {
			parts = append(parts, fmt.Sprintf("and %d more", len(e.lost)-i))
			break
		}
		parts = append(parts, path+": "+e.lost[path].Error())
	}
	return fmt.Errorf("not written to %s, and lost: %s", e.outDir, strings.Join(parts, "; "))
}

const lossRemedy = "the script has run, and each run counts; make room or the folder writable, then run it again if it may run twice"

// outcomeJSON is what came of a call, as --json writes it.
type outcomeJSON struct {
	ID              string       `json:"id"`
	Tenant          string       `json:"tenant"`
	Skill           string       `json:"skill"`
	Script          string       `json:"script"`
	Code            string       `json:"code"` // "" for a script that ran to its end; see [tracon.Code] and [coded]
	ExitCode        *int         `json:"exitCode"`
	Signal          *int         `json:"signal"`
	TimedOut        bool         `json:"timedOut"`
	Abandoned       bool         `json:"abandoned"`
	Stdout          string       `json:"stdout"`
	Stderr          string       `json:"stderr"`
	Truncated       bool         `json:"truncated"`
	Replaced        bool         `json:"replaced"`
	Stdout64        []byte       `json:"stdoutBase64,omitempty"` // where bytes were replaced: those of stdout as they were, secrets masked
	Stderr64        []byte       `json:"stderrBase64,omitempty"` // the same of stderr
	Outputs         []outputJSON `json:"outputs"`
	Notes           []string     `json:"notes"`
	DurationSeconds float64      `json:"durationSeconds"`
	WaitedSeconds   float64      `json:"waitedSeconds"`
	Digest          string       `json:"digest,omitempty"`
	Grant           string       `json:"grant,omitempty"`
	Executor        string       `json:"executor,omitempty"`
	Tier            string       `json:"tier,omitempty"`
	Audit           *auditJSON   `json:"audit,omitempty"`
	Error           *errorJSON   `json:"error,omitempty"`
}

type outputJSON struct {
	Path    string        `json:"path"`
	Size    int           `json:"size"`
	Digest  bundle.Digest `json:"digest"`
	Written bool          `json:"written"` // into the folder of --out
}

type auditJSON struct {
	Index   uint64 `json:"index"`
	Hash    string `json:"hash"`
	Receipt string `json:"receipt,omitempty"` // proves the entry to anybody: see `tracon audit receipt check`
}

type errorJSON struct {
	Code    string       `json:"code"`
	Reason  string       `json:"reason"` // for the operator
	Remedy  string       `json:"remedy,omitempty"`
	Model   string       `json:"model"` // all that a model would read
	Changes []changeJSON `json:"changes,omitempty"`
}

func toOutcomeJSON(call gate.Call, e ended) outcomeJSON {
	out, err := e.out, e.err
	j := outcomeJSON{ID: out.ID, Tenant: call.Tenant, Skill: call.Skill, Script: call.Script, Code: tracon.Code(out.Outcome, err),
		TimedOut: out.Ending.TimedOut(), Abandoned: out.Abandoned, Stdout: out.Stdout, Stderr: out.Stderr,
		Truncated: out.Truncated, Replaced: out.Replaced, Stdout64: out.StdoutBytes, Stderr64: out.StderrBytes, Outputs: []outputJSON{}, Notes: append([]string{}, out.Notes...),
		DurationSeconds: out.Duration.Seconds(), WaitedSeconds: out.Waited.Seconds(),
		Grant: out.GrantID, Executor: out.Standing.Executor, Tier: string(out.Standing.Tier), Audit: out.audit}
	if !out.Digest.IsZero() {
		j.Digest = out.Digest.String()
	}
	if n, ok := out.Ending.ExitCode(); ok {
		j.ExitCode = &n
	}
	if n, ok := out.Ending.Signal(); ok {
		j.Signal = &n
	}
	for _, f := range out.Outputs {
		_, lost := e.lost[f.Path]
		j.Outputs = append(j.Outputs, outputJSON{f.Path, len(f.Data), bundle.Sum(f.Data), e.outDir != "" && !lost})
	}
	if c, ok := errors.AsType[*coded](err); ok {
		j.Code = string(c.code)
	}
	if err != nil || j.Code != "" {
		j.Error = &errorJSON{Code: j.Code, Model: out.model, Reason: out.Ending.String()}
		if err != nil {
			j.Error.Reason = err.Error()
		}
		if h, ok := errors.AsType[*hintError](err); ok {
			j.Error.Remedy = h.hint
		}
		if d, ok := errors.AsType[*gate.Denial](err); ok {
			j.Error.Reason, j.Error.Remedy = d.Err.Error(), d.Remedy
		}
	} else if loss := e.loss(); loss != nil {
		j.Code = codeNotWritten
		j.Error = &errorJSON{Code: j.Code, Reason: loss.Error(), Remedy: lossRemedy}
	}
	return j
}

// report shows what came of the call and returns the exit code as an error.
func (a *app) report(ctx context.Context, b backend, skill string, call gate.Call, e ended, seen shown) error {
	out, err, code := e.out, e.err, e.exit()
	if i, ok := errors.AsType[interrupted](context.Cause(ctx)); ok && errors.Is(err, tracon.ErrCancelled) {
		code = exitSignal + int(i.signal)
	}
	var exit error
	if code != 0 {
		exit = &exitWith{code, nil}
	}
	denial, refused := errors.AsType[*gate.Denial](err)
	if a.json {
		j := toOutcomeJSON(call, e)
		if refused && denial.Gate == gate.PinGate {
			j.Error.Changes, _ = a.changes(context.WithoutCancel(ctx), b, call)
		}
		return errors.Join(a.printJSON(j), exit)
	}
	a.print(a.out, rest(out.Stdout, seen.stdout))
	a.print(a.err, rest(out.Stderr, seen.stderr))
	for _, n := range out.Notes {
		a.say("tracon: note: %s", n)
	}
	if len(out.Outputs) > 0 {
		a.sayOutputs(e)
	}
	switch {
	case refused:
		a.sayRefused(context.WithoutCancel(ctx), b, skill, call, denial)
	case err != nil:
		a.say("tracon: %s", strings.TrimPrefix(err.Error(), "tracon: "))
		if h, ok := errors.AsType[*hintError](err); ok {
			a.say("  %s", h.hint)
		}
	default:
		cut := ""
		if out.Truncated {
			cut = ", output cut at the limit"
		}
		if out.Replaced {
			cut += ", bytes that are not UTF-8 replaced"
		}
		a.say("tracon: %s %s, %s: %s in %s%s (call %s)", call.Skill, call.Script, walls(out.Standing), out.Ending, round(out.Duration), cut, out.ID)
	}
	return exit
}

// walls says in a few words what stood around the script.
func walls(s gate.Standing) string {
	if s.Tier == "process" {
		return "no sandbox (executor " + s.Executor + ")"
	}
	return "in the " + string(s.Tier) + " tier (executor " + s.Executor + ")"
}

// print writes what a script wrote: as it is to a file or a pipe, harmless to a
// terminal, with a line feed behind it there.
func (a *app) print(w io.Writer, text string) {
	if a.outTTY {
		text = harmless(text, true)
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
	}
	io.WriteString(w, text)
}

// maxNamed is how many files one line names.
const maxNamed = 8

func (a *app) sayOutputs(e ended) {
	var names []string
	there := len(e.out.Outputs) - len(e.lost)
	for _, f := range e.out.Outputs {
		if _, lost := e.lost[f.Path]; lost {
			continue
		}
		if len(names) == maxNamed {
			names = append(names, fmt.Sprintf("and %d more", there-maxNamed))
			break
		}
		names = append(names, fmt.Sprintf("%s (%d bytes)", f.Path, len(f.Data)))
	}
	switch {
	case e.outDir == "":
		a.say("tracon: files returned and dropped: %s; --out DIR keeps them", strings.Join(names, ", "))
	case there > 0:
		a.say("tracon: files in %s: %s", e.outDir, strings.Join(names, ", "))
	}
	if loss := e.loss(); loss != nil {
		a.say("tracon: %s\n  %s", loss, lossRemedy)
	}
}

// sayRefused says which gate refused, why, and what to do.
func (a *app) sayRefused(ctx context.Context, b backend, skill string, call gate.Call, d *gate.Denial) {
	a.say("tracon: refused by gate %s: %s", d.Gate, d.Err)
	words := quoteWords(skill, call.Script)
	switch d.Gate {
	case gate.PinGate:
		if changes, err := a.changes(ctx, b, call); err == nil {
			a.printChanges(a.err, changes, 40)
		}
		a.say("  tracon grant review %s   shows it all; grant it again with the command that it names", words)
	case gate.GrantGate:
		a.say("  tracon grant review %s   shows what would run, and the command that grants it", words)
		if b.GrantsAtOnce() {
			a.say("  tracon run --grant %s   grants it as it is and runs it", words)
		}
	case gate.SwitchGate, gate.InterpreterGate:
		if strings.Contains(d.Remedy, "`") { // it names its command, and no other one helps
			a.say("  %s", d.Remedy)
		} else {
			a.say("  %s: %s", d.Remedy, b.OpenHint())
		}
	default:
		a.say("  %s", d.Remedy)
	}
	a.say("  tracon explain %s   asks every gate", words)
}

// changes is what differs from what was granted.
func (a *app) changes(ctx context.Context, b backend, call gate.Call) ([]changeJSON, error) {
	_, changes, err := b.Difference(ctx, grant.Ref{Tenant: b.Tenant(), Skill: call.Skill, Script: call.Script})
	return changes, err
}

// quoteWords writes words as a shell takes them.
func quoteWords(words ...string) string {
	for i, w := range words {
		if w == "" || strings.ContainsFunc(w, func(r rune) bool {
			return !(r == '-' || r == '_' || r == '.' || r == '/' || r == ':' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
		}) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
