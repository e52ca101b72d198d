package gatecase

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

// A Source is one skill in memory.
type Source struct {
	Files       []bundle.File
	Declaration string            // JSON; see script
	Scripts     []string          // file scripts, by path
	Stored      []string          // scripts that are stored ones, by name
	Tenants     func(string) bool // who knows it; nil: everybody
	Gone        bool              // it vanished since it was looked up
	Lax         bool              // it is read without regard to limits
}

type script struct {
	Module  string
	Outputs []string
	Mode    gate.Mode            `json:"mode"`
	Schema  json.RawMessage      `json:"schema,omitempty"`
	Flags   map[string]gate.Flag `json:"flags,omitempty"`
	Seconds float64              `json:"seconds,omitempty"`
}

// Skills is a gate.Contents and a gate.Declarer over skills in memory. It looks
// up by exact bytes and reads only what is in the bundle.
type Skills struct{ skills map[string]*Source }

var (
	_ gate.Contents = (*Skills)(nil)
	_ gate.Declarer = (*Skills)(nil)
)

const declaration = `{
	"scripts/run.py":   {"mode": "argv", "schema": {"type": "array", "items": {"type": "string"}}},
	"scripts/free.py":  {"mode": "argv"},
	"scripts/stdin.py": {"mode": "stdin", "schema": {"type": "object", "additionalProperties": false, "required": ["value"], "properties":
		{"value": {"type": "integer"}, "unit": {"type": "string", "enum": ["km", "mile"]}, "tenant": {"type": "string"}}}},
	"scripts/open.py":  {"mode": "stdin"},
	"scripts/flags.py": {"mode": "flags", "flags": {"short": {"Flag": "-s"}, "file": {"Position": 1}}},
	"scripts/none.py":  {"mode": "none"},
	"scripts/run":      {"mode": "argv"},
	"scripts/odd":      {"mode": "argv"},
	"scripts/UP.PY":    {"mode": "argv"},
	"scripts/x.js":     {"mode": "argv"},
	"scripts/x.rb":     {"mode": "argv"},
	"scripts/é.py":     {"mode": "argv"},
	"stored":           {"mode": "argv"},
	"stored.py":        {"mode": "argv"}
}`

// NewSkills returns the skill "unit-converter", which everybody knows, the skill
// "private", which only the tenant "other" knows, and the skill "second", whose
// script has a name of its own.
func NewSkills() *Skills {
	s := &Skills{map[string]*Source{}}
	files := []bundle.File{
		{Path: "SKILL.md", Data: []byte("---\nname: unit-converter\n---\n")},
		{Path: "assets/units.json", Data: []byte(`{"mile":1.60934}`)},
		{Path: "scripts/lib/units.py", Data: []byte("MILE = 1.60934\n")},
	}
	var declared map[string]json.RawMessage
	if err := json.Unmarshal([]byte(declaration), &declared); err != nil {
		panic(err) // a mistake in the text above
	}
	stored := []string{"stored", "stored.py"}
	var scripts []string
	for _, path := range slices.Sorted(maps.Keys(declared)) {
		if !slices.Contains(stored, path) {
			scripts = append(scripts, path)
		}
		text := "import lib.units\nprint(lib.units.MILE)\n"
		switch path {
		case "scripts/run":
			text = "#!/usr/bin/env python3\n" + text
		case "scripts/odd":
			text = "#!/usr/bin/awk -f\n"
		}
		files = append(files, bundle.File{Path: path, Data: []byte(text)})
	}
	s.skills[Skill] = &Source{Files: files, Declaration: declaration, Scripts: scripts, Stored: stored}
	s.skills["private"] = &Source{Files: slices.Clone(files), Declaration: declaration, Scripts: scripts, Tenants: func(t string) bool { return t == "other" }}
	s.skills["second"] = &Source{Files: []bundle.File{{Path: "scripts/second.py", Data: []byte("pass\n")}}, Scripts: []string{"scripts/second.py"}, Declaration: `{"scripts/second.py": {"mode": "none"}}`}
	return s
}

// Of returns the skill name, to be changed.
func (s *Skills) Of(name string) *Source { return s.skills[name] }

// Put makes f a file of the skill, beside those that it has.
func (s *Source) Put(path, data string) {
	s.Files = append(s.Files, bundle.File{Path: path, Data: []byte(data)})
}

func (s *Skills) source(tenant, skill string) (*Source, error) {
	src, ok := s.skills[skill]
	if !ok || src.Tenants != nil && !src.Tenants(tenant) {
		return nil, fmt.Errorf("%w: skill %q", gate.ErrUnknown, skill)
	}
	return src, nil
}

// Find implements [gate.Contents].
func (s *Skills) Find(_ context.Context, tenant, skill, name string) (gate.Origin, error) {
	src, err := s.source(tenant, skill)
	if err != nil {
		return 0, err
	}
	if slices.Contains(src.Stored, name) {
		return gate.StoredScript, nil
	}
	if !slices.Contains(src.Scripts, name) {
		return 0, fmt.Errorf("%w: script %q of skill %q", gate.ErrUnknown, name, skill)
	}
	return gate.FileScript, nil
}

// Read implements [gate.Contents].
func (s *Skills) Read(_ context.Context, tenant, skill string, limits bundle.Limits) (bundle.Bundle, error) {
	src, err := s.source(tenant, skill)
	if err != nil {
		return bundle.Bundle{}, err
	}
	if src.Gone {
		return bundle.Bundle{}, fmt.Errorf("%w: skill %q is not there any more", gate.ErrUnknown, skill)
	}
	if src.Lax {
		limits = bundle.Limits{}
	}
	return bundle.New(src.Files, []byte(src.Declaration), limits)
}

// Declare implements [gate.Declarer].
func (s *Skills) Declare(b bundle.Bundle, name string) (gate.Declaration, error) {
	var scripts map[string]script
	if err := json.Unmarshal(b.Declaration(), &scripts); err != nil {
		return gate.Declaration{}, fmt.Errorf("%w: the declaration: %w", bundle.ErrContent, err)
	}
	sc := scripts[name]
	return gate.Declaration{Mode: sc.Mode, Schema: sc.Schema, Flags: sc.Flags, Timeout: time.Duration(sc.Seconds * float64(time.Second)),
		Module: sc.Module, Outputs: sc.Outputs}, nil
}
