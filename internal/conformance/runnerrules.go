package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/id"
	"github.com/tracon-go/tracon/wire"
)

// A runnerRule is one rule of the wire.
type runnerRule struct {
	name, rule string // the rule is what a failure says first
	check      func(*asking) error
}

func sum(s string) string { return bundle.Sum([]byte(s)).Hex() }

// members are those of R28, by their names.
func (a *asking) members(source string) map[string]any {
	return map[string]any{"tenant": a.r.Tenant, "runtime": a.runtime, "source": source, "sourceSha256": sum(source), "standardInput": "in", "timeoutSeconds": 30, "maxOutputBytes": 65536}
}

func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("conformance: " + err.Error()) // what is ours can be written
	}
	return b
}

// echoes holds that the body runs the program that echoes, with "in".
func (a *asking) echoes(body []byte) error {
	got, err := a.answer(body)
	if err != nil {
		return err
	}
	return expect(got, 7, "in", "err")
}

// plainRules are those of R28, which every runner keeps.
var plainRules = []runnerRule{
	{"run", "R28, R27: a script gets its input, and both streams and the exit code come back", func(a *asking) error {
		return a.echoes(encoded(a.members(a.program.echo)))
	}},
	{"text", "R28: any text goes through", func(a *asking) error {
		m := a.members(a.program.echo)
		m["standardInput"] = "ä \u2028 \U0001F600 \" \\ \n"
		got, err := a.answer(encoded(m))
		if err != nil {
			return err
		}
		return expect(got, 7, m["standardInput"].(string), "err")
	}},
	{"PascalCase", "R28: member names are read without regard to case", func(a *asking) error {
		m := map[string]any{}
		for name, v := range a.members(a.program.echo) {
			m[strings.ToUpper(name[:1])+name[1:]] = v
		}
		return a.echoes(encoded(m))
	}},
	{"unknown members", "R28: members that are not known are ignored", func(a *asking) error {
		m := a.members(a.program.echo)
		m["somethingElse"] = map[string]any{"x": []int{1}}
		return a.echoes(encoded(m))
	}},
	{"upper-case digest", "R28: the digest is read in either case", func(a *asking) error {
		m := a.members(a.program.echo)
		m["sourceSha256"] = strings.ToUpper(m["sourceSha256"].(string))
		return a.echoes(encoded(m))
	}},
	{"output limit", "R19, R28: at most maxOutputBytes of a stream are kept, and a cut is told", func(a *asking) error {
		m := a.members(a.program.loud)
		m["maxOutputBytes"] = 1000
		got, err := a.answer(encoded(m))
		if err == nil && (len(got.StandardOutput) > 1000 || len(got.StandardOutput) == 0 || !got.Truncated) {
			err = fmt.Errorf("got %d bytes, truncated %t; want at most 1000, truncated", len(got.StandardOutput), got.Truncated)
		}
		return err
	}},
	{"timeout", "R23, R28: at the timeout, which may have a fraction, the script is stopped and has no exit code", func(a *asking) error {
		m := a.members(a.program.slow)
		m["timeoutSeconds"] = 1.5
		got, err := a.answer(encoded(m))
		if err == nil && (!got.TimedOut || got.ExitCode != nil) {
			err = fmt.Errorf("timed out %t, exit code %s", got.TimedOut, text(got.ExitCode))
		}
		return err
	}},
	{"wrong digest", "R28: a source of another digest is refused", func(a *asking) error {
		m := a.members(a.program.echo)
		m["sourceSha256"] = sum("another")
		return a.refuses(encoded(m), a.r.Key)
	}},
	{"duplicate member", "R28: a name that stands twice once its case is folded is refused", func(a *asking) error {
		body := encoded(a.members(a.program.echo))
		return a.refuses([]byte(`{"TENANT":"other",`+string(body[1:])), a.r.Key)
	}},
	{"unknown runtime", "R11: a runtime that is not on the list is refused", func(a *asking) error {
		m := a.members(a.program.echo)
		m["runtime"] = "no-such-runtime"
		return a.refuses(encoded(m), a.r.Key)
	}},
	{"path for a runtime", "R28: a path is no runtime", func(a *asking) error {
		m := a.members(a.program.echo)
		m["runtime"] = "/bin/sh"
		return a.refuses(encoded(m), a.r.Key)
	}},
	{"not JSON", "R29: what is no JSON, or not all of it, is refused", func(a *asking) error {
		body := encoded(a.members(a.program.echo))
		return errors.Join(a.refuses([]byte("<run/>"), a.r.Key), a.refuses(nil, a.r.Key), a.refuses(body[:len(body)-1], a.r.Key))
	}},
	{"credential", "R28: without the key nothing runs", func(a *asking) error {
		if a.r.Key == "" {
			return nil // nobody says that it asks for one
		}
		body := encoded(a.members(a.program.echo))
		return errors.Join(a.refuses(body, ""), a.refuses(body, "not-"+a.r.Key))
	}},
}

