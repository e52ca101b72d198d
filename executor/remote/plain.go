package remote

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/wire"
)

// skillFile is read by a model, not by scripts: every skill has it, so it is none of
// the files that a script needs beside it.
const skillFile = "SKILL.md"

// plain has the script run by a runner that knows the members of R28 alone.
func (e *Executor) plain(ctx context.Context, req executor.Request) (executor.Result, error) {
	run, err := plainRun(req)
	if err == nil && e.c.Signer != nil {
		err = errors.New("the runner takes no tickets, and remote_ticket_key says that they are sent")
	}
	if err != nil {
		return executor.Result{}, &Error{Kind: Unsendable, Err: err}
	}
	a, err := e.post(ctx, req, run, false)
	if err != nil {
		return executor.Result{}, err
	}
	res := executor.Result{Ending: executor.Expired(), Truncated: a.Truncated}
	if !a.TimedOut {
		res.Ending = executor.Exited(*a.ExitCode) // ReadAnswer holds that it is there
	}
	for _, s := range []struct {
		to   *[]byte
		text string
	}{{&res.Stdout, a.StandardOutput}, {&res.Stderr, a.StandardError}} {
		*s.to = []byte(s.text)
		if most := req.MaxOutputBytes(); len(*s.to) > most {
			*s.to, res.Truncated = (*s.to)[:most], true
		}
	}
	return res, nil
}

// plainRun returns the run in the members of R28, or says what it needs besides.
func plainRun(req executor.Request) (wire.Run, error) {
	beside := 0
	for _, f := range req.Bundle().Files() {
		if f.Path != req.Script() && f.Path != skillFile {
			beside++
		}
	}
	inputs, _ := req.Inputs().Size()
	name, source, stdin := req.Interpreter().Name, req.Content(), req.Stdin()
	for _, n := range []struct {
		needs bool
		what  string
	}{
		{name == "", fmt.Sprintf("the allow-list's entry %q to be the name of a runtime, such as runtime:python-3.12, and no path of this host", req.Extension())},
		{beside > 0, fmt.Sprintf("%d files beside the script", beside)},
		{req.Mode() != gate.Stdin && req.Mode() != gate.None || len(req.Words()) > 0, "arguments on its command line"},
		{req.Module() != "", "to be started as a module"},
		{inputs > 0, "input files"},
		{len(req.OutputPatterns()) > 0, "output files"},
		{len(req.Environment()) > 0, "variables in its environment"},
		{req.Network() != "" && req.Network() != gate.NoNetwork, "a network"},
		{req.Standing().Tier != grant.Process, "a tier that the runner does not tell of"},
		{len(req.RequireWalls()) > 0, "walls that the runner does not tell of"},
		{!utf8.Valid(source) || len(source) == 0, "a source that is not UTF-8, or empty"},
		{!utf8.Valid(stdin), "standard input that is not UTF-8"},
	} {
		if n.needs {
			return wire.Run{}, fmt.Errorf("the run needs %s, and the runner knows the plain wire alone", n.what)
		}
	}
	return wire.Run{
		Tenant: req.Tenant(), Runtime: name, Source: string(source), SourceSHA256: req.ScriptDigest().Hex(), StandardInput: string(stdin),
		TimeoutSeconds: req.Timeout().Seconds(), MaxOutputBytes: req.MaxOutputBytes(),
	}, nil
}
