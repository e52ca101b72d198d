package handover

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/wire"
)

// Run returns what to ask of a runner that knows [wire.Protocol]. A closure of at
// most inline bytes travels within it. The tier is the one that the gates took the
// executor to stand at, and the walls are those that the host and the policy ask for:
// a runner that stands lower, or where one does not stand, must refuse. The ticket is
// left out: it is signed over the rest.
//
// # Errors
//
// One that wraps executor.ErrUnavailable where the request cannot be asked for:
// its interpreter is a path of this host, or something is not of the wire's form.
func Run(req executor.Request, inline int) (wire.Run, error) {
	in := req.Interpreter()
	if in.Name == "" {
		return wire.Run{}, fmt.Errorf("%w: the allow-list's entry %q is a path of this host; for a runner it is the name of a runtime, such as python-3.12", executor.ErrUnavailable, req.Extension())
	}
	m := &wire.More{
		ID: req.ID(), Actor: req.Actor(), Grant: req.GrantID(), Skill: req.Skill(), Script: req.Script(), Extension: req.Extension(),
		Mode: string(req.Mode()), Bundle: req.Digest().String(), Words: req.Words(), Module: req.Module(),
		Inputs: wire.FilesOf(req.Inputs().Files()), OutputPatterns: req.OutputPatterns(), Memory: req.Memory(), Processes: req.Processes(),
		Network: string(req.Network()), Tier: string(req.Standing().Tier), RequireWalls: req.RequireWalls(),
	}
	m.MaxOutputsBytes, m.MaxOutputFiles = req.MaxOutputs()
	environment := req.Environment()
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		m.Environment = append(m.Environment, wire.Variable{Name: name, Value: environment[name]})
	}
	r := wire.Run{
		Tenant: req.Tenant(), Runtime: in.Name, SourceSHA256: req.ScriptDigest().Hex(),
		TimeoutSeconds: req.Timeout().Seconds(), MaxOutputBytes: req.MaxOutputBytes(), More: m,
	}
	if stdin := req.Stdin(); utf8.Valid(stdin) {
		r.StandardInput = string(stdin)
	} else {
		m.StandardInput64 = stdin
	}
	if _, size := req.Bundle().Size(); size <= int64(inline) {
		m.Files, m.Declaration = wire.FilesOf(req.Bundle().Files()), req.Bundle().Declaration()
	}
	if err := r.Check(); err != nil {
		return wire.Run{}, fmt.Errorf("%w: %w", executor.ErrUnavailable, err)
	}
	return r, nil
}