// more is a run of ours, whose closure has the files besides the script.
func (a *asking) more(source string, files ...bundle.File) (wire.Run, bundle.Bundle, error) {
	script := "main." + a.program.extension
	b, err := bundle.New(append([]bundle.File{{Path: script, Data: []byte(source)}}, files...), nil, bundle.Limits{})
	if err != nil {
		return wire.Run{}, b, err
	}
	run := a.run("")
	run.SourceSHA256 = sum(source)
	run.More = &wire.More{ID: id.New(), Actor: "conformance", Skill: "conformance", Script: script, Extension: a.program.extension, Mode: "none",
		Bundle: b.Digest().String(), Files: wire.FilesOf(b.Files())}
	return run, b, nil
}

// answered sends a run of ours, and holds that the answer is of it.
func (a *asking) answered(run wire.Run) (wire.Answer, error) {
	body, err := run.Encode()
	if err != nil {
		return wire.Answer{}, err
	}
	got, err := a.answer(body)
	switch {
	case err != nil:
		return got, err
	case got.More == nil:
		return got, errors.New("the answer lacks the member tracon")
	case got.More.ID != run.More.ID || got.More.Bundle != run.More.Bundle:
		return got, fmt.Errorf("the answer is of run %.40q and closure %.80q", got.More.ID, got.More.Bundle)
	}
	return got, nil
}

// ourRules are those of a runner that says that it knows [wire.Protocol].
var ourRules = []runnerRule{
	{"closure", "R30, M01: the files of a closure lie beside the script, and the answer names the run and the closure", func(a *asking) error {
		run, _, err := a.more(a.program.sibling, bundle.File{Path: "lib", Data: []byte("beside")})
		if err != nil {
			return err
		}
		got, err := a.answered(run)
		if err != nil {
			return err
		}
		return expect(got, 0, "beside", "")
	}},
	{"words", "B4: words come after the script on its command line", func(a *asking) error {
		run, _, err := a.more(a.program.words)
		if err != nil {
			return err
		}
		run.More.Mode, run.More.Words = "argv", []string{"a b", "--x", "ä"}
		got, err := a.answered(run)
		if err != nil {
			return err
		}
		return expect(got, 0, "a b\n--x\nä\n", "")
	}},
	{"files", "B5: input files lie below inputs, and what is written below outputs comes back", func(a *asking) error {
		run, _, err := a.more(a.program.out)
		if err != nil {
			return err
		}
		run.More.Inputs, run.More.MaxOutputsBytes, run.More.MaxOutputFiles = []wire.File{{Path: "b.txt", Data: []byte("\x00file")}}, 1<<10, 4
		got, err := a.answered(run)
		if err == nil && (len(got.More.Outputs) != 1 || got.More.Outputs[0].Path != "a.txt" || string(got.More.Outputs[0].Data) != "\x00file") {
			err = fmt.Errorf("got exit code %s, %d files, %.200q", text(got.ExitCode), len(got.More.Outputs), got.StandardError)
		}
		return err
	}},
	{"upload", "R30: a closure is uploaded once, found by its digest, and run by it; one that is not there is told, and not started", func(a *asking) error {
		run, b, err := a.more(a.program.sibling, bundle.File{Path: "lib", Data: []byte(id.New())})
		if err != nil {
			return err
		}
		lib, _, _ := b.Text("lib")
		run.More.Files = nil
		if err := a.tells(run, "bundle_unknown"); err != nil {
			return err
		}
		closure, err := wire.ClosureOf(b).Encode()
		if err != nil {
			return err
		}
		path := "bundles/" + b.Digest().String()
		for _, step := range []struct {
			method string
			body   []byte
			found  bool
		}{{http.MethodHead, nil, false}, {http.MethodPut, closure, true}, {http.MethodHead, nil, true}} {
			status, _, err := a.r.send(a.ctx, step.method, path, step.body, a.r.Key)
			if err != nil || (status/100 == 2) != step.found {
				return fmt.Errorf("%s bundles: status %d, %w", step.method, status, err)
			}
		}
		got, err := a.answered(run)
		if err != nil {
			return err
		}
		return expect(got, 0, lib, "")
	}},
	{"upload of another digest", "B1: a closure is not kept under a digest that is not its own", func(a *asking) error {
		_, b, err := a.more(a.program.echo)
		if err != nil {
			return err
		}
		closure, err := wire.ClosureOf(b).Encode()
		if err != nil {
			return err
		}
		status, _, err := a.r.send(a.ctx, http.MethodPut, "bundles/"+bundle.Sum([]byte(id.New())).String(), closure, a.r.Key)
		if err == nil && status/100 == 2 {
			err = fmt.Errorf("status %d", status)
		}
		return err
	}},
	{"closure of another digest", "R10, B1: a closure that has not the digest is refused, and not started", func(a *asking) error {
		run, _, err := a.more(a.program.echo)
		if err != nil {
			return err
		}
		run.More.Bundle = bundle.Sum([]byte("another")).String()
		return a.tells(run, "pin")
	}},
	{"tier", "M09: a run that wants a higher tier than there is is refused, and not started", func(a *asking) error {
		if a.r.Info.Tier == "vm" {
			return nil
		}
		run, _, err := a.more(a.program.echo)
		if err != nil {
			return err
		}
		run.More.Tier = "vm"
		return a.tells(run, "tier")
	}},
	{"limits", "R30: more than the runner gives is refused, and not started", func(a *asking) error {
		run, _, err := a.more(a.program.echo)
		if err != nil {
			return err
		}
		run.TimeoutSeconds = a.r.Info.Limits.TimeoutSeconds + 1
		return a.tells(run, "arguments")
	}},
}
